"""In-place operations of torch: which ones exist, and which reject a tensor whose elements share memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from checking import Check

from shapefix.library.ops.elementwise import UNARY
from shapefix.library.ops.in_place import BINARY_WRITES, FUNCTIONS, STRETCHED, UNARY_WRITES
from shapefix.tensors.ops import BINARY_NAMES

_OPERANDS = ("one", "one, 0.5", "one, one", "", "0.5")
_SHARED = "more than one element of the written-to tensor refers to a single memory location"


def _outcomes(name: str, rows: int) -> Iterator[str]:
    """What torch makes of `x.name(…)` for floats and whole numbers: the text of its error, or of success.

    x has the sizes [2, 3], and so many rows in memory; the operands have one row.
    """
    for dtype in (torch.float32, torch.int64):
        for operands in _OPERANDS:
            x = torch.full((rows, 3), 2, dtype=dtype).expand(2, 3)
            one = torch.ones(1, 3, dtype=dtype)
            try:
                eval(f"x.{name}({operands})", {"x": x, "one": one})
            except TypeError:
                continue
            except RuntimeError as error:
                yield str(error)
            else:
                # Whole numbers are never nan: nothing is written.
                if not (name == "nan_to_num_" and dtype is torch.int64):
                    yield "accepted"


def test_in_place_methods_are_those_of_torch() -> None:
    methods = {f"{name}_" for name in (*UNARY, *BINARY_NAMES) if hasattr(torch.Tensor, f"{name}_")}
    assert methods == {*UNARY_WRITES, *BINARY_WRITES}


def test_in_place_functions_are_those_of_torch() -> None:
    written = (*UNARY_WRITES, *BINARY_WRITES)
    assert {name for name in written if hasattr(torch, name)} == set(FUNCTIONS)


@pytest.mark.parametrize("name", [*UNARY_WRITES, *BINARY_WRITES])
def test_a_write_into_shared_memory_is_rejected(name: str) -> None:
    outcomes = list(_outcomes(name, rows=1))
    assert any(_SHARED in text for text in outcomes)
    assert "accepted" not in outcomes


@pytest.mark.parametrize("name", sorted(STRETCHED - {"masked_fill_", "masked_scatter_"}))
def test_an_operand_is_expanded_to_the_sizes_of_the_tensor(name: str) -> None:
    assert "accepted" in _outcomes(name, rows=2)


@pytest.mark.parametrize("use", ["t[:, 0]", "t.view(3, 5)", "t.masked_fill_(s > 0, 0.0)"])
def test_out_has_the_sizes_of_the_result(use: str, check: Check) -> None:
    text = f"import torch\n\nt, s = torch.zeros(15), torch.randn(3, 5)\ntorch.mul(s, s, out=t)\n{use}\n"
    exec(text, {})
    assert not check(text, ["SF507", "SF510"])
