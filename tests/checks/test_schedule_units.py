"""SF803: schedules in epochs and in batches, compared with the learning rates of torch."""

from __future__ import annotations

import pytest
import torch
from checking import Check

HEAD = """\
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(320, 4), torch.randn(320, 1)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rates = []
epochs = 6
"""
LOOP = """\
scheduler = lr_scheduler.{schedule}
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        {inner}
    rates.append(optimizer.param_groups[0]["lr"])
    {outer}
"""
STEP, PASS = "scheduler.step()", "pass"
SCHEDULES = [
    ("StepLR(optimizer, 3)", "epoch"),
    ("StepLR(optimizer, step_size=5, gamma=0.5)", "epoch"),
    ("StepLR(optimizer, 200)", ""),
    ("MultiStepLR(optimizer, [2, 4])", "epoch"),
    ("MultiStepLR(optimizer, milestones=[80, 160])", ""),
    ("ExponentialLR(optimizer, 0.9)", "epoch"),
    ("ExponentialLR(optimizer, gamma=0.999)", ""),
    ("CosineAnnealingLR(optimizer, epochs)", "epoch"),
    ("CosineAnnealingLR(optimizer, T_max=epochs * len(loader))", "batch"),
    ("CosineAnnealingWarmRestarts(optimizer, 2)", ""),
    ("OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))", "batch"),
    ("OneCycleLR(optimizer, max_lr=0.1, total_steps=len(loader) * epochs)", "batch"),
    ("LinearLR(optimizer, total_iters=len(loader))", ""),
]


@pytest.mark.parametrize(("schedule", "unit"), SCHEDULES)
@pytest.mark.parametrize("steps", ["epoch", "batch"])
def test_units_of_schedules(check: Check, schedule: str, unit: str, steps: str) -> None:
    inner, outer = (STEP, PASS) if steps == "batch" else (PASS, STEP)
    code = HEAD + LOOP.format(schedule=schedule, inner=inner, outer=outer)
    found = check(code, {"SF803"})
    assert bool(found) == (unit not in ("", steps)), code
    if not found:
        return
    right, wrong = _rates(HEAD + LOOP.format(schedule=schedule, inner=outer, outer=inner)), _rates(code)
    assert any(abs(a - b) > 0.1 * max(a, b) for a, b in zip(right, wrong, strict=True))


def _rates(code: str) -> list[float]:
    space: dict[str, object] = {}
    torch.manual_seed(0)
    exec(compile(code, "schedule", "exec"), space)
    rates = space["rates"]
    assert isinstance(rates, list)
    return rates


@pytest.mark.parametrize("count", [64, 65, 66])
@pytest.mark.parametrize("settings", ["", ", drop_last=True", ", shuffle=True"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_last_batch_of_one(check: Check, count: int, settings: str, mode: str) -> None:
    code = f"""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn({count}, 4)), batch_size=16{settings})
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
model.{mode}()
for (x,) in loader:
    model(x)
"""
    raised = ""
    try:
        exec(compile(code, "batches", "exec"), {})
    except ValueError as error:
        raised = str(error)
    found = check(code, {"SF511"})
    assert bool(found) == bool(raised)
    for each in found:
        assert each.error is not None
        assert each.error.message in raised
