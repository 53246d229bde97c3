"""Evaluations, updates and schedules of some passes of a loop: SF804, SF803, SF412 and SF521."""

from __future__ import annotations

import pytest
from checking import Check

from shapefix.repair.edits import apply

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,))), batch_size=4)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters())
epochs = int(input())
modes = []


def validate():
    net.eval()
    with torch.no_grad():
        for x, y in loader:
            net(x)


"""
STEP = """\
        modes.append(net.training)
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
"""
EVALUATED = """\
for epoch in range(2):
    net.train()
    for step, (x, y) in enumerate(loader):
        if step % 2 == 0:
            validate()
        optimizer.zero_grad()
{step}        optimizer.step()
"""


def run(code: str) -> list[bool]:
    held: dict[str, object] = {"input": lambda: "2"}
    exec(code, held)
    modes = held["modes"]
    assert isinstance(modes, list)
    return modes


def test_an_evaluation_of_some_passes_leaves_the_model_in_evaluation_mode(check: Check) -> None:
    code = HEAD + EVALUATED.format(step=STEP)
    assert not any(run(code))
    (found,) = check(code, {"SF804"})
    repaired = apply(code, list(found.fixes))[0]
    assert all(run(repaired))
    assert not check(repaired, {"SF804"})


def test_an_evaluation_per_epoch_is_right(check: Check) -> None:
    body = EVALUATED.format(step=STEP).replace("        if step % 2 == 0:\n            validate()\n", "")
    code = f"{HEAD}{body}    if epoch % 2 == 0:\n        validate()\n"
    assert all(run(code))
    assert not check(code, {"SF804"})


ACCUMULATED = """\
count = 0
for epoch in range(2):
    for x, y in loader:
{before}{step}        count += 1
        if count < 3:
            continue
        optimizer.step()
{after}        count = 0
"""
CLEAR = "        optimizer.zero_grad()\n"


@pytest.mark.parametrize("is_wrong", [True, False])
def test_gradients_cleared_in_each_pass_of_a_window_counted_by_hand(is_wrong: bool, check: Check) -> None:
    places = {"before": CLEAR if is_wrong else "", "after": "" if is_wrong else CLEAR}
    code = HEAD + ACCUMULATED.format(step=STEP, **places)
    found = check(code, {"SF803"})
    assert [each.code for each in found] == ["SF803"] * is_wrong
    if is_wrong:
        assert not check(apply(code, list(found[0].fixes))[0], {"SF803"})


SCHEDULED = """\
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {setting})
for epoch in range(1, epochs + 1):
    for x, y in loader:
        optimizer.zero_grad()
{step}        optimizer.step()
        scheduler.step()
"""


@pytest.mark.parametrize(("setting", "count"), [("epochs", 1), ("epochs * len(loader)", 0)])
def test_a_schedule_of_the_variable_with_the_epochs(setting: str, count: int, check: Check) -> None:
    code = HEAD + SCHEDULED.format(setting=setting, step=STEP)
    run(code)
    assert len(check(code, {"SF803"})) == count


LIGHTNING = """\
import lightning.pytorch as pl
from torch import nn


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        outputs = self.net(batch)
        self.log("{name}", outputs.mean())
{end}
    def configure_optimizers(self):
        return None
"""


@pytest.mark.parametrize(
    ("name", "end", "count"),
    [("train/loss", "", 1), ("train/size", "", 0), ("loss", "        return outputs.mean()\n", 0)],
)
def test_a_step_that_only_logs_its_loss(name: str, end: str, count: int, check: Check) -> None:
    found = check(LIGHTNING.format(name=name, end=end), {"SF412"})
    assert len([each for each in found if "returns no loss" in each.message]) == count


SEQUENCES = """\
import torch
from torch import nn

conv, lstm = nn.Conv2d(3, 8, 3, padding=1), nn.LSTM(16, 5{first})
images = torch.rand(6, 3, 4, 4)
features = conv(images).flatten(2)
out, _ = lstm({given})
"""


@pytest.mark.parametrize(
    ("first", "given", "count"),
    [("", "features", 1), (", batch_first=True", "features", 0), ("", "features.permute(1, 0, 2)", 0)],
)
def test_the_batch_of_a_convolution_as_time_steps(first: str, given: str, count: int, check: Check) -> None:
    code = SEQUENCES.format(first=first, given=given)
    assert len(check(code, {"SF521"})) == count
