"""Indexing does not state the rank of a tensor: further dimensions may follow, as torch has it."""

from __future__ import annotations

import pytest
from checking import Check

INDEXES = ("[0, :, :]", "[:, 0, :]", "[:, :2, :]", "[1, 0, :]", "[:, :, :]")
USES = (
    "y = nn.Conv2d(3, 4, 3)(y)",
    "y = nn.Conv1d(3, 4, 2)(y)",
    "y = nn.MaxPool2d(2)(y)",
    "y = nn.BatchNorm2d(3)(y)",
    "y = y.transpose(1, 2)",
    "y = y.transpose(2, 3)",
    "y = y.permute(0, 2, 1)",
    "y = y.permute(0, 2, 3, 1)",
    "y = y.squeeze(2)",
    "y = torch.relu(y).size(3)",
    "a, b, c = y.shape",
    "a, b, c, d = y.float().shape",
    "y = y.sum(dim=(1, 2))",
    "y = y.mean(3)",
    "y = torch.cat([y, y], 2)",
    "y = y[0, 0, 0]",
    "y = y.flatten(2)",
    "y = x.transpose(3, 4)",
    "y = x.unfold(3, 2, 1)",
    "y = y @ torch.zeros(3, 3)",
    "y = torch.bmm(y, y)",
)
FUNCTION = """
import torch
from torch import nn

def run(x):
    {before}
    y = x{index}
    {use}
    return y
"""
SHAPE_RULES = ("SF501", "SF502", "SF503", "SF504", "SF506", "SF507", "SF510", "SF511")


def _runs(text: str) -> bool:
    """Check whether the function runs for a tensor of any rank."""
    import torch

    namespace: dict[str, object] = {}
    exec(text, namespace)
    run = namespace["run"]
    assert callable(run)
    for rank in range(1, 7):
        try:
            run(torch.zeros((3,) * rank))
        except (RuntimeError, IndexError, ValueError):
            continue
        return True
    return False


@pytest.mark.parametrize("before", ["pass", "b, t = x.size(0), x.size(1)"])
@pytest.mark.parametrize("use", USES)
def test_what_runs_for_some_rank_is_right(before: str, use: str, check: Check) -> None:
    texts = [FUNCTION.format(before=before, index=index, use=use) for index in INDEXES]
    runs = [text for text in texts if _runs(text)]
    assert runs
    for text in runs:
        assert not check(text, SHAPE_RULES), text


@pytest.mark.parametrize(
    "use",
    [
        "y = y.reshape(-1, 4); a, b, c = y.shape",
        "y = nn.Linear(4, 2)(nn.Linear(3, 5)(y))",
    ],
)
def test_what_fails_for_every_rank_is_found(use: str, check: Check) -> None:
    text = FUNCTION.format(before="pass", index="[:, 0, :]", use=use)
    assert not _runs(text)
    assert len(check(text, SHAPE_RULES)) == 1
