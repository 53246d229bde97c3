"""Subscripts: `value[index]`."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.alternatives import join_classes
from shapefix.interpreter.any_items import (
    alternatives,
    any_number,
    any_of,
    entries_of,
    numbers_of,
    without_ends,
)
from shapefix.interpreter.calls import Arguments, Call, call_library, call_method
from shapefix.interpreter.containers import Contents, DictValue, ListValue, Shape, Sizes, TupleValue
from shapefix.interpreter.dictionaries import is_complete
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import TensorUsedAsIndex
from shapefix.interpreter.joins import PATHS, without_length
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import resolved
from shapefix.interpreter.option_flags import OptionText, note_option_loss
from shapefix.interpreter.per_item_sizes import Cut, selected
from shapefix.interpreter.refinement import reject_sizes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    TEXT,
    Constant,
    InstanceValue,
    Integer,
    LibraryObject,
    Slice,
    Text,
    Unknown,
    Value,
    as_size,
    as_tensor,
    integer,
    present,
)
from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import NoSuchDimension
from shapefix.tensors.layout import contiguous, is_contiguous, unknown_strides
from shapefix.tensors.polynomials import Size, divide
from shapefix.tensors.quotients import minimum
from shapefix.tensors.symbols import PerItemSize, RangeItem, SampleIndex


def evaluate_subscript(ev: Evaluator, node: cst.Subscript) -> Value:
    """Value of a subscript in a read."""
    owner = ev.evaluate(node.value)
    index = evaluate_index(ev, node)
    _note_integers(ev, owner, index, node)
    return resolved(ev, item(ev, owner, index, node))


def _note_integers(ev: Evaluator, owner: Value, index: Value, node: cst.Subscript) -> None:
    """Report tensors used as the index of a list, or the bound of a slice."""
    is_list = isinstance(owner, TupleValue)
    if isinstance(owner, ListValue):
        # Little is known of other iterables.
        is_list = bool(owner.items) or not isinstance(owner.element or Unknown(), Unknown)
    is_text = isinstance(owner, Text) or (isinstance(owner, Constant) and isinstance(owner.value, str))
    if not (is_list or is_text or isinstance(owner, TensorValue)):
        return
    entries = index.items if isinstance(index, TupleValue) else (index,)
    for entry, element in zip(entries, node.slice, strict=False):
        part = element.slice
        if isinstance(entry, Slice) and isinstance(part, cst.Slice):
            note_integer(ev, entry.start, part.lower, node, "bound")
            note_integer(ev, entry.stop, part.upper, node, "bound")
        elif isinstance(part, cst.Index) and not isinstance(owner, TensorValue):
            note_integer(ev, entry, part.value, node, "index")


def note_integer(
    ev: Evaluator, value: Value, subject: cst.CSTNode | None, node: cst.CSTNode, role: str
) -> None:
    """Report a tensor of known sizes in the place of an int."""
    if isinstance(value, TensorValue) and value.certain and value.layout is not None and subject is not None:
        ev.emit(TensorUsedAsIndex(ev.place(node), ev.calls, value, value.layout, subject, role))


def evaluate_index(ev: Evaluator, node: cst.Subscript) -> Value:
    """Index between the brackets: a tuple for several entries, a Slice for `a:b`."""
    entries = [_entry(ev, element.slice) for element in node.slice]
    last = node.slice[-1] if node.slice else None
    if len(entries) == 1 and last is not None and not isinstance(last.comma, cst.Comma):
        return entries[0]
    return TupleValue(tuple(entries))


def _entry(ev: Evaluator, entry: cst.BaseSlice) -> Value:
    if isinstance(entry, cst.Index):
        return ev.evaluate(entry.value)
    if isinstance(entry, cst.Slice):
        lower = ev.evaluate(entry.lower) if entry.lower is not None else NONE
        upper = ev.evaluate(entry.upper) if entry.upper is not None else NONE
        step = ev.evaluate(entry.step) if entry.step is not None else NONE
        return Slice(lower, upper, step)
    return Unknown()


def item(ev: Evaluator, owner: Value, index: Value, node: cst.CSTNode) -> Value:
    """Read owner[index] at node."""
    owner = present(owner)
    if isinstance(owner, TensorValue):
        return call_library(ev, "operator.getitem", Arguments([owner, index]), node)
    if isinstance(owner, (TupleValue, ListValue)):
        return _of_sequence(ev, owner, index, node)
    if isinstance(owner, DictValue):
        if isinstance(index, Constant):
            if owner.closed and index.value not in owner.fields:
                for hook in hooks.missing_key:
                    hook(ev, owner, index.value, node)
            return owner.read(index.value)
        if isinstance(index, OptionText) and index.default in owner.fields:
            note_option_loss(ev)
        # For an unknown key: even a column of texts is a list.
        known = any_entry(ev, owner, index) or _any_class(ev, owner)
        return known or (owner.absent(index) if owner.absent is not None else Unknown())
    if isinstance(owner, Shape):
        if isinstance(index, Constant) and isinstance(index.value, int):
            return integer(owner.size(index.value))
        return Unknown()
    if isinstance(owner, LibraryObject):
        method = ev.library.method(owner.kind, "__getitem__")
        if method is not None:
            return method(Call(ev, f"{owner.kind}.__getitem__", ev.place(node), Arguments([index]), owner))
        if isinstance(index, Constant) and index.value in owner.fields:
            value = owner.fields[index.value]
            return value if isinstance(value, Value) else Unknown()
        return Unknown()
    if isinstance(owner, InstanceValue):
        return call_method(ev, owner, "__getitem__", Arguments([index]), node)
    if isinstance(owner, Constant):
        return _of_constant(owner, index)
    if isinstance(owner, Text):
        return TEXT
    if isinstance(owner, Unknown):
        return _of_unknown(ev, owner, index, node)
    return Unknown()


def _of_sequence(ev: Evaluator, owner: TupleValue | ListValue, index: Value, node: cst.CSTNode) -> Value:
    items = owner.items
    if isinstance(index, Constant) and isinstance(index.value, int):
        if items is None:
            return _certain_one(owner, index.value)
        if -len(items) <= index.value < len(items):
            return items[index.value]
        if isinstance(owner, Sizes):
            _refuse_size(ev, owner, index.value, node)
        return Unknown()
    if isinstance(index, Slice):
        bounds = [_plain(part) for part in (index.start, index.stop, index.step)]
        if items is not None and all(known for known, _ in bounds) and bounds[2][1] != 0:
            part = items[slice(*(value for _, value in bounds))]
            return TupleValue(part) if isinstance(owner, TupleValue) else ListValue(part)
        if not isinstance(owner, ListValue):
            return ListValue(None, _element(owner))
        length = owner.length and _part_length(owner.length, index, ev.place(node))
        return ListValue(None, without_ends(_element(owner)), length, owner.axes)
    if isinstance(index, Integer) and isinstance(index.size.only_symbol, SampleIndex) and items:
        return any_of(items)
    numbers = numbers_of(index.size) if isinstance(index, Integer) and items else None
    if numbers and items and all(0 <= number < len(items) for number in numbers):
        return any_of([items[number] for number in sorted(numbers)])
    return _element(owner)


def any_entry(ev: Evaluator, owner: DictValue, key: Value | None = None) -> Value | None:
    """The entry of an unknown key in a dictionary of consecutive numbers, or of one of several texts.

    None for other dictionaries, and for texts without an entry. Numbers of classes or words are consecutive,
    sizes by the name of an architecture are not.
    """
    further = owner.of_any_key()
    if further is owner.rest:
        return further
    keys = alternatives(key)
    if keys is not None and is_complete(ev, owner):
        found = [entry for entry in entries_of(owner, keys) if entry is not None]
        return any_of(found) if len(found) == len(keys) else None
    entries = tuple(owner.fields.values())
    numbers = [each.value for each in entries if isinstance(each, Constant) and type(each.value) is int]
    if len(numbers) < 2 or sorted(numbers) != list(range(min(numbers), min(numbers) + len(entries))):
        return None
    return any_number(entries) if is_complete(ev, owner) else None


def _any_class(ev: Evaluator, owner: DictValue) -> Value | None:
    """One of the classes in a dictionary, `MODELS[name]`; None for other dictionaries."""
    entries = tuple(owner.fields.values())
    if len(entries) < 2 or not is_complete(ev, owner):
        return None
    joined = entries[0]
    for entry in entries[1:]:
        either = join_classes(joined, entry, PATHS)
        if either is None:
            return None
        joined = either
    return joined


def _refuse_size(ev: Evaluator, sizes: Sizes, dim: int, node: cst.CSTNode) -> None:
    """Report `x.shape[3]` of a tensor of three dimensions."""
    tensor, rank = sizes.tensor, len(sizes.items)
    error = NoSuchDimension(f"dimension {dim} of a tensor that has {rank}", dim, rank)
    reject_sizes(ev, node, "torch.Tensor.size", "self", tensor, error)


def _certain_one(owner: TupleValue | ListValue, index: int) -> Value:
    """One item of a list with unknown items: the same each time, another one for each index."""
    element = _element(owner)
    if isinstance(element, Unknown):
        # The same each time, and another one for each index.
        name = f"<item {index}>"
        if name not in element.attributes:
            tensor = None if element.tensor is None else _another(element.tensor)
            element.attributes[name] = Unknown(element.hint, tensor)
        return element.attributes[name]
    if isinstance(owner, ListValue) and owner.axes:
        element = selected(element, owner.axes)
    if not isinstance(element, TensorValue) or element.row is not None or _is_ragged(element):
        return element
    return _another(element)


def _is_ragged(element: TensorValue) -> bool:
    """Check whether sizes are known to differ from item to item."""
    sizes = element.layout.sizes if element.layout is not None else ()
    return any(isinstance(symbol, PerItemSize) for size in sizes for symbol in size.symbols)


def _another(element: TensorValue) -> TensorValue:
    """Tensor of the same kind with new symbols for unknown sizes."""
    layout = element.layout
    if layout is not None:
        sizes = [size if size.value is not None else Size.symbol(str(size)) for size in layout.sizes]
        layout = contiguous(sizes) if is_contiguous(layout) else unknown_strides(sizes)
    return TensorValue(
        layout,
        contiguous=element.contiguous,
        dtype=element.dtype,
        device=element.device,
        storage=element.storage,
        origin=element.origin,
        certain=element.certain,
        row=element.row,
    )


def _element(owner: TupleValue | ListValue) -> Value:
    """Any item of the sequence."""
    element = without_length(_contents(owner)).element
    return element if element is not None else Unknown()


def _contents(owner: TupleValue | ListValue) -> Contents:
    return owner.contents if isinstance(owner, ListValue) else Contents(owner.items)


def _part_length(length: Size, part: Slice, place: Place) -> Size | None:
    """Length of `[start:stop:step]` of length items; None if unknown."""
    stop, step = part.stop, part.step
    first, last = _bound(part.start, 0), _bound(stop, None)
    if not (isinstance(step, Constant) and step.value in (None, 1)) or first is None:
        return None
    if isinstance(stop, Constant) and stop.value is None:
        number = first.value
        if number is not None and number < 0:
            return minimum(length, -number)
        # `ids[n:]` is written for rows longer than n.
        return length - first
    if last is None:
        return None
    number = last.value
    if number is not None and number < 0:
        return length + last - first
    chunk = first.only_symbol
    if isinstance(chunk, RangeItem) and last - first == chunk.step:
        return _chunk_length(length, chunk, place)
    if first.value != 0 or _fills_up(length - last):
        return None
    return minimum(length, last)


def _fills_up(rest: Size) -> bool:
    """Check for a row filled up before it is cut: `([pad] * (n - len(x)) + y)[:n]` may have n items."""
    return any(
        count < 0 and any(isinstance(symbol, PerItemSize) for symbol in monomial)
        for monomial, count in rest.terms.items()
    )


def _chunk_length(length: Size, chunk: RangeItem, place: Place) -> Size | None:
    """Length of `x[i:i + step]` for i in range(start, stop, step); None if unknown."""
    if divide(chunk.stop - chunk.start, chunk.step) is not None:
        return chunk.step if at_least(length, chunk.stop) or length == chunk.stop else None
    if length != chunk.stop:
        return None
    return Size.from_symbol(PerItemSize("chunk", None, Cut(place, chunk)))


def _bound(value: Value, default: int | None) -> Size | None:
    if isinstance(value, Constant) and value.value is None:
        return None if default is None else Size.of(default)
    return as_size(value)


def _plain(value: Value) -> tuple[bool, int | None]:
    if isinstance(value, Constant) and (value.value is None or isinstance(value.value, int)):
        return True, value.value
    return False, None


def _of_constant(owner: Constant, index: Value) -> Value:
    if isinstance(owner.value, (str, bytes)) and isinstance(index, Constant) and isinstance(index.value, int):
        try:
            return Constant(owner.value[index.value])
        except IndexError:
            return Unknown()
    return Unknown()


def _of_unknown(ev: Evaluator, owner: Unknown, index: Value, node: cst.CSTNode) -> Value:
    for hook in hooks.item_of_unknown:
        found = hook(ev, owner, index, node)
        if found is not None:
            return found
    entries = index.items if isinstance(index, TupleValue) else ()
    by_dimension = any(
        isinstance(entry, Slice) or (isinstance(entry, Constant) and entry.value in (None, Ellipsis))
        for entry in entries
    )
    # Only arrays take several slices at once, and an array that is used in this file is a tensor until
    # other code rules that out.
    if by_dimension or (
        owner.tensor is not None and (owner.tensor.certain or owner.tensor.layout is not None)
    ):
        return call_library(ev, "operator.getitem", Arguments([as_tensor(owner) or owner, index]), node)
    if isinstance(index, Constant):
        return owner.item(index.value)
    return Unknown()
