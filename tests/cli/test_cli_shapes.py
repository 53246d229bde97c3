"""`shapefix shapes`: the source of a model with the sizes in it."""

from __future__ import annotations

import json

import pytest
from command_line import Project, program, project_in_a_folder, shapefix  # noqa: F401

MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, wider):
        super().__init__()
        self.conv = nn.Conv2d(channels, wider, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


class Net(nn.Module):
    def __init__(self, channels, classes=10):
        super().__init__()
        self.first = Block(channels, 16)
        self.blocks = nn.ModuleList([Block(16, 16), Block(16, 16)])
        self.head = nn.Linear(16, classes)

    def forward(self, x, mask=None):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        B, C, H, W = x.shape
        rows = x.flatten(2).transpose(1, 2)
        if mask is not None:
            rows = rows * mask
        return self.head(rows), rows.mean(1)
"""
SCRIPT = """\
import torch
from model import Net

net = Net(3)
scores, rows = net(torch.zeros(8, 3, 32, 32))
net(torch.zeros(2, 3, 32, 32))
"""


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def listed(*arguments: str) -> list[str]:
    """The rows that a command line shows, which must work."""
    ran = shapefix("shapes", *arguments)
    assert (ran.code, ran.err) == (0, "")
    assert all(line == line.rstrip() for line in ran.out.splitlines())
    return ran.out.splitlines()


def test_every_row_with_what_it_assigns(project: Project) -> None:
    project(model=MODEL)
    assert listed("model.py:Net", "--input", "x: f32[8, 3, H, W]") == [
        "Net.forward (model.py:21), with the given input",
        "21 | def forward(self, x, mask=None):   x           f32[8, 3, H, W]",
        "   |                                    mask        None",
        "22 |     x = self.first(x)              x           f32[8, 16, H, W]",
        "23 |     for block in self.blocks:      block       Block",
        "24 |         x = x + block(x)           x           f32[8, 16, H, W]",
        "25 |     B, C, H, W = x.shape           B, C, H, W  8, 16, H, W",
        "26 |     rows = x.flatten(2).transpose(1, 2)",
        "   |                                    rows        f32[8, H*W, 16]",
        "   |                                                  strides (16*H*W, 1, H*W)",
        "27 |     if mask is not None:",
        "28 |         rows = rows * mask         not run",
        "29 |     return self.head(rows), rows.mean(1)",
        "   |                                    return[0]   f32[8, H*W, 10]",
        "   |                                    return[1]   f32[8, 16]",
    ]


def test_the_sizes_of_the_first_call_that_the_program_makes(project: Project) -> None:
    project(model=MODEL, train=SCRIPT)
    head, more, first, *_ = listed("train.py:Net")
    assert head + more == (
        "Net.forward (model.py:21), called at train.py:5, the first of 2 calls (1 with    other sizes)"
    )
    assert first.endswith("x           f32[8, 3, 32, 32]")


def test_without_a_call_the_arguments_are_unknown_and_the_option_is_suggested(project: Project) -> None:
    project(model=MODEL)
    shown = "\n".join(listed("model.py:Net"))
    assert 'specify the input:\n    --input "x: f32[B, C, H, W]"\n' in shown
    assert "[B, 16, H, W]" in shown


def test_a_constructor_argument_is_called_by_its_name(project: Project) -> None:
    project(model=MODEL.replace("classes=10", "classes"))
    assert "f32[2, 64, classes]" in "\n".join(listed("model.py:Net", "-i", "x: f32[2, 3, 8, 8]"))


def test_all_modules_of_a_file(project: Project) -> None:
    project(model=MODEL)
    heads = [line for line in listed("model.py") if line.startswith(("Block", "Net"))]
    assert [head.partition(" ")[0] for head in heads] == ["Block.forward", "Net.forward"]
    assert "called at model.py:22, the first of 3 calls" not in heads[1]


def test_functions_and_methods_by_their_name(project: Project) -> None:
    project(
        loss="import torch\n\n\ndef loss(a, b=2):\n    c = a * b\n    return c.mean()\n",
        model=MODEL.replace("def forward(self, x, mask", "def encode(self, x, mask"),
    )
    assert listed("loss.py:loss", "-i", "a: f64[T]")[3].split() == [
        "5",
        "|",
        "c",
        "=",
        "a",
        "*",
        "b",
        "c",
        "f64[T]",
    ]
    assert listed("loss.py")[0].startswith("loss (loss.py:4)")
    assert listed("model.py:Net.encode")[0].startswith("Net.encode (model.py:21)")


def test_where_torch_raises(project: Project) -> None:
    project(model=MODEL.replace("nn.Linear(16, classes)", "nn.Linear(17, classes)"))
    shown = " ".join("\n".join(listed("model.py:Net", "-i", "x: f32[8, 3, 4, 4]")).split())
    assert "^ error[SF501]: `self.head` expects 17 features but gets 16;" in shown


def test_each_pass_of_a_loop_in_which_sizes_change(project: Project) -> None:
    project(
        model="""\
import torch


def halve(x):
    for _ in range(3):
        x = x[:, ::2]
    return x
"""
    )
    rows = listed("model.py:halve", "-i", "x: f32[2, 64]")
    assert [row.partition("f32")[2] for row in rows[3:6]] == [
        "[2, 32] strides (64, 2)",
        "[2, 16] strides (64, 4)",
        "[2, 8] strides (64, 8)",
    ]


def test_a_loop_of_unknown_length_shows_its_first_pass_and_says_so(project: Project) -> None:
    project(
        model="""\
import torch


def grow(x, times):
    for _ in range(times):
        x = torch.cat([x, x], 1)
    return x
"""
    )
    shown = "\n".join(listed("model.py:grow", "-i", "x: f32[2, 64]"))
    assert "^ note: first pass; later ones may differ" in shown
    assert "f32[2, 128]" in shown


def test_json(project: Project) -> None:
    project(model=MODEL)
    ran = shapefix("shapes", "model.py:Net", "-i", "x: f32[8, 3, H, 32]", "--output-format", "json")
    (entry,) = json.loads(ran.out)
    assert entry["name"] == "Net.forward"
    (held,) = [value for row in entry["rows"] if row["row"] == 22 for value in row["values"]]
    assert held == {
        "name": "x",
        "passes": [
            {
                "text": "f32[8, 16, H, 32]",
                "dtype": "float32",
                "sizes": [8, 16, "H", 32],
                "strides": None,
                "device": "cpu",
            }
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nope.py"], "nope.py: cannot be read: no such file or folder"),
        (["."], ". is a folder; pass a file, or a class in a file: model.py:UNet"),
        (["bad.py"], "bad.py:1:7: cannot be parsed: invalid syntax"),
        (["empty.py"], "this file defines no class with a forward, and no function"),
        (["model.py:Nett"], "no class or function named 'Nett'; did you mean 'Net'?"),
        (["model.py:zzz"], "no class or function named 'zzz'; the file defines Block, Net"),
        (["model.py:nn"], "nn is not a class or function of the project; the file defines Block, Net"),
        (["model.py:Net.encode"], "class Net has no encode; its methods are __init__, forward"),
        (["plain.py:A"], "class A has no forward; its methods are run: name one of them, A.run"),
        (["model.py", "-i", "x: f32[2]"], "--input is for one function; append one of Block, Net after a"),
        (["model.py:Net", "-i", "y: f32[2]"], "Net.forward has no parameter 'y'; its parameters are x, mask"),
        (["model.py:Net", "-i", "f32[2]"], "'f32[2]' is not NAME: VALUE, for example"),
        (["model.py:Net", "-i", "x: f3[2]"], "unknown dtype 'f3'; known are f16, bf16, f32"),
        (["model.py:Net", "-i", "x: f32[2, /]"], "'x: f32[2, /]' cannot be parsed; write it like --input"),
        (["model.py:Net", "-i", "x: f32[2.5]"], "'2.5' is not a size; write numbers, names"),
        (["model.py:Net", "-i", "x: f32[-1]"], "a size of f32[-1] is negative"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_one_line(project: Project, arguments: list[str], expected: str) -> None:
    project(model=MODEL, bad="def f(:", empty="", plain="class A:\n    def run(self):\n        pass\n")
    ran = shapefix("shapes", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {expected}"), ran.err
    assert ran.err.count("\n") == 1


def test_nothing_is_executed(project: Project) -> None:
    folder = project(model=MODEL + "\nopen('ran', 'w')\nraise SystemExit(3)\n")
    ran = program("shapes", str(folder / "model.py"))
    assert ran.returncode == 0
    assert not (folder / "ran").exists()
