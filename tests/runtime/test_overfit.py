"""`probe --overfit`: all steps get one batch, and a loss that does not fall is a finding."""

from __future__ import annotations

from pathlib import Path

import fork_server
import pytest
from probing import Probed, run_shapefix

from shapefix.runtime.protocol import BackwardLine, OptimizerStepLine, OverfitLine
from shapefix.runtime.run import probe_script

pytestmark = pytest.mark.slow

LEARNS = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = TensorDataset(torch.randn(97, 8), torch.randint(0, 10, (97,)))
loader = DataLoader(rows, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(30):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""


def overfit(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch, steps: int = 30) -> Probed:
    (folder / "train.py").write_text(script)
    monkeypatch.chdir(folder)
    options = ("--overfit",)
    return Probed(probe_script(fork_server.interpreter(), "train.py", (), steps, 120.0, options), folder)


def test_a_model_that_learns_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = overfit(tmp_path, LEARNS, monkeypatch)
    assert ran.found == []
    (line,) = ran.run.observed.of(OverfitLine)
    assert (line["steps"], line["same_input"], line["unchanged"]) == (30, True, [])
    losses = [each["value"] or 0.0 for each in ran.run.observed.of(BackwardLine)]
    assert len(losses) == 30
    assert losses == sorted(losses, reverse=True)
    assert " in 30 steps on one batch" in ran.text


FAULTS = {
    "a step that changes little": (
        "lr=1e-2",
        "lr=1e-9",
        "the loss does not fall in 30 steps on one batch: 2.3",
    ),
    "a frozen part": (
        "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)",
        "nn.init.constant_(model[0].bias, -99.0)\noptimizer = torch.optim.SGD(model.parameters(), lr=1e-9)",
        "unchanged: 0.weight, 0.bias",
    ),
    "discarded gradients": (
        "        optimizer.step()",
        "        for each in model.parameters():\n            each.grad.zero_()\n        optimizer.step()",
        "unchanged: 0.weight, 0.bias, 2.weight, 2.bias",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_loss_that_does_not_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    old, new, message = FAULTS[name]
    ran = overfit(tmp_path, LEARNS.replace(old, new), monkeypatch)
    (found,) = [each for each in ran.found if each.name == "no-overfit"]
    assert message in found.message


def test_noise_in_the_input_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = LEARNS.replace("model(x)", "model(torch.randn_like(x))")
    ran = overfit(tmp_path, script, monkeypatch)
    assert [each.name for each in ran.found] == []
    assert "with different inputs" in ran.text


def test_steps_are_counted_over_the_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(LEARNS)
    monkeypatch.chdir(tmp_path)
    run = probe_script(fork_server.interpreter(), "train.py", (), 9, 120.0)
    numbers = [line["number"] for line in run.observed.of(OptimizerStepLine) if not line["extra"]]
    assert numbers == list(range(1, 10))
    assert run.observed.steps == 9


@pytest.mark.parametrize("other", [["--repair"], ["--steps", "3"], ["--vram", "1GiB"], ["--device", "fake"]])
def test_other_runs_are_refused(tmp_path: Path, other: list[str]) -> None:
    (tmp_path / "train.py").write_text(LEARNS)
    ran = run_shapefix("probe", "--overfit", "20", *other, "train.py", folder=tmp_path)
    assert ran.returncode == 2
    assert "--overfit" in ran.stderr


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEARNS)
    ran = run_shapefix("probe", "--overfit", "20", "train.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert " in 20 steps on one batch" in ran.stdout
    assert ran.stdout.endswith("Nothing found in 20 training steps.\n")
