"""The sizes in the words of torch are those of the dimension compared first."""

from __future__ import annotations

import pytest
import torch
from checking import Check

SHORTCUT = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(16, 24, 3, stride=2, padding=1)

    def forward(self, x):
        return self.down(x) + x


x = torch.randn(8, 16, {size}, {size})
Block()(x)
"""


def test_sizes_of_an_unknown_image_are_left_out(check: Check) -> None:
    (found,) = check(SHORTCUT.format(size="n"))
    assert found.error is not None
    assert found.error.message == "The size of tensor a ... must match the size of tensor b"


def test_sizes_of_a_known_image_are_those_of_torch(check: Check) -> None:
    (found,) = check(SHORTCUT.format(size=10))
    with pytest.raises(RuntimeError) as raised:
        exec(SHORTCUT.format(size=10), {"__name__": "script", "torch": torch})
    assert found.error is not None
    assert str(raised.value).startswith(found.error.message)
