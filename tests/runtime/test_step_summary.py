"""Parameters, norms of gradients and the time of a step, compared with those that the script computes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from probing import Probed, probed, probed_file

from shapefix.runtime.protocol import GradientsLine, StepTimesLine
from shapefix.runtime.report.step_speed import step_speed

pytestmark = pytest.mark.slow

SCRIPT = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(8, 16).half().float()
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 3)
        self.tied = self.head

    def forward(self, x):
        time.sleep(0.06)
        return self.head(self.norm(self.wide(x)))

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, number):
        time.sleep(0.01)
        return torch.randn(8), number % 3

torch.manual_seed(0)
model = Slow()
model.wide.weight.requires_grad_(False)
trained = [each for each in model.parameters() if each.requires_grad]
optimizer = torch.optim.SGD(trained, 0.1)
next(iter(DataLoader(Rows(), batch_size=16)))
for x, y in DataLoader(Rows(), batch_size=4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    print("norm", float(nn.utils.clip_grad_norm_(trained, 1e9)), float(model.head.weight.norm()))
    optimizer.step()
"""

BY_HAND = """
import time
import torch

weight = torch.nn.Linear(4, 1)
optimizer, other = torch.optim.SGD([weight.weight], 0.1), torch.optim.SGD([weight.bias], 0.1)
time.sleep(1.5)  # before the first step
for _ in range(9):
    optimizer.zero_grad()
    time.sleep(0.03)  # data without a loader
    weight(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    other.step()
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Probed:
    return probed(tmp_path_factory.mktemp("slow"), SCRIPT)


def test_parameters_are_those_of_the_model(slow: Probed) -> None:
    (model,) = slow.run.observed.modules
    assert model.model is not None
    total = 8 * 16 + 16 + 32 + 16 * 3 + 3
    assert (model.parameters, model.model["total"]) == (total, total)
    assert model.model["trainable"] == total - 8 * 16
    assert model.model["bytes"] == {"float32": 4 * total}
    assert model.model["buffer_bytes"] == 2 * 16 * 4 + 8
    assert [(each.name, each.parameters) for each in model.children] == [
        ("wide", 144), ("norm", 32), ("head", 51),
    ]  # fmt: skip
    products = 4 * (8 * 16 + 16 * 3)
    shown = f"  227 parameters, 99 trainable, 908 B f32, 136 B buffers, {products} MACs in its layers\n"
    assert shown in slow.text


def test_norms_are_those_of_torch(slow: Probed) -> None:
    line = slow.run.observed.first(GradientsLine)
    assert line is not None
    printed = next(row for row in slow.run.process.output.splitlines() if row.startswith("norm"))
    _, norm, _ = printed.split()
    assert line["norm"] == pytest.approx(float(norm), rel=1e-4)
    assert {each["module"] for each in line["norms"]} == {"wide", "norm", "head"}
    assert sum(each["norm"] ** 2 for each in line["norms"]) == pytest.approx(float(norm) ** 2, rel=1e-4)
    assert f", norm {line['norm']:.3g}" in slow.text


def test_time_goes_to_its_part(slow: Probed) -> None:
    speed = step_speed(slow.run.observed)
    assert speed is not None
    parts = dict(speed.parts)
    assert speed.steps == 1
    assert parts["data"] >= 0.04
    assert parts["forward"] >= 0.06
    assert parts["optimizer"] + parts["other code"] + parts["backward"] < parts["data"] + parts["forward"]
    assert sum(parts.values()) == pytest.approx(speed.seconds, abs=1e-4)
    assert speed.rows_per_second == pytest.approx(4 / speed.seconds, rel=0.01)
    assert "samples/s (the second step)" in slow.text


def test_steps_without_a_loader_end_where_an_optimizer_steps_again(tmp_path: Path) -> None:
    (tmp_path / "by_hand").mkdir()
    lines = list(probed(tmp_path / "by_hand", BY_HAND).run.observed.of(StepTimesLine))
    assert [each["step"] for each in lines] == list(range(1, len(lines) + 1))
    assert all(each["rows"] is None for each in lines)
    assert all(each["seconds"] < 1.2 for each in lines)
    assert all(first["step"] < second["step"] for first, second in pairwise(lines))


SUMMARY_FIRST = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(4, 3))
model(torch.randn(2, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = TensorDataset(torch.randn(16, 4), torch.zeros(16, dtype=torch.long))
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(iter(DataLoader(data)).next())
"""


def test_a_call_in_the_loop_is_shown_after_one_before_it(tmp_path: Path) -> None:
    ran = probed(tmp_path, SUMMARY_FIRST)
    assert "  Sequential       15" in ran.text
    assert "f32[2, 4] -> f32[2, 3]\nSequential with gradient, called at train.py:12\n" in ran.text
    assert "    0 Linear" in ran.text.partition("train.py:12")[2]
    (finding,) = ran.found
    assert finding.fix is not None
    assert finding.fix.edits[0].content == "next(iter(DataLoader(data)))"


ALONE = """
import time
import torch

time.sleep(1)
weight = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(5):
    optimizer.zero_grad()
    ((torch.ones(4, 3) @ weight - 1) ** 2).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("steps", [1, 3])
def test_a_first_step_without_a_start_has_no_time(tmp_path: Path, steps: int) -> None:
    (tmp_path / "train.py").write_text(ALONE)
    ran = probed_file(tmp_path, "train.py", options=("--steps", str(steps)))
    lines = list(ran.run.observed.of(StepTimesLine))
    assert [line["step"] for line in lines] == list(range(2, steps + 1))
    assert all(line["seconds"] < 0.5 for line in lines)
    speed = step_speed(ran.run.observed)
    assert (None if speed is None else speed.basis) == (None if steps == 1 else "median of 2 steps")
