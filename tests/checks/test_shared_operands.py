"""Errors with one cause: all of a tensor, and all arguments of one call."""

from __future__ import annotations

import pytest
from checking import Check

from shapefix.report.folding import folded

ARGUMENTS = """\
import torch


def spread(means, scales):
    {first}
    print(means)
    return torch.sqrt(scales).unsqueeze(2)


def main():
    spread(torch.zeros(64), {scales})


main()
"""


@pytest.mark.parametrize(
    ("first", "scales", "entries"),
    [
        ("batch, trials = means.shape", "torch.ones(64)", [2]),
        ("batch, trials = means.shape", "torch.ones(64, 2)", [1]),
        ("scales = scales.flatten(); means.unsqueeze(2)", "torch.ones(2, 32)", [1, 1]),
        ("torch.zeros(64).unsqueeze(2)", "torch.ones(64)", [1, 1]),
        ("torch.nn.Linear(3, 4)(means)", "torch.ones(64)", [1, 1]),
    ],
)
def test_wrong_arguments_of_one_call_are_one_cause(
    check: Check, first: str, scales: str, entries: list[int]
) -> None:
    """Layers, and tensors made in the function, have causes of their own."""
    found = check(ARGUMENTS.format(first=first, scales=scales), {"SF501", "SF507"})
    assert [1 + len(entry.others) for entry in folded(found)] == entries
