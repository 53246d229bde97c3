"""Indices of nonzero elements: their number depends on the data, their dimensions do not."""

from __future__ import annotations

import pytest
from differential import compare, executed, revealed
from hypothesis import given
from hypothesis import strategies as st

from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue

CALLS = (
    "torch.nonzero(x)",
    "x.nonzero()",
    "torch.argwhere(x > 0)",
    "(x > 0).nonzero()",
    "torch.where(x > 0)",
    "torch.nonzero(x, as_tuple=True)",
    "x.nonzero()[:, 0]",
    "torch.where(x > 0)[0]",
    "(x > 0).nonzero().squeeze(-1)",
)


@given(st.lists(st.integers(1, 3), max_size=3), st.sampled_from(CALLS))
def test_what_is_known_is_what_torch_makes(sizes: list[int], call: str) -> None:
    if "0" in call and not sizes:
        call = "torch.nonzero(x)"
    source = f"x = torch.randn({sizes})\nreveal({call})"
    compare(revealed(source)[0], executed(source)[0])


@pytest.mark.parametrize(("call", "rank"), [("torch.nonzero(x)", 2), ("torch.where(x > 0)", 1)])
def test_the_dimensions_are_known(call: str, rank: int) -> None:
    (found,) = revealed(f"x = torch.randn(2, 3, 4)\nreveal({call})")
    tensors = found.items if isinstance(found, TupleValue) else (found,)
    for each in tensors:
        assert isinstance(each, TensorValue)
        assert each.layout is not None
        assert each.layout.rank == rank
        assert each.dtype == "int64"
    assert len(tensors) == (3 if rank == 1 else 1)
