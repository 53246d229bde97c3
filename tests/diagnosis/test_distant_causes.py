"""Causes far from the failing line: settings of any object, written files, results of functions, loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from raised import traceback_of

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnostics import Role
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)


@dataclass(frozen=True)
class Project:
    """The files of a project; the first cause names the lines with `cause`, and none with `innocent`."""

    name: str
    files: Mapping[str, str]

    def __str__(self) -> str:
        return self.name


PROJECTS = [
    Project(
        "tuple by a comma in a dataclass",
        {
            "settings.py": """\
from dataclasses import dataclass

@dataclass
class Settings:
    width: int = 8  # innocent
    dropout: float = 0.1,  # cause
""",
            "train.py": """\
import torch
from settings import Settings

settings = Settings()
torch.nn.Dropout(settings.dropout)
""",
        },
    ),
    Project(
        "option with several values",
        {
            "train.py": """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--inputs", type=int, default=4)  # innocent
parser.add_argument("--hidden", type=int, nargs="+", default=[8])  # cause
args = parser.parse_args([])
torch.nn.Linear(args.inputs, args.hidden)
""",
        },
    ),
    Project(
        "file that is written under a condition",
        {
            "train.py": """\
import torch

def save(state, epoch):
    if epoch % 2 == 0:  # cause
        torch.save(state, f"epoch_{epoch}.pt")  # cause

def log(epoch):
    with open(f"log_{epoch}.txt", "w") as file:  # innocent
        file.write("")

for epoch in range(2):
    save({}, epoch)
    log(epoch)
torch.load(f"epoch_{1}.pt")
""",
        },
    ),
    Project(
        "saved tensors of a function",
        {
            "train.py": """\
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)  # cause
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        return gradient * scale, None

Scale.apply(torch.ones(2, requires_grad=True), torch.tensor(2.0)).sum().backward()
""",
        },
    ),
    Project(
        "unknown message of a library",
        {
            "train.py": """\
import fractions

def read():
    return "one half"  # cause

other = 3  # innocent
text = read()  # cause
fractions.Fraction(text)
""",
        },
    ),
    Project(
        "condition of an own check",
        {
            "train.py": """\
def check(rows, limit):
    if len(rows) > limit:
        raise ValueError("too many rows")
    return rows

other = 3  # innocent
rows = [1, 2, 3]  # cause
limit = 2  # cause
check(rows, limit)
""",
        },
    ),
    Project(
        "assertion",
        {
            "train.py": """\
def pairs(texts):
    return [text for text in texts if text]  # cause

first = ["a", "b"]  # cause
second = pairs(["x", ""])  # cause
assert len(first) == len(second)
""",
        },
    ),
    Project(
        "attribute read by a library",
        {
            "loops/site-packages/loop_training.py": """\
class Loop:
    def backward(self, loss):
        loss.backward()
""",
            "train.py": """\
import sys
import torch

sys.path.insert(0, "loops/site-packages")
from loop_training import Loop

def loss_of(x):
    loss = x.pow(2).mean().item()  # cause
    return loss, x

loop = Loop()  # innocent
loss, x = loss_of(torch.ones(2))  # cause
loop.backward(loss)
""",
        },
    ),
    Project(
        "name of an imported module",
        {
            "conf.py": "OTHER = 1  # innocent\nROWS = [1, 2]  # cause\n",
            "train.py": "import conf\nimport random\n\nrandom.sample(conf.ROWS, 5)\n",
        },
    ),
    Project(
        "condition before a sample",
        {
            "train.py": """\
import random

WARMUP = 2  # cause
memory = []
for step in range(5):
    memory.append(step)
    if len(memory) > WARMUP:  # cause
        random.sample(memory, 4)
""",
        },
    ),
    Project(
        "object of a chain of calls",
        {
            "train.py": """\
import numpy as np
import torch

class Codes:
    def fit(self, rows):
        return self

    def __call__(self, rows):
        return np.array([{} for row in rows])  # cause

codes = Codes().fit([1, 2])
torch.from_numpy(codes([1, 2]))
""",
        },
    ),
    Project(
        "method without a call",
        {
            "rows.py": """\
class Rows:
    def __init__(self):
        self.size = 3  # innocent

    def labels(self):  # cause
        return [0, 1]
""",
            "train.py": """\
import torch
from rows import Rows

