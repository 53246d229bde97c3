"""Sizes fixed by a test before an operation."""

from __future__ import annotations

import pytest
import torch
from checking import Check

VIEW = """\
import torch


def flat(x):
    x = x.permute(1, 0, 2)
    time, batch, features = x.shape
    {test}
    return x.view(time * batch, features)


layer = torch.nn.Linear(3, 3)
for x in load():
    print(flat(layer(x.view(x.size(0), -1, 3))))
"""
FIXING = [
    "if batch != {n}:\n        raise ValueError",
    "if not batch == {n}:\n        return x",
    "assert batch == {n}",
    "assert {n} == batch and features > 3",
    "assert x.size(1) == {n}",
    "if batch == {n}:\n        pass\n    else:\n        return x",
]
OPEN = [
    "if batch == {n}:\n        print(x)",
    "if batch != {n}:\n        print(x)",
    "assert batch != {n}",
    "assert batch == {n} or features == 3",
    "assert batch >= {n}",
    "if batch == {n}:\n        return x",
]


@pytest.mark.parametrize("test", FIXING)
def test_a_view_of_one_row_needs_no_gap_to_close(test: str, check: Check) -> None:
    assert torch.zeros(1, 5, 3).permute(1, 0, 2).view(5, 3).shape == (5, 3)
    assert not check(VIEW.format(test=test.format(n=1)), ["SF101"])


@pytest.mark.parametrize("test", [*OPEN, FIXING[2].replace("{n}", "4")])
def test_a_view_of_several_rows_is_still_found(test: str, check: Check) -> None:
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        torch.zeros(4, 5, 3).permute(1, 0, 2).view(20, 3)
    assert [each.code for each in check(VIEW.format(test=test.format(n=1)), ["SF101"])] == ["SF101"]
