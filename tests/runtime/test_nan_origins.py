"""A nan is reported at the operation that makes it, in the loss and in its gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probed, probed, probed_file, row

from shapefix.diagnostics import Diagnostic
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.findings.nan_blame import OPTION, with_nan_origins

pytestmark = pytest.mark.slow

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (x,) in DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8):
    out = model(x)
"""

TAIL = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

LOGARITHM = """
    safe = out.abs().log()
    unused = (out * 0 / 0).sum()
    loss = (torch.log(out) + safe).mean()  # made
"""

MASKED = """
    scores = (out @ out.T).masked_fill(torch.ones(8, 8).triu() > 0, float("-inf"))
    weights = scores.softmax(-1)  # made
    loss = (weights @ out).sum()
"""

ZERO_TIMES_INFINITY = """
    kept = (out > 100).float()
    entropy = kept * torch.log(kept)  # made
    loss = out.sum() + entropy.sum()
"""

GRADIENTS = """
    gap = out - out.detach()
    distance = torch.sqrt((gap**2).sum(1))  # made
    loss = out.mean() + distance.mean()
"""

CAUSAL = """
    scores = (out @ out.T).masked_fill(torch.ones(8, 8).triu(1) > 0, float("-inf"))
    loss = (scores.softmax(-1) @ out).sum()
"""


def found(folder: Path, body: str) -> tuple[Probed, list[Diagnostic]]:
    ran = probed(folder, HEAD + body + TAIL)
    again = lambda: probed_file(folder, "train.py", options=(OPTION,)).run.observed  # noqa: E731
    return ran, list(with_nan_origins(collect_findings(ran.run.observed), again).diagnostics)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (LOGARITHM, "the loss is nan: `log` of numbers from -"),
        (MASKED, "the loss is nan: `softmax` of numbers with an infinity gives nan"),
        (ZERO_TIMES_INFINITY, "the loss is nan: `log` of 0 gives inf"),
        (GRADIENTS, "the loss is finite, but backward of `sqrt` gives nan or infinite gradients"),
    ],
)
def test_a_nan_is_named_where_it_is_made(tmp_path: Path, body: str, text: str) -> None:
    _, (finding,) = found(tmp_path, body)
    assert finding.message.startswith(text)
    assert finding.span.row == row(HEAD + body + TAIL, "made")


def test_a_mask_is_no_fault(tmp_path: Path) -> None:
    ran, findings = found(tmp_path, CAUSAL)
    assert ran.run.trained
    assert findings == []
