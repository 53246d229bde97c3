"""A value that is None on some paths: what is done with it later holds for the other paths."""

from __future__ import annotations

import pytest
from checking import Check
from differential import IMPORTS, compare, revealed

from shapefix.interpreter.values import present

VALUES = {
    "tensor": "torch.ones(4, 5)",
    "list": "[torch.ones(4, 5), torch.ones(4, 5)]",
    "tuple": "(torch.ones(4, 5), torch.zeros(4))",
}
USES = [
    ("tensor", "value + 1"),
    ("tensor", "1 + value"),
    ("tensor", "value[0]"),
    ("tensor", "value.sum(0)"),
    ("tensor", "torch.cat([value, value])"),
    ("tensor", "torch.relu(value)"),
    ("tensor", "(value, 3)"),
    ("tensor", "[value, value]"),
    ("tensor", "value if value is not None else torch.zeros(2)"),
    ("tensor", "torch.zeros(2) if value is None else value"),
    ("tensor", "value is None"),
    ("list", "value[0]"),
    ("list", "len(value)"),
    ("list", "torch.stack(value)"),
    ("list", "[each + 1 for each in value]"),
    ("list", "value or torch.zeros(3)"),
    ("tuple", "value[1]"),
    ("tuple", "torch.cat((value[0], value[1][:, None]), 1)"),
    ("tuple", "value == None"),
]


@pytest.mark.parametrize(("kind", "use"), USES)
def test_what_is_known_is_what_torch_makes(kind: str, use: str) -> None:
    source = f"value = None\nif flag():\n    value = {VALUES[kind]}\nreveal({use})"
    ours = present(revealed(source)[0])
    for is_there in (True, False):
        seen: list[object] = []
        try:
            exec(IMPORTS + source, {"flag": lambda is_there=is_there: is_there, "reveal": seen.append})
        except (TypeError, AttributeError):
            assert not is_there
            continue
        if seen[0] is not None:
            compare(ours, seen[0])


def test_a_tensor_that_may_be_none_has_its_sizes(check: Check) -> None:
    code = """
import torch
from torch import nn

def load(path):
    if path is None:
        return None
    return torch.zeros(8, 16)

x = load(input() or None)
nn.Linear(32, 4)(x)
mask = None
if input():
    mask = torch.ones(3, 4)
torch.zeros(3, 5) * mask
if mask is not None:
    torch.zeros(3, 6) * mask
"""
    assert [(each.code, each.span.row) for each in check(code, {"SF501", "SF510"})] == [
        ("SF501", 11),
        ("SF510", 15),
        ("SF510", 17),
    ]


def test_none_is_not_taken_for_a_tensor(check: Check) -> None:
    code = """
import torch
from torch import nn

def attend(x, mask=None):
    if mask is not None:
        x = x * mask
    return x

def make(flag):
    return torch.ones(2, 3) if flag else None

mask = make(input())
attend(torch.zeros(2, 3), mask)
if mask is None:
    mask = torch.ones(4, 5)
    attend(torch.zeros(4, 5), mask)
weight = None
for step in range(3):
    if weight is None:
        weight = torch.ones(3)
    nn.CrossEntropyLoss(weight=weight)(torch.zeros(2, 3), torch.zeros(2).long())
"""
    assert not check(code)
