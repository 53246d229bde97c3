"""Causes in other files than the failing line, and repairs of causes without a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from raised import traceback_of

from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnosis.repaired_causes import patch, repaired_cause
from shapefix.diagnostics import Applicability
from shapefix.engine.repairs import FileRepair
from shapefix.engine.settings import CheckOptions
from shapefix.repair import writes
from shapefix.report.view import View

OPTIONS = CheckOptions(isolated=True, use_cache=False)


@dataclass(frozen=True)
class Broken:
    """A project; the lines with `# cause` are named, and its repair makes `train.py` run."""

    name: str
    files: Mapping[str, str]
    is_repaired: bool = True

    def __str__(self) -> str:
        return self.name


DATASET = """\
import numpy as np
import torch
from torch.utils.data import Dataset

class Data(Dataset):
    def __init__(self, path):
        self.rows = np.load(path)  # cause

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index])  # cause
"""

PROJECTS = [
    Broken(
        "bytes of a file into a convolution",
        {
            "data.py": DATASET,
            "train.py": """\
import numpy as np
import torch
from torch.utils.data import DataLoader
from data import Data

np.save("images.npy", np.zeros((4, 3, 8, 8), dtype="uint8"))
net = torch.nn.Conv2d(3, 4, 3)
for images in DataLoader(Data("images.npy"), batch_size=2):
    net(images)
""",
        },
    ),
    Broken(
        "keys of a wrapped model",
        {
            "save.py": """\
import torch

torch.save(torch.nn.DataParallel(torch.nn.Linear(2, 3)).state_dict(), "last.pth")  # cause
""",
            "train.py": """\
import torch

__import__("sa" + "ve")
model = torch.nn.Linear(2, 3)
model.load_state_dict(torch.load("last.pth"))
""",
        },
    ),
    Broken(
        "base class without the call of super",
        {
            "base.py": """\
from torch import nn

class Base(nn.Module):
    def __init__(self, name):  # cause
        self.name = name
""",
            "train.py": """\
from torch import nn
from base import Base

class Head(Base):
    def __init__(self):
        super().__init__("head")
        self.layer = nn.Linear(3, 3)

Head()
""",
        },
    ),
    Broken(
        "option without a type",
        {
            "options.py": """\
import argparse

def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", default=8)  # cause
    return parser.parse_args(["--hidden", "4"])
""",
            "train.py": """\
from torch import nn
from options import parsed

options = parsed()
nn.Linear(2, options.hidden)
""",
        },
    ),
    Broken(
        "text in YAML",
        {
            "settings.yaml": "rate: 1e-3\n",
            "train.py": """\
import torch
import yaml

settings = yaml.safe_load(open("settings.yaml"))
model = torch.nn.Linear(2, 2)
torch.optim.Adam(model.parameters(), lr=settings["rate"])
""",
        },
    ),
    Broken(
        "abbreviated attribute",
        {
            "block.py": """\
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Linear(4, 4)  # cause

    def forward(self, x):
        return self.attn(x)
""",
            "train.py": "import torch\nfrom block import Block\n\nBlock()(torch.zeros(1, 4))\n",
        },
    ),
    Broken(
        "similar keyword",
        {
            "net.py": "def build(width, dropout=0.0):  # cause\n    return width\n",
            "train.py": "from net import build\n\nbuild(3, drop_out=0.1)\n",
        },
    ),
    Broken(
        "similar key of the samples",
        {
            "data.py": """\
from torch.utils.data import Dataset

class Data(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"ids": [index], "label": index}  # cause
""",
            "train.py": """\
import torch
from torch.utils.data import DataLoader
from data import Data

def collate(samples):
    return torch.tensor([each["labels"] for each in samples])

for batch in DataLoader(Data(), batch_size=2, collate_fn=collate):
    pass
""",
        },
    ),
    Broken(
        "reversed array of another file",
        {
            "frames.py": """\
import numpy as np

def load(n):
    frame = np.zeros((n, n, 3))
    return frame[:, :, ::-1]  # cause
""",
            "train.py": """\
import torch
from frames import load

torch.stack([torch.from_numpy(load(4)) for _ in range(2)])
""",
        },
    ),
    Broken(
        "None from a method of the dataset",
        {
            "data.py": """\
