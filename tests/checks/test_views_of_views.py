"""Views of views: rows cut into a computed number of pieces are no transpose, sizes in another order are."""

from __future__ import annotations

import pytest
from checking import Check

CODE = """
import torch

def run(x):
    rows = x.view(8, 64, 10)
    return rows.{view}

pieces = run(torch.arange(5120.0))
"""
VIEWS = {"view(-1, 8, 10)": False, "reshape(-1, 8, 10)": False, "view(64, 8, 10)": True}


@pytest.mark.parametrize(("view", "is_found"), VIEWS.items())
def test_a_number_of_pieces_is_no_moved_dimension(check: Check, view: str, is_found: bool) -> None:
    assert bool(check(CODE.format(view=view), ["SF103"])) is is_found


SHOWN = """\
import torch
from data import loader

conv = torch.nn.Conv2d(3, 3, 3)


def show(images, h, w):
    return images.reshape(images.size(0), h, w, 3)


pictures = {pictures}
_, height, width, _ = pictures.shape
{calls}
"""
KNOWN = "torch.arange(480).view(8, 4, 5, 3) * 2"
OPEN = "conv(next(iter(loader))).permute(0, 2, 3, 1)"
RIGHT, SWAPPED = "show(pictures, height, width)", "show(pictures, width, height)"


@pytest.mark.parametrize(
    ("pictures", "calls", "fixes"),
    [
        (KNOWN, [SWAPPED], [1]),
        (KNOWN, [RIGHT, SWAPPED], [0]),
        (OPEN, [SWAPPED], [1]),
        (OPEN, [RIGHT, SWAPPED], []),
        (OPEN, [RIGHT], []),
    ],
)
def test_a_view_that_is_right_for_other_calls_is_not_repaired(
    pictures: str, calls: list[str], fixes: list[int], check: Check
) -> None:
    found = check(SHOWN.format(pictures=pictures, calls="\n".join(calls)), ["SF103"])
    assert [len(each.fixes) for each in found] == fixes
