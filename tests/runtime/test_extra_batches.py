"""The batches after the first step: the second one, and the last one of the loader if it is shorter."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probed, probed, row

pytestmark = pytest.mark.slow

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
"""

TRAINING = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def rows(number: int) -> str:
    return f"data = TensorDataset(torch.randn({number}, 8), torch.randint(0, 3, ({number},)))\n"


NORM = "model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))\n"
LOADER = "loader = DataLoader(data, batch_size=16, shuffle=True)\n"
FIXED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x):
        return self.layer(x.view(16, 8))  # fault

model = Net()
"""
CARRIED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 16), nn.Linear(16, 3)
        self.state = torch.zeros(1, 16)

    def forward(self, x):
        self.state = self.cell(x.mean(0, keepdim=True), self.state)
        return self.head(self.state.expand(len(x), 16))

model = Net()
"""


def trained(folder: Path, *parts: str) -> Probed:
    return probed(folder, HEAD + "".join(parts))


def test_a_batch_norm_raises_for_a_last_batch_of_one(tmp_path: Path) -> None:
    ran = trained(tmp_path, rows(65), NORM, LOADER, TRAINING)
    (found,) = ran.found
    assert "Expected more than 1 value per channel when training" in found.message
    assert found.message.endswith("; in the last batch (1 row instead of 16)")
    assert [step.message for step in found.evidence if "drop_last" in step.message] == [
        "the loader of the last batch (1 row instead of 16); `drop_last=True` skips it"
    ]
    assert "more batches of the loader at train.py:8: the second batch, the last batch (1 row" in ran.text


@pytest.mark.parametrize(
    "right",
    [
        (rows(66), NORM, LOADER, TRAINING),
        (rows(65), NORM, LOADER.replace("shuffle=True", "drop_last=True"), TRAINING),
        (rows(64), FIXED, LOADER, TRAINING),
        (rows(65), FIXED.replace("16, 8", "-1, 8"), LOADER, TRAINING),
        (rows(64), CARRIED.replace("self.state)", "self.state.detach())", 1), LOADER, TRAINING),
    ],
    ids=["two rows", "dropped", "full", "any size", "detached"],
)
def test_what_works_for_all_batches_is_silent(tmp_path: Path, right: tuple[str, ...]) -> None:
    ran = trained(tmp_path, *right)
    assert ran.found == []
    assert ran.run.complete
    assert ran.run.observed.steps == 1
    assert "the second batch" in ran.text


def test_a_view_of_a_fixed_batch_size_fails_for_the_last_batch(tmp_path: Path) -> None:
    script = HEAD + rows(70) + FIXED + LOADER + TRAINING
    ran = probed(tmp_path, script)
    assert ran.places == [("SF507", "train.py", row(script, "fault"))]
    assert "in the last batch (6 rows instead of 16)" in ran.found[0].message


def test_a_state_carried_into_the_second_batch(tmp_path: Path) -> None:
    ran = trained(tmp_path, rows(64), CARRIED, LOADER, TRAINING)
    (found,) = ran.found
    assert "backward through the graph a second time" in found.message
    assert found.message.endswith("in the second batch")


COUNTED = """
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
kept = torch.zeros(len(data), 3)
for number, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    out = model(x)
    kept[number * 16 : (number + 1) * 16] = out.detach()
    F.cross_entropy(out, y).backward()
    optimizer.step()
"""


def test_a_count_of_batches_is_no_fault_of_the_script(tmp_path: Path) -> None:
    ran = trained(tmp_path, rows(150), LOADER, COUNTED)
    assert ran.found == []
    assert ran._told.early_stop_artifact is not None
    assert ran._told.artifact_cause == "the probe skipped the batches before the last one of the loader"


def test_no_batch_is_skipped_if_the_loader_has_three(tmp_path: Path) -> None:
    ran = trained(tmp_path, rows(40), LOADER, COUNTED)
    assert ran.found == []
    assert ran._told.early_stop_artifact is None
    assert not ran.run.cut_short
    assert ran.ending == "the script finished"


EVALUATION = """
model = nn.Linear(8, 3)
outputs = []
with torch.no_grad():
    for x, y in loader:
        outputs.append(model(x))
print([len(each) for each in outputs])
torch.stack(outputs)
"""


def test_an_evaluation_gets_the_short_batch_too(tmp_path: Path) -> None:
    ran = trained(tmp_path, rows(150), LOADER, EVALUATION)
    assert ran.run.process.output.startswith("[16, 16, 6]")
    assert "stack expects each tensor to be equal size" in ran.found[0].message


STREAM = """
class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(1000):
            yield torch.randn(8), 1

model, loader = nn.Linear(8, 3), DataLoader(Stream(), batch_size=16)
"""
PAIRS = """
model = nn.Linear(8, 3)
other = DataLoader(TensorDataset(torch.randn(90, 8)), batch_size=16)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (x, y), (z,) in zip(loader, other):
    optimizer.zero_grad()
    F.cross_entropy(model(x + z), y).backward()
    optimizer.step()
"""
SLOW = """
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def forward(self, x):
        import time
        time.sleep(3.2)
        return self.layer(x)

model = Slow()
"""


@pytest.mark.parametrize(
    ("parts", "batches"),
    [
        ((STREAM, TRAINING), ["next", "pass"]),
        ((rows(150), LOADER, PAIRS), ["next", "next"]),
        ((rows(150), SLOW, LOADER, TRAINING), []),
    ],
    ids=["stream", "pairs", "slow"],
)
def test_the_last_batch_of_what_has_none_or_costs_much_is_left_out(
    tmp_path: Path, parts: tuple[str, ...], batches: list[str]
) -> None:
    ran = trained(tmp_path, *parts)
    assert ran.found == []
    assert ran.run.complete
    assert [line["which"] for line in ran.run.observed.lines if line["kind"] == "extra_batch"] == batches


EPOCHS = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    losses = []
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(sum(losses) / len(losses))
"""


def test_each_later_epoch_gets_a_batch(tmp_path: Path) -> None:
    after = "print('reached the end')\nopen('end', 'w').close()\n"
    ran = probed(tmp_path, HEAD + rows(64) + NORM + LOADER + EPOCHS + after)
    assert (ran.found, ran.run.observed.steps) == ([], 1)
    kinds = [line["which"] for line in ran.run.observed.lines if line["kind"] == "extra_batch"]
    assert kinds == ["next", "pass", "pass"]
    assert any(path.endswith("end") for path in ran.run.observed.written)


def test_a_fault_of_the_second_epoch_is_found(tmp_path: Path) -> None:
    script = (
        HEAD
        + rows(64)
        + NORM
        + LOADER
        + EPOCHS.replace("loss = F", "x = x[:, :4] if epoch else x  # fault\n        loss = F")
    )
    (found,) = probed(tmp_path, script).found
    assert "a batch of the next pass" in found.message


def test_an_iterator_that_is_made_again_gets_no_more_batches(tmp_path: Path) -> None:
    script = (
        HEAD
        + rows(32)
        + NORM
        + LOADER
        + """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
batches = iter(loader)
while True:
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(loader)
        x, y = next(batches)
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert ran.run.process.seconds < 120
