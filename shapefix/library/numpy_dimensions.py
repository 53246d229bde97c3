"""Functions of numpy to add, drop, move or repeat dimensions, and scalar types called with an array."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call, call_library
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, Constant, Reference, Unknown, Value, as_size, integer
from shapefix.library.numpy_arrays import (
    ARRAY,
    as_array,
    new_array,
    numpy_dtype,
    of_same_memory,
    with_numbers_of,
    with_range,
)
from shapefix.library.numpy_signatures import arguments_of_numpy
from shapefix.library.ops.value_range import range_of
from shapefix.library.registry import function, method
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.polynomials import product

_MOVES = {"moveaxis": "torch.movedim", "swapaxes": "torch.transpose"}
_REPEATS = {"repeat": "torch.repeat_interleave", "tile": "torch.tile"}


def _subject(call: Call) -> tuple[TensorValue | None, list[Value]]:
    """Array of a function or method, and the other arguments by position."""
    given = arguments_of_numpy(call)
    values = list(given.values.values())
    held = as_array(call.receiver if call.receiver is not None else values.pop(0))
    return held, values


def _as_torch(call: Call, name: str, held: TensorValue, *others: Value) -> Layout | None:
    """Layout of the result of a function of torch for the same sizes; None if it is not known."""
    if held.layout is None or not all(map(_is_plain, others)):
        return None
    call.ev.silenced += 1
    made = call_library(call.ev, name, Arguments([TensorValue(held.layout), *others]), call.place.node)
    call.ev.silenced -= 1
    return made.layout if isinstance(made, TensorValue) else None


def _is_plain(value: Value) -> bool:
    """Check for an int, or a tuple or list of them."""
    parts = elements(value)
    return all(map(_is_plain, parts)) if parts is not None else as_size(value) is not None or _is_int(value)


def _is_int(value: Value) -> bool:
    return isinstance(value, Constant) and type(value.value) is int


@function("numpy.expand_dims")
def expanded(call: Call) -> Value:
    held, (axis,) = _subject(call)
    if held is None:
        return Unknown()
    layout = _as_torch(call, "torch.unsqueeze", held, axis) if _is_int(axis) else None
    return of_same_memory(new_array(call, layout, held.dtype, held), held)


@method(ARRAY, "squeeze")
@function("numpy.squeeze")
def squeezed(call: Call) -> Value:
    held, (axis,) = _subject(call)
    if held is None:
        return Unknown()
    others = () if isinstance(axis, Constant) and axis.value is None else (axis,)
    return of_same_memory(
        new_array(call, _as_torch(call, "torch.squeeze", held, *others), held.dtype, held), held
    )


@method(ARRAY, "swapaxes")
@function("numpy.moveaxis", "numpy.swapaxes")
def moved(call: Call) -> Value:
    held, (one, other) = _subject(call)
    if held is None:
        return Unknown()
    layout = _as_torch(call, _MOVES[call.name.rpartition(".")[2]], held, one, other)
    return of_same_memory(new_array(call, layout, held.dtype, held), held)


@function("numpy.flip", "numpy.fliplr", "numpy.flipud")
def flipped(call: Call) -> Value:
    """View with negative strides, unknown to shapefix."""
    held = as_array(call.value(0, "m"))
    if held is None:
        return Unknown()
    layout = None if held.layout is None else unknown_strides(held.layout.sizes)
    return new_array(call, layout, held.dtype, held)


@method(ARRAY, "repeat")
@function("numpy.repeat", "numpy.tile")
def repeated(call: Call) -> Value:
    held, others = _subject(call)
    if held is None:
        return Unknown()
    layout = None
    if call.name.endswith("tile"):
        layout = _as_torch(call, "torch.tile", held, others[0])
    else:
        given = [each for each in others if not isinstance(each, Constant) or each.value is not None]
        if all(map(_is_int, given)):
            layout = _as_torch(call, "torch.repeat_interleave", held, *given)
    made = new_array(call, None if layout is None else contiguous(layout.sizes), held.dtype, held)
    return with_range(made, range_of(held))


@function("numpy.ascontiguousarray")
def packed(call: Call) -> Value:
    given = arguments_of_numpy(call)
    held = as_array(given.value("a"))
    if held is None or given.is_none("dtype") is not True:
        return Unknown()
    layout = held.layout
    if layout is not None and not is_contiguous(layout):
        layout = contiguous(layout.sizes)
    return with_numbers_of(call, held, layout, held.dtype)


@function("numpy.float16", "numpy.float32", "numpy.float64", "numpy.single", "numpy.double")
def scalar(call: Call) -> Value:
    """Number of numpy, an array without dimensions; of an array, a converted copy."""
    dtype = numpy_dtype(Reference(call.name))
    value = call.value(0)
    held = as_array(value)
    if held is not None:
        layout = held.layout
        if layout is not None and not is_contiguous(layout):
            layout = unknown_strides(layout.sizes)
        return new_array(call, layout, dtype, held)
    is_number = isinstance(value, Constant) and type(value.value) in (int, float)
    return new_array(call, contiguous([]), dtype) if is_number else Unknown()


@method(ARRAY, "@ndim")
def rank(call: Call) -> Value:
    held = as_array(call.receiver)
    return Unknown("ndim") if held is None or held.layout is None else Constant(held.layout.rank)


@method(ARRAY, "@size")
def number_of_elements(call: Call) -> Value:
    held = as_array(call.receiver)
    if held is None or held.layout is None:
        return Unknown("size")
    return integer(product(held.layout.sizes))


@method(ARRAY, "fill", "sort")
def rewritten(call: Call) -> Value:
    """Write over an array in place: its numbers are others."""
    held = as_array(call.receiver)
    if held is not None:
        held.storage.overwritten = True
    return NONE
