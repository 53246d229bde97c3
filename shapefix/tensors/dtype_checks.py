"""Dtype checks of losses, layers and products. Each raises WrongDtype if torch certainly raises.

An unknown dtype is None and never rejected. autocast casts float16, bfloat16 and float32 to each other and
leaves all other dtypes alone; with `autocast=True` (autocast may be active) a difference among these three is
not rejected.
"""

from __future__ import annotations

from shapefix.tensors.dtypes import is_complex, is_floating
from shapefix.tensors.errors import WrongDtype

IDS = ("int64", "uint8")
"""Valid dtypes of class ids."""
INDICES = ("int64", "int32")
"""Valid dtypes of an embedding's indices."""
FLOATS = ("float32", "float64", "float16", "bfloat16")
_CAST = frozenset({"float32", "float16", "bfloat16"})


def is_integral_or_bool(dtype: str | None) -> bool:
    """Check for a known integer or bool dtype."""
    return dtype is not None and not is_floating(dtype) and not is_complex(dtype)


def class_ids(scores: str | None, target: str | None, probabilities: bool | None, rank: int | None) -> None:
    """Check the dtypes of cross entropy: class ids are int64, class probabilities floating.

    probabilities is None if it is unknown which of the two the target holds. rank is the rank of the scores;
    up to rank 2 class ids may also be uint8.
    """
    ids = IDS if rank is None or rank < 3 else IDS[:1]
    if target is not None:
        fits_ids, fits_probabilities = target in ids, is_floating(target)
        refused = {
            True: not fits_probabilities,
            False: not fits_ids,
            None: not fits_ids and not fits_probabilities,
        }
        if refused[probabilities]:
            want = FLOATS if probabilities else ids
            raise WrongDtype(f"expected target dtype to be one of {want}, but got {target}", target, want, 1)
    floating(scores)


def floating(dtype: str | None, operand: int = 0) -> None:
    """Check an operand required to be floating."""
    if is_integral_or_bool(dtype):
        assert dtype is not None
        raise WrongDtype(f"not implemented for {dtype}", dtype, FLOATS, operand)


def one_of(dtype: str | None, wanted: tuple[str, ...], operand: int) -> None:
    """Check an operand required to have one of the wanted dtypes."""
    if dtype is not None and dtype not in wanted:
        raise WrongDtype(f"expected one of {wanted} but found {dtype}", dtype, wanted, operand)


def equal(prediction: str | None, target: str | None, autocast: bool) -> None:
    """Check the dtypes of binary cross entropy: both floating, the target's equal to the prediction's."""
    floating(target, 1)
    floating(prediction)
    if prediction is None or target is None or not differ(prediction, target, autocast):
        return
    raise WrongDtype(f"Found dtype {target} but expected {prediction}", target, (prediction,), 1, other=0)


def is_cast(dtype: str | None) -> bool:
    """Check for a dtype that autocast converts."""
    return dtype in _CAST


def differ(one: str, two: str, autocast: bool) -> bool:
    """Check that two dtypes differ, even after a cast by autocast if autocast may be active."""
    return one != two and not (autocast and one in _CAST and two in _CAST)


def some_floating(prediction: str | None, target: str | None) -> None:
    """Check the dtypes of mean squared error and similar losses: one of the two must be floating."""
    if is_integral_or_bool(prediction) and is_integral_or_bool(target):
        assert prediction is not None
        raise WrongDtype(f"not implemented for {prediction}", prediction, FLOATS, 0)


def not_bool(*dtypes: str | None) -> None:
    """Check operands of a subtraction: torch does not subtract bool tensors."""
    for number, dtype in enumerate(dtypes):
        if dtype == "bool":
            raise WrongDtype("Subtraction with a bool tensor is not supported", dtype, FLOATS, number)


def product(one: str | None, two: str | None, autocast: bool, first: int = 0) -> None:
    """Check the two factors of a matrix product; first is the operand number of the left one."""
    if one is None or two is None or not differ(one, two, autocast):
        return
    odd = 0 if is_integral_or_bool(one) or (one == "float64" and not is_integral_or_bool(two)) else 1
    have, want = (one, two) if odd == 0 else (two, one)
    message = f"expected m1 and m2 to have the same dtype, but got: {one} != {two}"
    raise WrongDtype(message, have, (want,), first + odd, other=first + 1 - odd)


def weighted(dtype: str | None, weight: str | None, autocast: bool) -> None:
    """Check the input of a layer with a floating-point weight."""
    if dtype is None or is_complex(dtype):
        return
    if is_integral_or_bool(dtype):
        want = FLOATS if weight is None else (weight,)
        raise WrongDtype(f"mat1 and mat2 must have the same dtype, but got {dtype}", dtype, want, weight=True)
    if weight is not None and differ(dtype, weight, autocast):
        message = f"mat1 and mat2 must have the same dtype, but got {dtype} and {weight}"
        raise WrongDtype(message, dtype, (weight,), weight=True)
