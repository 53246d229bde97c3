"""What older versions of torch accept is reported unless the project requires one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 2)
x, y = torch.randn(8, 4), torch.zeros(8).long()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEP = "loss = nn.CrossEntropyLoss()(net(x), y)\n"
SCHEDULE = """\
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for _ in range(10):
    scheduler.step()
    for _ in range(5):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
"""
CODE = {
    "the dtype of full": (
        "1.6",
        "nn.BCELoss()(torch.sigmoid(torch.randn(8)), torch.full((8,), 1))\n",
        "SF512",
    ),
    "quotients of integers": (
        "1.4",
        "nn.CrossEntropyLoss()(net(x), torch.zeros(8).long() / torch.ones(8).long())\n",
        "SF512",
    ),
    "the number of a loss": ("0.4", f"{STEP}print(loss.data[0])\n", "SF507"),
    "a schedule before the optimizer": ("1.0", SCHEDULE, "SF803"),
}


@pytest.mark.parametrize("name", CODE)
def test_the_required_version_decides(tmp_path: Path, name: str) -> None:
    version, code, rule = CODE[name]
    (tmp_path / "train.py").write_text(HEAD + code)

    def found() -> list[str]:
        session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
        return [each.code for each in session.findings()]

    assert found() == [rule]
    (tmp_path / "requirements.txt").write_text("torch>=2.0\n")
    assert found() == [rule]
    (tmp_path / "requirements.txt").write_text(f"torch=={version}.0\n")
    assert found() == []


MASKED = f"""{HEAD}

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = torch.ones(8)

    def forward(self, x):
        return x * self.mask


Masked().cuda()(torch.randn(4, 8).cuda())
"""


@pytest.mark.parametrize(
    ("torch", "end", "safety"), [("1.5", ")", "unsafe"), ("1.6", ", persistent=False)", "safe")]
)
def test_a_buffer_is_left_out_of_states_where_torch_can(
    tmp_path: Path, torch: str, end: str, safety: str
) -> None:
    (tmp_path / "train.py").write_text(MASKED)
    (tmp_path / "requirements.txt").write_text(f"torch=={torch}.0\n")
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    (finding,) = session.findings()
    (fix,) = finding.fixes
    assert (fix.applicability.value, fix.edits[-1].content) == (safety, end)
