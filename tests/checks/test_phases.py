"""Loops over phases, `for phase in ["train", "val"]`, and what their passes leave out."""

from __future__ import annotations

import pytest
from checking import Check

CODE = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.randn(960, 4), torch.randint(0, 3, (960,)))
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loaders = {"train": DataLoader(rows, 16), "val": DataLoader(rows, 16)}
for epoch in range(10):
    for phase in ["train", "val"]:
        MODE
        total = 0
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            CONTEXT
                loss = F.cross_entropy(net(x), y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            total += loss.item()
"""
RIGHT = 'with torch.set_grad_enabled(phase == "train"):'


@pytest.mark.parametrize(
    ("mode", "context", "codes"),
    [
        ('net.train(phase == "train")', RIGHT, set()),
        ('net.train() if phase == "train" else net.eval()', RIGHT, set()),
        ("net.train()", RIGHT, {"SF804"}),
        ('net.train() if phase == "train" else None', RIGHT, {"SF804"}),
        ('net.train(phase == "train")', "if True:", {"SF702"}),
    ],
)
def test_the_passes_of_a_phase(mode: str, context: str, codes: set[str], check: Check) -> None:
    found = check(CODE.replace("MODE", mode).replace("CONTEXT", context))
    assert {each.code for each in found} == codes


SAMPLES = """
import torch
from torch.utils.data import DataLoader, Dataset, random_split
from torch import nn

class Rows(Dataset):
    def __init__(self, n=97):
        self.rows = torch.randn(n, 4)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        SAMPLE

rows = Rows()
first, second = random_split(rows, [len(rows) - 32, 32])
norm = nn.BatchNorm1d(4)
for batch in DataLoader(first, SIZE):
    norm(batch)
"""


@pytest.mark.parametrize(
    ("sample", "size", "codes"),
    [
        ("return self.rows[i]", 16, {"SF511"}),
        ("return self.rows[i]", 13, set()),
        ("return self.rows[i] if self.rows[i].sum() > 0 else None", 13, {"SF410"}),
        (
            "row = self.rows[i]\n        if row.sum() < 0:\n            row = None\n        return row",
            13,
            {"SF410"},
        ),
        ("row = None\n        if i >= 0:\n            row = self.rows[i]\n        return row", 13, set()),
        ("return self.rows[i] if self.rows is not None else None", 13, set()),
    ],
)
def test_samples_and_their_number(sample: str, size: int, codes: set[str], check: Check) -> None:
    found = check(SAMPLES.replace("SAMPLE", sample).replace("SIZE", str(size)))
    assert {each.code for each in found} == codes