def counted(rows):
    return torch.bincount(rows.labels)

counted(Rows())
""",
        },
    ),
    Project(
        "function of a batched map",
        {
            "maps/site-packages/mapped_tables.py": """\
class Table:
    def __init__(self, rows):
        self.rows = rows

    def map(self, function, batched=False):
        return function(self.rows) if batched else [function(row) for row in self.rows]
""",
            "train.py": """\
import sys

sys.path.insert(0, "maps/site-packages")
from mapped_tables import Table

def lower(text):
    return text.lower()

Table(["A", "B"]).map(
    lower,
    batched=True,  # cause
)
""",
        },
    ),
    Project(
        "rate of a group",
        {
            "train.py": """\
import torch

weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
rates = [0.1, 0.2]
for group in optimizer.param_groups:
    group["lr"] = rates  # cause
weight.sum().backward()
optimizer.step()
""",
        },
    ),
    Project(
        "samples of a collator",
        {
            "train.py": """\
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index, 2 * index, 3 * index  # cause

def join(batch):
    first, second = zip(*batch)
    return first, second

next(iter(DataLoader(Clips(), batch_size=2, collate_fn=join)))
""",
        },
    ),
    Project(
        "transform without a result",
        {
            "train.py": """\
from torch.utils.data import DataLoader, Dataset

class Scale:
    def __call__(self, x):
        x = 2 * x  # cause

class Rows(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(index), index

next(iter(DataLoader(Rows(Scale()), batch_size=2)))
""",
        },
    ),
    Project(
        "text among returned values",
        {
            "train.py": """\
import torch

def losses(x):
    return {
        "first": x.sum(),  # innocent
        "unit": "meters",  # cause
    }

def total(values):
    return sum(values.values())

total(losses(torch.ones(2)))
""",
        },
    ),
    Project(
        "loop over pairs",
        {
            "train.py": """\
import torch

x = torch.zeros(1, 2, 8, 8)
skips = []
for _ in range(2):
    skips.append(x)  # cause
    x = torch.nn.functional.max_pool2d(x, 2)
for scale, skip in zip((2, 2), skips):  # cause
    x = torch.nn.functional.interpolate(x, scale_factor=scale)
    x = torch.cat([x, skip], dim=1)
""",
        },
    ),
    Project(
        "samples without a batch",
        {
            "train.py": """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def loader(data, batch_size=None):
    return DataLoader(data, batch_size=batch_size)  # cause

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.hidden(x))

test = loader(TensorDataset(torch.zeros(8, 6), torch.zeros(8)))  # cause
net = Net()
print(sum(net(x).sum() for x, y in test))
""",
        },
    ),
]


def _marked(project: Project, mark: str) -> set[tuple[str, int]]:
    return {
        (name, row)
        for name, text in project.files.items()
        for row, line in enumerate(text.split("\n"), 1)
        if line.endswith(f"# {mark}")
    }


def _diagnosed(project: Project, folder: Path) -> Diagnosis:
    for name, text in project.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = diagnose_log(traceback_of(folder / "train.py").splitlines(), str(folder), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("project", PROJECTS, ids=str)
def test_the_cause_is_named(project: Project, tmp_path: Path) -> None:
    first = _diagnosed(project, tmp_path).causes[0]
    steps = [step.span for step in first.evidence if step.role not in (Role.CALL, Role.FAILURE)]
    named = {(Path(span.path).name, span.row) for span in (first.finding.span, *steps)}
    assert _marked(project, "cause") <= named
    assert not _marked(project, "innocent") & named


def test_an_unknown_message_is_only_possible(tmp_path: Path) -> None:
    (project,) = [each for each in PROJECTS if each.name == "unknown message of a library"]
    found = _diagnosed(project, tmp_path)
    assert found.causes[0].confidence is Confidence.POSSIBLE
    assert "Cause: unknown; these lines set the values" in str(found)
    assert "shapefix does not know this message" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "from torch.nn import Lynear\nLynear(2)\n",
        "names = ['a']\nraise NotImplementedError(names)\n",
    ],
)
def test_errors_about_no_value_have_no_places(tmp_path: Path, text: str) -> None:
    found = _diagnosed(Project("", {"train.py": text}), tmp_path)
    assert not any(each.confidence is Confidence.POSSIBLE for each in found.causes)
