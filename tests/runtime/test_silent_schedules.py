"""Schedules of the learning rate in epochs or batches, with steps of the other kind; and right ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import probed, row

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(400, 4), torch.randint(0, 2, (400,))), batch_size=4)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
epochs = 10
schedule = lr_scheduler.{schedule}
for epoch in range(epochs):
    for number, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {per_batch}
    {per_epoch}
"""
STEP, NONE = "schedule.step()  # step", "pass"

WRONG = {
    "cosine": ("CosineAnnealingLR(optimizer, T_max=epochs)", True, "with T_max=10 steps once per batch"),
    "exponential": ("ExponentialLR(optimizer, 0.8)", True, "with gamma=0.8 steps once per batch"),
    "step": ("StepLR(optimizer, 5)", True, "an epoch has 100 batches: it is in epochs"),
    "one cycle": (
        "OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))",
        False,
        "with total_steps=1000 steps once per epoch of 100 batches",
    ),
}


def script(schedule: str, is_per_batch: bool) -> str:
    places = (
        {"per_batch": STEP, "per_epoch": NONE} if is_per_batch else {"per_batch": NONE, "per_epoch": STEP}
    )
    return SCRIPT.format(schedule=schedule, **places)


@pytest.mark.parametrize("name", WRONG)
def test_a_schedule_in_another_unit_is_named(tmp_path: Path, name: str) -> None:
    schedule, is_per_batch, message = WRONG[name]
    text = script(schedule, is_per_batch)
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.span.row) == ("SF803", row(text, "step"))
    assert message in found.message


@pytest.mark.parametrize("name", WRONG)
def test_the_same_schedule_is_right_elsewhere(tmp_path: Path, name: str) -> None:
    schedule, is_per_batch, _ = WRONG[name]
    assert probed(tmp_path, script(schedule, not is_per_batch)).found == []


@pytest.mark.parametrize(
    "schedule",
    [
        "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))",
        "ExponentialLR(optimizer, 0.999)",
        "StepLR(optimizer, 50)",
        "LinearLR(optimizer, total_iters=10)",
    ],
)
def test_schedules_in_batches_are_right(tmp_path: Path, schedule: str) -> None:
    assert probed(tmp_path, script(schedule, True)).found == []
