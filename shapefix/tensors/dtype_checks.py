"""Which dtypes losses, layers and products refuse. All raise WrongDtype where torch does, for certain.

A dtype that is not known is None, and never refused. What autocast may cast is only refused where the caller
says that it is out of the question: autocast casts halves and float32 to each other, and nothing else.
"""

from __future__ import annotations

from shapefix.tensors.dtypes import is_complex, is_floating
from shapefix.tensors.errors import WrongDtype

IDS = ("int64", "uint8")
"""What class ids may be."""
INDICES = ("int64", "int32")
"""What indices of an embedding may be."""
FLOATS = ("float32", "float64", "float16", "bfloat16")
_CAST = frozenset({"float32", "float16", "bfloat16"})


def is_integral_or_bool(dtype: str | None) -> bool:
    """Whether the dtype is known to be a whole number's, or bool."""
    return dtype is not None and not is_floating(dtype) and not is_complex(dtype)


def class_ids(scores: str | None, target: str | None, probabilities: bool | None, rank: int | None) -> None:
    """Cross entropy: class ids are int64, probabilities of classes floating.

    rank counts the dimensions of the scores: for up to two of them, class ids may be uint8 as well.
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
    """An operand that must be floating."""
    if is_integral_or_bool(dtype):
        assert dtype is not None
        raise WrongDtype(f"not implemented for {dtype}", dtype, FLOATS, operand)


def one_of(dtype: str | None, wanted: tuple[str, ...], operand: int) -> None:
    """An operand of one of these dtypes."""
    if dtype is not None and dtype not in wanted:
        raise WrongDtype(f"expected one of {wanted} but found {dtype}", dtype, wanted, operand)


def equal(prediction: str | None, target: str | None, autocast: bool) -> None:
    """A target of exactly the prediction's dtype, and both floating: binary cross entropy."""
    floating(target, 1)
    floating(prediction)
    if prediction is None or target is None or not differ(prediction, target, autocast):
        return
    raise WrongDtype(f"Found dtype {target} but expected {prediction}", target, (prediction,), 1, other=0)


def differ(one: str, two: str, autocast: bool) -> bool:
    """Whether two dtypes are different, and stay so; autocast says whether autocast may be at work."""
    return one != two and not (autocast and one in _CAST and two in _CAST)


def some_floating(prediction: str | None, target: str | None) -> None:
    """Mean squares and their like: one of the two must be floating."""
    if is_integral_or_bool(prediction) and is_integral_or_bool(target):
        assert prediction is not None
        raise WrongDtype(f"not implemented for {prediction}", prediction, FLOATS, 0)


def not_bool(*dtypes: str | None) -> None:
    """Operands that are subtracted: there is no subtraction of bool."""
    for number, dtype in enumerate(dtypes):
        if dtype == "bool":
            raise WrongDtype("Subtraction with a bool tensor is not supported", dtype, FLOATS, number)


def product(one: str | None, two: str | None, autocast: bool, first: int = 0) -> None:
    """Two factors of a matrix product; first is the number of the left one among the operands."""
    if one is None or two is None or not differ(one, two, autocast):
        return
    odd = 0 if is_integral_or_bool(one) or (one == "float64" and not is_integral_or_bool(two)) else 1
    have, want = (one, two) if odd == 0 else (two, one)
    message = f"expected m1 and m2 to have the same dtype, but got: {one} != {two}"
    raise WrongDtype(message, have, (want,), first + odd, other=first + 1 - odd)


def weighted(dtype: str | None, weight: str | None, autocast: bool) -> None:
    """What a layer multiplies with its weight, which is floating."""
    if dtype is None or is_complex(dtype):
        return
    if is_integral_or_bool(dtype):
        want = FLOATS if weight is None else (weight,)
        raise WrongDtype(f"mat1 and mat2 must have the same dtype, but got {dtype}", dtype, want, weight=True)
    if weight is not None and differ(dtype, weight, autocast):
        message = f"mat1 and mat2 must have the same dtype, but got {dtype} and {weight}"
        raise WrongDtype(message, dtype, (weight,), weight=True)
