"""Models that code creates with known settings and passes to unknown callers, such as a trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check
from revealed import holds

HEAD = """
import other
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width, classes=3):
        super().__init__()
        self.one = nn.Linear(8, width)
        self.two = nn.Linear(8 + 8, classes)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))
"""
WRONG = {
    "a script": "other.fit(Net(9))\n",
    "a function": "def make(name):\n    return Net(9 if name else 9)\n",
    "a function with unknown settings": "def make(width):\n    return Net(width + 16)\n",
    "a method": "class Maker:\n    def make(self):\n        return Net(9)\n",
    "one branch": "def make(name):\n    if name == 'net':\n        net = Net(9)\n        return net\n",
    "a model around it": (
        "class Outer(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n"
        "        self.net = net\n\n"
        "    def forward(self, x):\n        return self.net(x)\n\n"
        "def make(name):\n    return Outer(Net(9))\n"
    ),
}
RIGHT = {
    "other settings": "other.fit(Net(16))\n",
    "unknown settings": "def make(width):\n    return Net(width)\n",
    "no object": "make = Net\n",
    "an error on purpose": "try:\n    Net(9)\nexcept ValueError:\n    pass\n",
    "another layer": "net = Net(9)\nnet.two = nn.Linear(9, 3)\nother.fit(net)\n",
    "a layer set by unknown code": "net = Net(9)\nnet.two = other.layer(net.two)\nother.fit(net)\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_settings_of_a_created_model_are_known_to_its_forward(text: str, check: Check) -> None:
    (found,) = check(HEAD + text, {"SF501"})
    assert "`self.two` expects 16 features" in found.message
    assert check(HEAD.replace("8 + 8", "width") + text, {"SF501"}) == []


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_nothing_is_assumed_of_other_models(text: str, check: Check) -> None:
    assert check(HEAD + text, {"SF501"}) == []


def test_a_called_model_is_not_run_again(tmp_path: Path) -> None:
    shown = HEAD.replace("return self.two", "reveal(x)  # f32[4, 8]\n        return self.two")
    holds(shown.replace("8 + 8", "width") + "\nNet(9)(torch.zeros(4, 8))\n", tmp_path)


def test_a_model_without_settings_is_run_once(tmp_path: Path) -> None:
    shown = HEAD.replace("width, classes=3", "").replace("width", "16").replace("classes", "3")
    holds(
        shown.replace("self, ):", "self):").replace(
            "return self.two", "reveal(x)  # unknown\n        return self.two"
        )
        + "\nother.fit(Net())\n",
        tmp_path,
    )


def test_modules_are_passed_on_by_a_star(check: Check) -> None:
    code = (
        "import torch\nfrom torch import nn\n"
        "layers = nn.ModuleList([nn.Linear(8, 6)])\nlayers.append(nn.Linear(6, 4))\n"
        "net = nn.Sequential(*layers, nn.Linear({}, 2))\nnet(torch.zeros(3, 8))\n"
    )
    assert check(code.format(4)) == []
    assert [each.code for each in check(code.format(5))] == ["SF502"]


REFUSED = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(8, width)

    def forward(self, x):
        return self.layer(x)

class Stack(nn.Module):
    def __init__(self, block, number):
        super().__init__()
        layers = []
        for _ in range(number):
            layers.append(block({given}))
        self.layers = nn.Sequential(*layers)
        self.first = nn.Linear(4, 8)
        self.last = nn.Linear(16, 2)

    def forward(self, x):
        return self.last(self.layers(self.first(x)))

def make(name):
    return Stack(Block, 1)
"""


@pytest.mark.parametrize(("given", "number"), [("9", 1), ("9, 0.1", 0)])
def test_a_model_that_cannot_be_created_is_not_run(given: str, number: int, check: Check) -> None:
    assert len(check(HEAD + REFUSED.format(given=given), {"SF501"})) == number
