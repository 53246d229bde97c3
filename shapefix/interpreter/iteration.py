"""Items of a loop over a value."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.any_items import any_of
from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import member, outside_bases
from shapefix.interpreter.containers import Contents, DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.dictionaries import Entries, certain_keys, is_complete
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import without_length
from shapefix.interpreter.modules import nodes
from shapefix.interpreter.subscripts import item
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    TEXT,
    Constant,
    InstanceValue,
    LibraryObject,
    Text,
    Unknown,
    Value,
    present,
)
from shapefix.tensors.polynomials import Size

UNROLLED = 8
"""Maximum number of known items for a loop to run item by item."""
UNROLLED_ENTRIES = 32
_MOST_LETTERS = 128
"""Longest text whose letters are kept one by one."""
"""The same for loops over a dictionary, and for statements over texts: each names something else."""


def unrolled(ev: Evaluator, iterable: Value, *, are_texts_alike: bool = True) -> tuple[Value, ...] | None:
    """Items of a loop run item by item; None for one run for all of them.

    are_texts_alike is False for code that may do something else for each text: `setattr(self, name, …)`.
    The allowance of the run bounds nested loops.
    """
    items = elements(iterable)
    if items is None or len(items) > UNROLLED:
        are_names = isinstance(iterable, Entries) or (
            not are_texts_alike and items is not None and all(map(_is_text, items))
        )
        if items is None or len(items) > UNROLLED_ENTRIES or not are_names:
            return None
    if ev.steps > ev.allowance:
        ev.reach_limit()
        return None
    return items


def _is_text(item: Value) -> bool:
    return isinstance(item, Constant) and isinstance(item.value, str)


def some(ev: Evaluator, iterable: Value) -> tuple[Value, ...]:
    """Certain entries of a dictionary; a comprehension also runs over the others."""
    known = iterable.known if isinstance(iterable, Entries) else ()
    return known if len(known) <= UNROLLED_ENTRIES and ev.steps <= ev.allowance else ()


def iterate(ev: Evaluator, iterable: Value, node: cst.CSTNode) -> Value:
    """Convert iterable to a tuple or list, perhaps of an unknown number of items."""
    iterable = present(iterable)
    if isinstance(iterable, (TupleValue, ListValue)):
        return iterable
    if isinstance(iterable, DictValue):
        keys = certain_keys(ev, iterable)
        named = all(type(key) is str for key in iterable.fields)
        return Entries(
            iterable,
            tuple(map(Constant, keys)),
            is_complete(ev, iterable),
            TEXT if named else Unknown(),
        )
    if isinstance(iterable, LibraryObject):
        method = ev.library.method(iterable.kind, "__iter__")
        if method is not None:
            return method(Call(ev, f"{iterable.kind}.__iter__", ev.place(node), Arguments(), iterable))
    if isinstance(iterable, InstanceValue):
        if member(iterable.cls, "__iter__") is not None:
            return call_method(ev, iterable, "__iter__", Arguments(), node)
        for base in outside_bases(iterable.cls):
            method = ev.library.method(base, "__iter__")
            if method is not None:
                return method(Call(ev, f"{base}.__iter__", ev.place(node), Arguments(), iterable))
        if member(iterable.cls, "__getitem__") is not None:
            element = call_method(ev, iterable, "__getitem__", Arguments([Unknown("index")]), node)
            return ListValue(None, element)
    if isinstance(iterable, Text):
        return ListValue(None, TEXT)
    if isinstance(iterable, Constant) and isinstance(iterable.value, str):
        letters = iterable.value
        if len(letters) <= _MOST_LETTERS:
            return ListValue(tuple(map(Constant, letters)))
        return ListValue(None, TEXT, Size.of(len(letters)))
    if isinstance(iterable, TensorValue):
        layout = iterable.layout
        length = layout.sizes[0].value if layout is not None and layout.rank else None
        if length is not None and length <= UNROLLED:
            return ListValue(tuple(item(ev, iterable, Constant(i), node) for i in range(length)))
        return ListValue(None, item(ev, iterable, Constant(0), node))
    return ListValue(None)


def each(ev: Evaluator, iterable: Value) -> Value:
    """Any one item of iterable."""
    if isinstance(iterable, ListValue):
        element = without_length(iterable.contents).element
    else:
        element = without_length(Contents(elements(iterable) or ())).element
    return element if element is not None else Unknown()


def every(ev: Evaluator, iterable: Value) -> Value:
    """Representative of all items, with their numbers and texts."""
    items = elements(iterable)
    return any_of(items) if items else each(ev, iterable)


def item_of_loop(ev: Evaluator, iterable: Value, loop: cst.For | cst.CompFor) -> Value:
    """Item of a loop; that of every pass, unless the code may leave out some of them."""
    leaves_out = ev.frame.module.once(loop, _leaves_out)
    return each(ev, iterable) if leaves_out else every(ev, iterable)


def _leaves_out(loop: cst.CSTNode) -> bool:
    """Check for conditional code in a loop."""
    if isinstance(loop, cst.CompFor):
        return bool(loop.ifs) or (loop.inner_for_in is not None and _leaves_out(loop.inner_for_in))
    return any(isinstance(node, _CONDITIONAL) for node in nodes(loop))


_CONDITIONAL = (
    cst.If,
    cst.Continue,
    cst.Break,
    cst.Try,
    cst.While,
    cst.Match,
    cst.Return,
    cst.Assert,
    cst.Del,
)
