"""Modules of the code that a loop creates: any of them stands for all, as far as they are alike."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import torch
from revealed import analysed

HEAD = """
import copy
import sys
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)
        self.scale = nn.Parameter(torch.ones(out, 1, 1))

    def forward(self, x):
        return self.conv(x) * self.scale

class Pair(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.first = Block(channels, out)
        self.rest = nn.Sequential(nn.BatchNorm2d(out), nn.ReLU(), Block(out, out))

    def forward(self, x):
        return self.rest(self.first(x))

class Net(nn.Module):
    def __init__(self, n, widths):
        super().__init__()
        self.blocks = nn.ModuleList()
BODY

    def forward(self, x):
        results = []
        for block in self.blocks:
            y = block(x)
            results.append(tuple(y.shape))
            SHOW
        return results
"""
ALIKE = {
    "comprehension over an unknown number": "self.blocks = nn.ModuleList([Block(4, 6) for _ in range(n)])",
    "comprehension over a large number": "self.blocks = nn.ModuleList([Pair(4, 6) for i in range(12)])",
    "loop over an unknown number": "for _ in range(n):\n    self.blocks.append(Pair(4, 6))",
    "loop over a large number": "for i in range(12):\n    self.blocks.append(Block(4, 6))",
    "a plain list first": (
        "made = []\nfor i in range(n):\n    made.append(Block(4, 6))\nself.blocks = nn.ModuleList(made)"
    ),
    "copies of one": "one = Block(4, 6)\nself.blocks = nn.ModuleList([copy.deepcopy(one) for _ in range(n)])",
    "containers of modules": (
        "self.blocks = nn.ModuleList([nn.Sequential(Block(4, 5), nn.ReLU(), Pair(5, 6)) for _ in range(n)])"
    ),
}
DIFFERENT = {
    "the width of the pass": "self.blocks = nn.ModuleList([Block(4, width) for width in widths])",
    "a width carried along": (
        "out = 6\nfor _ in range(n):\n    self.blocks.append(Block(4, out))\n    out = out + 2"
    ),
    "a width that a helper counts": (
        "left = list(widths)\nself.blocks = nn.ModuleList([Block(4, left.pop()) for _ in range(n)])"
    ),
    "a width set by the first pass": (
        "out = 6\nfor _ in range(n):\n    self.blocks.append(Pair(4, out))\n    out = 8"
    ),
    "another class after the first pass": (
        "cls = Block\nfor _ in range(n):\n    self.blocks.append(cls(4, 6))\n    cls = nn.Identity\n"
        "    cls = lambda channels, out: nn.Conv2d(channels, 8, 1)"
    ),
}


def shown(body: str, folder: Path) -> tuple[list[int | None] | None, set[tuple[int, ...]]]:
    """Sizes of the blocks' results: as shapefix reveals them, None for an unknown one; and those in torch."""
    text = HEAD.replace("BODY", textwrap.indent(body, " " * 8))
    names: dict[str, object] = {}
    exec(compile(text.replace("SHOW", "pass"), "net.py", "exec"), names)
    net = names["Net"](3, [6, 8, 10])  # type: ignore[operator]
    actual = set(net(torch.zeros(2, 4, 5, 5)))
    run = (
        "\nnet = Net(int(sys.argv[1]), [int(each) for each in sys.argv[2:]])\nnet(torch.zeros(2, 4, 5, 5))\n"
    )
    (answer,) = {each.message for each in analysed(text.replace("SHOW", "reveal(y)") + run, folder).reveals}
    sizes = re.search(r"\[(.*?)\]", answer)
    if sizes is None or sizes[1] == "...":
        return None, actual
    return [int(size) if size.isdigit() else None for size in sizes[1].split(", ")], actual


@pytest.mark.parametrize("body", ALIKE.values(), ids=ALIKE)
def test_modules_created_alike_are_known(body: str, tmp_path: Path) -> None:
    sizes, actual = shown(body, tmp_path)
    assert sizes is not None
    assert {tuple(sizes)} == actual


@pytest.mark.parametrize("body", DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_between_modules_is_unknown(body: str, tmp_path: Path) -> None:
    sizes, actual = shown(body, tmp_path)
    assert len(actual) > 1
    for size in actual if sizes is not None else ():
        assert all(known in (None, number) for known, number in zip(sizes or (), size, strict=True))
