"""Join of two values at the end of two paths: only the facts true on both."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from shapefix.interpreter.containers import Contents, DictValue, EitherTuple, ListValue, TupleValue
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.per_item_sizes import provably_ragged
from shapefix.interpreter.state import Hooks
from shapefix.interpreter.tensor_values import (
    Storage,
    TensorValue,
    join_devices,
    join_rows,
    other_memory,
    requires_grad,
    tensor_row,
)
from shapefix.interpreter.truth import is_none
from shapefix.interpreter.values import (
    FLOAT,
    NUMBER,
    TEXT,
    Constant,
    Float,
    InstanceValue,
    Integer,
    LibraryObject,
    Lost,
    Number,
    Parameter,
    PerhapsNone,
    Reference,
    Unknown,
    Value,
    as_size,
    is_text,
)
from shapefix.tensors.bounds import lower_bound
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import UNBOUNDED, PerItemSize

join_values: Hooks[Callable[[Value, Value, int], Value | None]] = Hooks()
"""Join of two different values other than containers and tensors; None if unknown.

The number is the depth in containers, to be passed on; it is PATHS for the values of two paths.
"""
join_integers: Hooks[Callable[[Value, Value], Value | None]] = Hooks()
"""Join of two integers in a list; None if unknown."""
join_items: Hooks[Callable[[Value, Value, Value], None]] = Hooks()
"""Calls with two items of a list and their join, to add what is true of one or the other."""
DEEPEST = 8
"""Maximum depth of joined containers; a list may contain itself."""
PATHS = -1
"""Depth of a variable with two values on two paths: a run has one of them, unlike the items of a list."""


def join(left: Any, right: Any) -> Any:
    """Join two values, or two contents of a container (layouts, tuples of items)."""
    if left is right:
        return left
    if isinstance(left, Value) and isinstance(right, Value):
        return _join_values(left, right)
    if isinstance(left, Layout) and isinstance(right, Layout):
        return join_layouts(left, right)
    if isinstance(left, Contents) and isinstance(right, Contents):
        return join_contents(left, right)
    if isinstance(left, Storage) and isinstance(right, Storage):
        return other_memory(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(join(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Fact) and left == right:
        return left
    if isinstance(left, Value) or isinstance(right, Value):
        return left if right is None else right if left is None else _unknown(left, right)
    return None


def join_paths(left: Any, right: Any) -> Any:
    """Join the values of a variable, or the contents of a container, on two paths."""
    if left is not right and isinstance(left, Value) and isinstance(right, Value):
        return _join_values(left, right, PATHS)
    return join(left, right)


def join_contents(left: Contents, right: Contents, depth: int = 0) -> Contents:
    """Join the contents of two lists: item by item if both have as many."""
    items, others = left.items, right.items
    axes = left.axes | right.axes
    if items is not None and others is not None and len(items) == len(others):
        joined = tuple(a if a is b else _join_values(a, b, depth) for a, b in zip(items, others, strict=True))
        return Contents(joined, axes=axes)
    element = left.element
    if any(contents.items is None and contents.element is None for contents in (left, right)):
        return Contents(None, None, None, axes)
    for value in (*(items or ()), *(others or ()), right.element):
        if value is not None and value is not element:
            element = value if element is None else _join_items(element, value, depth)
    return Contents(None, element, join_lengths(left.length, right.length), axes)


def join_lengths(left: Size | None, right: Size | None) -> Size | None:
    """Join the lengths of two lists; a varying length in both remains varying."""
    if left is None or right is None or left == right:
        return left if left == right else None
    one, other = provably_ragged(left), provably_ragged(right)
    if one is None or other is None or one.axis is not other.axis:
        return None
    return Size.from_symbol(PerItemSize("length", one.axis, one.source))


def _join_items(left: Value, right: Value, depth: int) -> Value:
    """Join two items; an integer remains one."""
    if left is not right and _is_whole(left) and _is_whole(right):
        sizes = [size for size in (as_size(left), as_size(right)) if size is not None]
        if sizes[0] == sizes[1]:
            return left
        for hook in join_integers:
            known = hook(left, right)
            if known is not None:
                return known
        least = min(max(lower_bound(size), UNBOUNDED) for size in sizes)
        return Integer(Size.symbol("n", least=min(least, 1)))
    joined = _join_values(left, right, depth)
    for note in join_items:
        note(left, right, joined)
    return joined


def join_positions(tuples: EitherTuple) -> list[Value]:
    """Join tuples item by item; an item of some of them is unknown."""
    joined: list[Value] = []
    for position in range(max(len(each.items) for each in tuples.alternatives)):
        items = [each.items[position] for each in tuples.alternatives if position < len(each.items)]
        is_in_all = len(items) == len(tuples.alternatives)
        joined.append(reduce(_join_values, items) if is_in_all else Unknown())
    return joined


def _is_whole(value: Value) -> bool:
    return isinstance(value, Integer) or (isinstance(value, Constant) and type(value.value) is int)


def without_length(contents: Contents) -> Contents:
    """The same contents with an unknown number of items."""
    if contents.items is None:
        return Contents(None, contents.element, None, contents.axes)
    element: Value | None = None
    for item in contents.items:
        element = item if element is None else _join_items(element, item, 0)
    return Contents(None, element, None, contents.axes)


def _join_values(left: Value, right: Value, depth: int = 0) -> Value:
    if left is right:
        return left
    if isinstance(left, Constant) and isinstance(right, Constant):
        a, b = left.value, right.value
        if type(a) is type(b) and a == b:
            return left
        known = _join_by_hooks(left, right, depth)
        if known is not None:
            return known
        if is_text(left) and is_text(right):
            return TEXT
        return _any_number(left, right) if _is_number(left) and _is_number(right) else Unknown()
    if _is_number(left) and _is_number(right):
        return _any_number(left, right)
    if isinstance(left, Integer) and isinstance(right, Integer) and left.size == right.size:
        return left
    if isinstance(left, TensorValue) and isinstance(right, TensorValue):
        return _join_tensors(left, right, depth == PATHS)
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and len(left.items) == len(right.items):
        if depth > DEEPEST:
            return Unknown()
        return TupleValue(
            tuple(_join_values(a, b, depth + 1) for a, b in zip(left.items, right.items, strict=True)),
            left.names if left.names == right.names else (),
        )
    if isinstance(left, (TupleValue, EitherTuple)) and isinstance(right, (TupleValue, EitherTuple)):
        alternatives = tuple(
            each
            for side in (left, right)
            for each in (side.alternatives if isinstance(side, EitherTuple) else (side,))
        )
        return EitherTuple(alternatives) if len(alternatives) <= _MOST_ALTERNATIVES else Unknown()
    if isinstance(left, ListValue) and isinstance(right, ListValue) and depth <= DEEPEST:
        both = ListValue.of(join_contents(left.contents, right.contents, depth + 1))
        both.either = (left, right)
        return both
    if isinstance(left, DictValue) and isinstance(right, DictValue) and depth <= DEEPEST:
        return _join_dictionaries(left, right, depth + 1)
    known = _join_by_hooks(left, right, depth)
    if known is not None:
        return known
    if is_text(left) and is_text(right):
        return TEXT
    if isinstance(left, Reference) and isinstance(right, Reference) and left.name == right.name:
        return left
    if isinstance(left, Parameter) and isinstance(right, Parameter):
        return Parameter(left.modules | right.modules)
    if isinstance(left, PerhapsNone) or isinstance(right, PerhapsNone) or is_none(left) or is_none(right):
        return _join_with_none(left, right, depth)
    unknown = _unknown(left, right)
    tensors = [_possible_tensor(side) for side in (left, right)]
    if tensors[0] is not None and tensors[1] is not None:
        unknown.tensor = _join_tensors(tensors[0], tensors[1], depth == PATHS)
    return unknown


def _possible_tensor(value: Value) -> TensorValue | None:
    """Tensor of a value, or of an unknown value used as one."""
    if isinstance(value, TensorValue):
        return value
    return value.tensor if type(value) in (Unknown, Lost) and isinstance(value, Unknown) else None


_MOST_ALTERNATIVES = 4
"""Tuples of different lengths that a join keeps apart."""
_OPTIONAL = (LibraryObject, InstanceValue, DictValue, TensorValue, ListValue, TupleValue)
"""Values that stay known beside None."""


def _join_with_none(left: Value, right: Value, depth: int) -> Value:
    """Join two values, at least one of them perhaps None."""
    sides = [side.value if isinstance(side, PerhapsNone) else side for side in (left, right)]
    values = [side for side in sides if not is_none(side)]
    known = values[0] if len(values) == 1 else _join_values(values[0], values[1], depth)
    if not isinstance(known, _OPTIONAL):
        return _unknown(left, right)
    for side in (left, right):
        if isinstance(side, PerhapsNone) and side.value is known:
            return side
    return PerhapsNone(known)


def _unknown(left: Any, right: Any) -> Unknown:
    return Lost() if isinstance(left, Lost) or isinstance(right, Lost) else Unknown()


def _join_by_hooks(left: Value, right: Value, depth: int) -> Value | None:
    for hook in join_values:
        known = hook(left, right, depth)
        if known is not None:
            return known
    return None


def _join_dictionaries(left: DictValue, right: DictValue, depth: int) -> Value:
    """Join two dictionaries with the same keys; Unknown for different keys."""
    if left.fields.keys() != right.fields.keys() or left.kind != right.kind:
        return Unknown()
    fields = {key: _join_values(value, right.fields[key], depth) for key, value in left.fields.items()}
    absent = left.absent if left.absent == right.absent else None
    joined = DictValue(fields, left.closed and right.closed, left.kind, absent, left.written)
    if left.rest is not None and right.rest is not None:
        joined.rest = _join_values(left.rest, right.rest, depth)
    return joined


def join_objects(left: LibraryObject, right: LibraryObject, depth: int) -> Value:
    """Join two objects of one class: keep the fields with like values."""
    if depth > DEEPEST:
        return Unknown()
    fields: dict[Any, Any] = {}
    for key in left.fields.keys() & right.fields.keys():
        one, other = left.fields[key], right.fields[key]
        if isinstance(one, Value) and isinstance(other, Value):
            fields[key] = _join_values(one, other, depth)
        elif one == other:
            fields[key] = one
    facts = Facts(
        {kind: join(left.facts[kind], right.facts[kind]) for kind in left.facts.keys() & right.facts.keys()}
    )
    return LibraryObject(left.kind, {}, left.place, fields, facts)


def _is_number(value: Value) -> bool:
    # An int may still be used as a size, and then it must be its own symbol.
    return isinstance(value, Number) or (isinstance(value, Constant) and isinstance(value.value, float))


def _any_number(left: Value, right: Value) -> Number:
    """Either of two numbers: a float if both are."""
    is_float = all(isinstance(each, (Float, Constant)) for each in (left, right))
    return FLOAT if is_float else NUMBER


def _join_tensors(left: TensorValue, right: TensorValue, is_one: bool) -> TensorValue:
    """Join two tensors; one tensor on two paths keeps its rank, unlike two items of a list."""
    same = left.layout == right.layout
    layout = left.layout
    if not same:
        layout = (join_alternatives if is_one else join_layouts)(left.layout, right.layout)
    joined = TensorValue(
        layout,
        dtype=left.dtype if left.dtype == right.dtype else None,
        device=join_devices(left.device, right.device),
        storage=left.storage if left.storage is right.storage else None,
        origin=left.origin if same else None,
        # A write may be a write into either.
        views=tuple(dict.fromkeys((*left.views, *right.views))),
        certain=left.certain and right.certain,
        row=join_rows(tensor_row(left), tensor_row(right)),
    )
    joined.own = left.own and right.own
    joined.graph = requires_grad(left) if requires_grad(left) is requires_grad(right) else None
    joined.cut = left.cut or right.cut
    return joined


def join_layouts(left: Layout | None, right: Layout | None) -> Layout | None:
    """Join two layouts of a tensor: keep the equal sizes; strides are unknown."""
    if left is None or right is None:
        return None
    if left == right:
        return left
    if left.sizes == right.sizes:
        return unknown_strides(left.sizes)
    return None


def join_alternatives(left: Layout | None, right: Layout | None) -> Layout | None:
    """Join the layouts of one tensor on two paths: other sizes than the equal ones are unknown."""
    if left is None or right is None or left.rank != right.rank:
        return None
    pairs = enumerate(zip(left.sizes, right.sizes, strict=True))
    sizes = tuple(one if one == other else Size.symbol(f"size({dim})") for dim, (one, other) in pairs)
    are_contiguous = is_contiguous(left) is True and is_contiguous(right) is True
    return contiguous(sizes) if are_contiguous else unknown_strides(sizes)
