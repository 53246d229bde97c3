"""dtypes, written as torch names them ("float32", "int64", "bool"), and type promotion."""

from __future__ import annotations

from typing import Final

_INTEGERS: Final = ("uint8", "int8", "int16", "int32", "int64")
_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")
_COMPLEX: Final = ("complex32", "complex64", "complex128")

DTYPES: Final = frozenset({"bool", *_INTEGERS, *_FLOATS, *_COMPLEX})
"""Supported dtypes."""

ALIASES: Final = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}
"""torch's aliases of dtypes: `torch.long` is `torch.int64`."""

_PARTS: Final = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_FROM_PARTS: Final = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_SCALARS: Final = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}


def named(name: str) -> str | None:
    """Canonical name of the dtype `torch.<name>`; None if it is unsupported or not a dtype."""
    return ALIASES.get(name, name if name in DTYPES else None)


def is_floating(dtype: str) -> bool:
    """Check for a real floating-point dtype."""
    return dtype in _FLOATS


def is_complex(dtype: str) -> bool:
    """Check for a complex dtype."""
    return dtype in _COMPLEX


def can_require_grad(dtype: str) -> bool:
    """Check for a floating or complex dtype: tensors of others cannot require gradients."""
    return is_floating(dtype) or is_complex(dtype)


def is_integral(dtype: str) -> bool:
    """Check for an integer dtype; bool does not count."""
    return dtype in _INTEGERS


def promote(one: str, two: str) -> str:
    """Result dtype of an operation on two tensors of these dtypes, both of rank 1 or more."""
    if one == two or two == "bool":
        return one
    if one == "bool":
        return two
    low, high = sorted((one, two), key=_category)
    if _category(low) < _category(high):
        if is_complex(high) and is_floating(low):
            return _FROM_PARTS[promote(_PARTS[high], low)]
        return high
    if is_complex(one):
        return max(one, two, key=_COMPLEX.index)
    if is_floating(one):
        return "float32" if {one, two} == {"float16", "bfloat16"} else max(one, two, key=_FLOATS.index)
    if {one, two} == {"uint8", "int8"}:
        # Neither range contains the other.
        return "int16"
    return max(one, two, key=_INTEGERS.index)


def promote_scalar(dtype: str, scalar: type[bool] | type[int] | type[float] | type[complex]) -> str:
    """Result dtype of an operation on a tensor of rank 1 or more and a Python scalar of this type."""
    return promote_zero_dim(dtype, _SCALARS[scalar])


def promote_zero_dim(dtype: str, zero_dim: str) -> str:
    """Result dtype of an operation on a tensor of rank 1 or more and one of rank 0.

    The rank-0 tensor changes the dtype only if its category (bool, integer, float, complex) is higher.
    """
    if is_complex(zero_dim) and is_floating(dtype):
        # The precision stays, except for bfloat16: it has no complex counterpart.
        return _FROM_PARTS.get(dtype, "complex64")
    return promote(dtype, zero_dim) if _category(dtype) < _category(zero_dim) else dtype


def _category(dtype: str) -> int:
    if dtype == "bool":
        return 0
    return 3 if is_complex(dtype) else 2 if is_floating(dtype) else 1
