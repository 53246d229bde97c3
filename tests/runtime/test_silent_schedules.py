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
schedules = [{schedules}]
for epoch in range(epochs):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {per_batch}
    {per_epoch}
"""
STEP, NONE = "[each.step() for each in schedules]  # step", "pass"

IN_EPOCHS = {
    "lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)": "with T_max=10 steps once per batch",
    "lr_scheduler.ExponentialLR(optimizer, 0.8)": "with gamma=0.8 steps once per batch",
    "lr_scheduler.StepLR(optimizer, 5)": "an epoch has 100 batches: it is in epochs",
}
IN_BATCHES = {
    "lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))": (
        "with total_steps=1000 steps once per epoch of 100 batches"
    ),
}
RIGHT_FOR_BATCHES = (
    *IN_BATCHES,
    "lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))",
    "lr_scheduler.ExponentialLR(optimizer, 0.999)",
    "lr_scheduler.StepLR(optimizer, 50)",
    "lr_scheduler.LinearLR(optimizer, total_iters=10)",
)


def script(schedules: str, is_per_batch: bool) -> str:
    places = (STEP, NONE) if is_per_batch else (NONE, STEP)
    return SCRIPT.format(schedules=schedules, per_batch=places[0], per_epoch=places[1])


@pytest.mark.parametrize("schedule", [pytest.param(each, marks=pytest.mark.long) for each in IN_EPOCHS])
def test_a_schedule_in_epochs_with_a_step_per_batch_is_named(tmp_path: Path, schedule: str) -> None:
    text = script(schedule, is_per_batch=True)
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.span.row) == ("SF803", row(text, "step"))
    assert IN_EPOCHS[schedule] in found.message


@pytest.mark.parametrize("schedule", IN_BATCHES)
def test_a_schedule_in_batches_with_a_step_per_epoch_is_named(tmp_path: Path, schedule: str) -> None:
    text = script(schedule, is_per_batch=False)
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.span.row) == ("SF803", row(text, "step"))
    assert IN_BATCHES[schedule] in found.message


def test_the_same_schedules_are_right_elsewhere(tmp_path: Path) -> None:
    per_epoch, per_batch = tmp_path / "epoch", tmp_path / "batch"
    for folder in (per_epoch, per_batch):
        folder.mkdir()
    assert probed(per_epoch, script(", ".join(IN_EPOCHS), is_per_batch=False)).found == []
    assert probed(per_batch, script(", ".join(RIGHT_FOR_BATCHES), is_per_batch=True)).found == []
