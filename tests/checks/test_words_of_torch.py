"""Exceptions in findings have torch's words, with all sizes that are known."""

from __future__ import annotations

import re

import pytest
from checking import Check

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

"""
CODES = frozenset({"SF503", "SF506", "SF507", "SF508", "SF510", "SF512"})


@pytest.mark.parametrize(
    ("code", "is_whole"),
    [
        ("F.binary_cross_entropy(torch.rand(64, 1), torch.rand(64))", True),
        ("nn.BCEWithLogitsLoss()(torch.rand(64, 1), torch.rand(64))", True),
        ("torch.dot(torch.rand(2, 2), torch.rand(3))", True),
        ("F.binary_cross_entropy(torch.rand(8), torch.full((8,), 1))", True),
        ("nn.BCELoss()(torch.rand(8).double(), torch.zeros(8).bool())", True),
        ("x = torch.zeros(2, 1)\nx += torch.ones(2, 3)", False),
        ("x = torch.tensor(1.0)\nx += torch.ones(1)", False),
        ("nn.Conv2d(3, 8, 3)(torch.rand(8, 1, 28, 28))", True),
        ("nn.Conv1d(3, 8, 3)(torch.rand(1, 28))", False),
        ("nn.ConvTranspose2d(3, 8, 3)(torch.rand(8, 1, 28, 28))", True),
        ("nn.Conv2d(3, 8, 3, padding=1, padding_mode='reflect')(torch.rand(8, 1, 28, 28))", False),
        ("nn.Conv2d(3, 8, 2, padding='same')(torch.rand(8, 1, 28, 28))", False),
        ("nn.Conv2d(3, 8, 3, padding=(1, 1))(torch.rand(8, 1, 28, 28))", True),
        ("nn.GRU(3, 5, num_layers=2)(torch.rand(7, 4, 3), torch.zeros(2, 6, 5))", True),
        ("nn.LSTM(3, 5)(torch.rand(7, 4, 3), (torch.zeros(1, 4, 5), torch.zeros(1, 8, 5)))", True),
    ],
)
def test_the_sizes_are_those_of_the_exception(check: Check, code: str, is_whole: bool) -> None:
    (found,) = check(HEAD + code + "\n", CODES)
    assert found.error is not None
    assert ("..." not in found.error.message) is is_whole
    with pytest.raises(Exception, match=".*".join(map(re.escape, found.error.message.split("...")))):
        exec(HEAD + code, {})
