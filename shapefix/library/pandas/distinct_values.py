"""Different values of a column: all of them, their number, and the largest number."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, distinct, elements
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, integer
from shapefix.library.numpy_arrays import SERIES, as_array, new_array, with_range
from shapefix.library.ops.value_range import different, largest, range_of
from shapefix.library.pandas.columns import column_to_list
from shapefix.library.pandas.tables import known_items
from shapefix.library.registry import declare, method
from shapefix.tensors.layout import contiguous

_TEXTS = "pandas.<texts>"
"""Kind of an array with the different texts of a column."""
_ITEMS = "<items>"

declare(_TEXTS, "builtins.object")


def _different_items(call: Call) -> ListValue | None:
    """Different values of a column without missing ones, in their order; None if they are not known."""
    items = known_items(call.receiver)
    is_plain = items is not None and all(i.value is not None and i.value == i.value for i in items)
    return distinct(items) if is_plain and items is not None else None


@method(SERIES, "nunique")
def count(call: Call) -> Value:
    """Number of different values, without missing ones."""
    known, held = _different_items(call), as_array(call.receiver)
    if call.arguments.positional or call.arguments.keywords or held is None:
        return Unknown()
    return (
        Constant(len(elements(known) or ()))
        if known is not None
        else integer(different(call.place.code, held))
    )


@method(SERIES, "unique")
def unique(call: Call) -> Value:
    """Different values, in the order of their rows."""
    known, held = _different_items(call), as_array(call.receiver)
    if held is None:
        return Unknown()
    if held.dtype is None:
        return Unknown() if known is None else LibraryObject(_TEXTS, {}, call.place, {_ITEMS: known})
    number = different(f"len({call.place.code})", held)
    sizes = [number if known is None else len(elements(known) or ())]
    return with_range(new_array(call, contiguous(sizes), held.dtype), range_of(held))


@method(_TEXTS, "__iter__", "tolist", "copy")
def items(call: Call) -> Value:
    found = call.receiver.fields.get(_ITEMS) if isinstance(call.receiver, LibraryObject) else None
    return ListValue(elements(found)) if isinstance(found, ListValue) else Unknown()


@method(_TEXTS, "__len__", "@size")
def length(call: Call) -> Value:
    found = elements(items(call))
    return Unknown() if found is None else Constant(len(found))


@method(SERIES, "max")
def largest_number(call: Call) -> Value:
    """Largest number of a column of whole numbers."""
    held, given = as_array(call.receiver), call.arguments
    known = largest(call, held) if held is not None and not given.positional and not given.keywords else None
    return Unknown() if known is None else integer(known.most)


@method(SERIES, "__iter__")
def values(call: Call) -> Value:
    """Values of a column one by one."""
    return column_to_list(call)
