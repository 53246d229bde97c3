"""Arrays of numpy with a negative stride: views in reverse order, until a copy of them is made.

torch refuses all of them, even one with a size of 1. Nothing is known once a dimension may be turned back,
or gone.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from shapefix.domains.reversed_views import Reversed, ReversedViewRefused
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.containers import DictValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.joins import PATHS, join_objects
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import (
    NONE,
    Constant,
    LibraryObject,
    Reference,
    Slice,
    Unknown,
    Value,
    facts_of,
    present,
)
from shapefix.library import numpy_dimensions, numpy_operations  # noqa: F401  # their functions are wrapped
from shapefix.library.numpy_arrays import ARRAY
from shapefix.library.registry import Handler, function, wrap_function, wrap_method

_CONVERSIONS = frozenset({
    "torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor",
    "torch.LongTensor", "torch.IntTensor", "torch.BoolTensor",
})  # fmt: skip
_TURNS_IN_A_CIRCLE = 4


def reversed_of(value: Value | None) -> Reversed | None:
    """The negative stride of an array; None for other values."""
    known = facts_of(value).known(Reversed) if isinstance(value, LibraryObject) else None
    return known if isinstance(value, LibraryObject) and value.kind == ARRAY else None


def note_reversed(call: Call, value: Value | None, name: str) -> bool:
    """Report a reversed array as the argument of a conversion to a tensor, and return whether it is one."""
    known = reversed_of(value)
    if known is None:
        return False
    call.ev.emit(ReversedViewRefused(call.place, call.ev.calls, name, known.place, known.certain))
    return known.certain


@after_call
def _note_conversion(call: Call, made: Value) -> None:
    if call.name in _CONVERSIONS and call.arguments.positional:
        note_reversed(call, call.arguments.positional[0], call.name)


def note_reversed_samples(call: Call, one: Value) -> None:
    """Report the reversed arrays in a sample for torch's default collate function."""
    parts = elements(one) if isinstance(one, TupleValue) else None
    if isinstance(one, DictValue):
        parts = tuple(one.fields.values())
    for part in parts or (one,):
        if note_reversed(call, present(part), call.name):
            return


def _with(made: Value, known: Reversed, place: Place) -> Value:
    """The view with its negative stride."""
    if isinstance(made, LibraryObject) and made.kind == ARRAY:
        return LibraryObject(ARRAY, made.arguments, made.place, made.fields, Facts.of(known))
    return LibraryObject(ARRAY, {}, place, {}, Facts.of(known)) if isinstance(made, Unknown) else made


def _turned(call: Call, made: Value, source: Value) -> Value:
    """View of an array in reverse order, or perhaps in order again after two reversals."""
    known = reversed_of(source)
    if known is not None and known.certain:
        return made
    return _with(made, Reversed(call.place, present(source), certain=known is None), call.place)


def _entries(index: Value) -> tuple[Value, ...]:
    return index.items if isinstance(index, TupleValue) else (index,)


def is_reversing(entry: Value) -> bool:
    """Check for a slice with a negative step: `::-1`."""
    step = entry.step if isinstance(entry, Slice) else None
    return isinstance(step, Constant) and type(step.value) is int and step.value < 0


def _is_whole(entry: Value) -> bool:
    """Check for an entry of an index without the loss of a dimension: a slice, `...` or a new one."""
    if isinstance(entry, Constant):
        return entry.value is None or entry.value is Ellipsis
    return isinstance(entry, Slice) or (isinstance(entry, Reference) and entry.name == "numpy.newaxis")


@wrap_method(ARRAY, "__getitem__")
def _part(call: Call, plain: Handler) -> Value:
    made, index = plain(call), call.value(0)
    entries = () if index is None else _entries(index)
    known = reversed_of(call.receiver)
    if not entries or call.receiver is None or not all(map(_is_whole, entries)):
        return made
    if any(map(is_reversing, entries)):
        return _turned(call, made, call.receiver)
    return made if known is None else _with(made, known, call.place)


@hooks.item_of_unknown
def _part_of_unknown(ev: Evaluator, owner: Unknown, index: Value, node: cst.CSTNode) -> Value | None:
    """Only an array takes several slices with a negative step: `image[:, :, ::-1]`."""
    entries = _entries(index)
    is_array = len(entries) > 1 and all(map(_is_whole, entries)) and any(map(is_reversing, entries))
    if not is_array or (owner.tensor is not None and owner.tensor.certain):
        return None
    place = ev.place(node)
    return LibraryObject(ARRAY, {}, place, {}, Facts.of(Reversed(place, owner)))


@wrap_method(ARRAY, "@T")
@wrap_method(ARRAY, "transpose")
@wrap_method(ARRAY, "swapaxes")
@wrap_method(ARRAY, "squeeze")
def _moved(call: Call, plain: Handler) -> Value:
    made, known = plain(call), reversed_of(call.receiver)
    return made if known is None else _with(made, known, call.place)


@wrap_function(
    "numpy.transpose",
    "numpy.swapaxes",
    "numpy.moveaxis",
    "numpy.expand_dims",
    "numpy.squeeze",
    "numpy.asarray",
)
def _moved_by_function(call: Call, plain: Handler) -> Value:
    source = call.arguments.positional[0] if call.arguments.positional else None
    made, known = plain(call), reversed_of(source)
    is_view = known is not None and not (call.name == "numpy.asarray" and len(call.arguments.everything) > 1)
    return _with(made, known, call.place) if known is not None and is_view else made


@wrap_function("numpy.flip", "numpy.fliplr", "numpy.flipud")
def _flipped(call: Call, plain: Handler) -> Value:
    made = plain(call)
    source = call.arguments.positional[0] if call.arguments.positional else None
    if (
        source is None
        or call.arguments.open
        or reversed_of(source) is not None
        or elements(source) is not None
    ):
        return made
    axis = call.value(1, "axis")
    if isinstance(axis, TupleValue) and not axis.items:
        return made
    return _turned(call, made, source)


@function("numpy.rot90")
def rotated(call: Call) -> Value:
    """Array turned by quarters, a view with a negative stride unless it is turned in a circle."""
    source, turns = call.value(0, "m"), call.value(1, "k") or Constant(1)
    if source is None or call.arguments.open:
        return Unknown()
    if not isinstance(turns, Constant) or type(turns.value) is not int or elements(source) is not None:
        return Unknown()
    if turns.value % _TURNS_IN_A_CIRCLE == 0:
        known = reversed_of(source)
        return Unknown() if known is None else _with(Unknown(), known, call.place)
    return _turned(call, Unknown(), source)


def reversed_on_a_path(left: Value, right: Value, depth: int) -> Value | None:
    """Array reversed on one of two paths, such as at random."""
    for one, other in ((left, right), (right, left)):
        known = reversed_of(one)
        if known is None or depth != PATHS:
            continue
        is_same = reversed_of(other) is not None
        if not is_same and known.base is not other:
            return None
        made: Value = NONE
        if isinstance(one, LibraryObject) and isinstance(other, LibraryObject) and other.kind == ARRAY:
            made = join_objects(one, other, 0)
        fields: dict[Any, Any] = made.fields if isinstance(made, LibraryObject) else {}
        both = is_same and known.certain and reversed_of(other).certain  # type: ignore[union-attr]
        fact = Reversed(known.place, known.base, certain=both)
        return LibraryObject(ARRAY, {}, None, fields, Facts.of(fact))
    return None
