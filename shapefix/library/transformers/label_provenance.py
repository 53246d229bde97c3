"""Row of ids in the last dimension of a tensor, after slicing and after writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shapefix.domains.masks import is_mask
from shapefix.domains.tokens import from_the_start, is_same, row_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import START, LabelMask, TensorValue, TokenRow, own_row
from shapefix.interpreter.values import Constant, Integer, Slice, Unknown, Value, as_size
from shapefix.tensors.polynomials import Size


def sliced(tensor: TensorValue, index: Value, place: Place) -> TokenRow | None:
    """Row in `tensor[index]`: the same one from a later position on, or from the same one."""
    last = _last(tensor, index)
    first = _start(last) if last is not None else None
    row = own_row(tensor) if first is not None else None
    if last is None or row is None or first is None:
        return None
    left_out = _left_out(last)
    short = None if left_out is None or row.short is None else row.short + left_out
    if first == START:
        return replace(row, short=short)
    return replace(row, start=row.start + first, cut=place, short=short)


def masked_row(parts: Sequence[Value], place: Place) -> TokenRow | None:
    """Row in a new tensor of elements of ids, and -100 elsewhere, by a mask."""
    tensors = [tensor for tensor in parts if isinstance(tensor, TensorValue)]
    if len(parts) != 2 or len(tensors) != 1 or not any(is_mask(part) for part in parts):
        return None
    row = own_row(tensors[0])
    return row and replace(row, mask=row.mask or LabelMask(place, False))


def rolled(tensor: TensorValue, shifts: Value | None, dims: Value | None, place: Place) -> TokenRow | None:
    """Row after `torch.roll` along the last dimension: it begins further on."""
    rank = tensor.layout.rank if tensor.layout is not None else None
    if not isinstance(dims, Constant) or dims.value not in (-1, *(() if rank is None else (rank - 1,))):
        return None
    row = own_row(tensor)
    by = shifts.value if isinstance(shifts, Constant) else None
    if row is None or not isinstance(by, int):
        return None
    return replace(row, start=row.start - by, cut=place)


def note_index_write(call: Call, tensor: TensorValue, index: Value, value: Value | None) -> None:
    """Record the effect of `tensor[index] = value` on the row in the tensor."""
    moved = _moved(tensor, index, value, call.place)
    if moved is not None and not call.ev.frame.undecided:
        tensor.row = moved
    else:
        entries = index.items if isinstance(index, TupleValue) else (index,)
        note_write(call, tensor, value, leading=all(map(from_the_start, entries)))


def note_write(call: Call, tensor: TensorValue, value: Value | None, *, leading: bool = False) -> None:
    """Record a write of value to some elements of the tensor, to leading ones if known."""
    storage = tensor.storage
    if not is_mask(value):
        storage.overwritten = True
    elif storage.mask is None or (leading and not storage.mask.leading):
        storage.mask = LabelMask(call.place, leading)


def _moved(tensor: TensorValue, index: Value, value: Value | None, place: Place) -> TokenRow | None:
    """Row of labels, a copy of ids, after `labels[:, :-1] = ids[:, 1:]`; None for other writes."""
    last, into = _last(tensor, index), tensor.row
    given = row_of(value) if isinstance(value, TensorValue) else None
    if last is None or into is None or given is None or not is_same(given, into):
        return None
    first = _start(last)
    start = None if first is None else given.start - first
    return None if start is None or start == into.start else replace(given, start=start, cut=place)


def _last(tensor: TensorValue, index: Value) -> Slice | None:
    """Slice of the last dimension, for all rows or one of them; None for other indices."""
    entries = index.items if isinstance(index, TupleValue) else (index,)
    if not entries:
        return None
    rank = tensor.layout.rank if tensor.layout is not None else None
    spans = any(isinstance(entry, Constant) and entry.value is Ellipsis for entry in entries)
    if rank is None and len(entries) < 2:
        return None
    if not spans and rank is not None and len(entries) < rank:
        # The last dimension is not indexed.
        return Slice(*(Constant(None),) * 3) if all(map(_takes_rows, entries)) else None
    *others, last = entries
    if not all(map(_takes_rows, others)):
        return None
    return last if isinstance(last, Slice) else None


def _takes_rows(entry: Value) -> bool:
    if isinstance(entry, Slice):
        return all(isinstance(b, Constant) and b.value is None for b in (entry.start, entry.stop, entry.step))
    return isinstance(entry, Integer) or (
        isinstance(entry, Constant) and (entry.value is Ellipsis or type(entry.value) is int)
    )


def _left_out(last: Slice) -> int | None:
    """Number of elements left out by a slice at the end; None if unknown."""
    stop = last.stop.value if isinstance(last.stop, Constant) else False
    if stop is None:
        return 0
    return -stop if type(stop) is int and stop < 0 else None


def _start(last: Slice) -> Size | None:
    """Start of a slice; None for negative starts and for steps other than 1."""
    if not (isinstance(last.step, Constant) and last.step.value in (None, 1)):
        return None
    if isinstance(last.start, Constant) and last.start.value is None:
        return START
    if not isinstance(last.start, (Constant, Integer, Unknown)):
        return None
    first = as_size(last.start)
    return None if first is None or (first.value is not None and first.value < 0) else first