from torch.utils.data import Dataset

class Data(Dataset):
    def __len__(self):
        return 2

    def read(self, index):
        if index == 0:
            return None  # cause
        return 1.0

    def __getitem__(self, index):
        return self.read(index), index
""",
            "train.py": """\
from torch.utils.data import DataLoader
from data import Data

for batch in DataLoader(Data(), batch_size=2):
    pass
""",
        },
        is_repaired=False,
    ),
    Broken(
        "keys of a batch instead of its values",
        {
            "data.py": """\
import torch
from torch.utils.data import Dataset

class Data(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return {"image": torch.zeros(4), "label": index}  # cause
""",
            "train.py": """\
import torch
from torch.utils.data import DataLoader
from data import Data

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2))
for images, labels in DataLoader(Data(), batch_size=2):  # cause
    model(images)
""",
        },
        is_repaired=False,
    ),
    Broken(
        "size of a normalization in one row of JSON",
        {
            "sizes.json": '{"width": 8, "norm": 6}',
            "train.py": """\
import json
import torch
from torch import nn

SIZES = json.load(open("sizes.json"))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(SIZES["norm"])  # cause

    def forward(self, x):
        return self.norm(x)

Net()(torch.zeros(2, SIZES["width"]))
""",
        },
        is_repaired=False,
    ),
    Broken(
        "layers of a plain list in another file",
        {
            "stack.py": """\
from torch import nn

class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2) for _ in range(2)]  # cause
""",
            "train.py": """\
import torch
from stack import Stack

torch.optim.SGD(Stack().parameters(), lr=0.1)
""",
        },
        is_repaired=False,
    ),
]


def _written(folder: Path, project: Broken) -> set[tuple[str, int]]:
    """Write a project, and return the places of its causes."""
    for name, text in project.files.items():
        (folder / name).write_text(text)
    return {
        (name, row)
        for name, text in project.files.items()
        for row, line in enumerate(text.splitlines(), 1)
        if line.endswith("# cause")
    }


def _diagnosed(folder: Path, log: str) -> Diagnosis:
    found = diagnose_log(log.splitlines(), str(folder), OPTIONS)
    assert found is not None
    assert found.causes
    return found


@pytest.mark.parametrize("project", PROJECTS, ids=str)
def test_the_lines_of_the_cause_are_named(project: Broken, tmp_path: Path) -> None:
    wanted = _written(tmp_path, project)
    first = _diagnosed(tmp_path, traceback_of(tmp_path / "train.py")).causes[0]
    spans = [first.finding.span, *(step.span for step in first.evidence)]
    assert wanted <= {
        (Path(span.path).name, row) for span in spans for row in range(span.row, span.end_row + 1)
    }


@pytest.mark.parametrize("project", [each for each in PROJECTS if each.is_repaired], ids=str)
def test_the_repair_makes_the_program_run(project: Broken, tmp_path: Path) -> None:
    _written(tmp_path, project)
    found = _diagnosed(tmp_path, traceback_of(tmp_path / "train.py"))
    finding = found.causes[0].finding
    assert finding.fix is not None
    assert finding.fix.applicability is not Applicability.DISPLAY
    assert isinstance(repaired_cause(found, writes.write), FileRepair)
    with pytest.raises(AssertionError, match="raises nothing"):
        traceback_of(tmp_path / "train.py")


@pytest.mark.parametrize("project", [each for each in PROJECTS if not each.is_repaired], ids=str)
def test_a_cause_with_several_repairs_has_no_patch(project: Broken, tmp_path: Path) -> None:
    _written(tmp_path, project)
    found = _diagnosed(tmp_path, traceback_of(tmp_path / "train.py"))
    assert patch(found, View(str(tmp_path), 100)) == []


def test_two_similar_names_have_no_repair(tmp_path: Path) -> None:
    block = PROJECTS[5]
    _written(tmp_path, block)
    text = block.files["block.py"]
    (tmp_path / "block.py").write_text(text.replace("self.attention = ", "self.attend = self.attention = "))
    found = _diagnosed(tmp_path, traceback_of(tmp_path / "train.py"))
    assert found.causes[0].finding.fix is None
