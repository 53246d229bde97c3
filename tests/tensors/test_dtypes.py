"""Type promotion agrees with torch."""

from __future__ import annotations

import itertools

import pytest
import torch

from shapefix.tensors import dtypes

NAMES = sorted(dtypes.DTYPES)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(NAMES, NAMES)))
def test_promotion_of_two_tensors(one: str, two: str) -> None:
    assert f"torch.{dtypes.promote(one, two)}" == str(
        torch.promote_types(getattr(torch, one), getattr(torch, two))
    )


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", NAMES)
def test_promotion_with_scalars_and_with_tensors_without_dimensions(name: str) -> None:
    tensor = torch.ones(2, dtype=getattr(torch, name))
    for scalar in (True, 2, 2.5, 2j):
        assert f"torch.{dtypes.promote_scalar(name, type(scalar))}" == str(torch.result_type(tensor, scalar))
    for other in NAMES:
        zero_dim = torch.ones((), dtype=getattr(torch, other))
        assert f"torch.{dtypes.promote_zero_dim(name, other)}" == str(torch.result_type(tensor, zero_dim))


def test_kinds_and_other_names() -> None:
    for name in NAMES:
        dtype = getattr(torch, name)
        assert dtypes.is_floating(name) == dtype.is_floating_point
        assert dtypes.is_complex(name) == dtype.is_complex
        assert dtypes.is_integral(name) == (name.startswith(("int", "uint")))
    for alias, name in dtypes.ALIASES.items():
        assert getattr(torch, alias) is getattr(torch, name)
    assert dtypes.named("long") == "int64"
    assert dtypes.named("float32") == "float32"
    assert dtypes.named("tensor") is None
