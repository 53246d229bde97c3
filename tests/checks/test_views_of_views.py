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
