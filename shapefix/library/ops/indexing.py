"""`x[...]`: basic indexing gives a view, an index tensor gives a copy."""

from __future__ import annotations

from shapefix.domains.reversed_views import ReversedViewRefused
from shapefix.domains.windows import note_window
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.refinement import note_open
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Slice, Unknown, Value, as_tensor
from shapefix.library.ops.value_range import chosen, selected
from shapefix.library.registry import function
from shapefix.library.rejections import reject
from shapefix.library.required_versions import is_at_least
from shapefix.library.reversed_arrays import is_reversing
from shapefix.library.tensors import as_result, as_view, assume_rank, new_size
from shapefix.library.transformers.label_provenance import sliced
from shapefix.tensors import indexing
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import UNBOUNDED, SampleIndex


@function("operator.getitem")
def getitem(call: Call) -> Value:
    tensor = as_tensor(call.value(0))
    index = call.value(1)
    if tensor is None or index is None:
        return Unknown()
    entries = list(index.items) if isinstance(index, TupleValue) else [index]
    # Arithmetic of an unknown value may be that of an array.
    is_tensor = isinstance(call.value(0), TensorValue) and tensor.certain and tensor.layout is not None
    if is_tensor and any(map(is_reversing, entries)):
        call.ev.emit(ReversedViewRefused(call.place, call.ev.calls, call.name, call.place))
    specs = specs_of(entries)
    advanced = any(map(_copies, entries)) or (
        specs is not None
        and any(isinstance(spec, (indexing.IntegerIndex, indexing.BooleanIndex)) for spec in specs)
    )
    layout = tensor.layout
    is_known, has_open_rank = True, False
    if layout is None and not advanced:
        layout, is_known = _ranked(call, tensor, entries)
        has_open_rank = True
    op = Op.SLICE if any(isinstance(entry, Slice) for entry in entries) else Op.INDEX
    if specs is None or layout is None:
        return _unknown(call, tensor, index, op, advanced)
    try:
        found = indexing.index(layout, specs)
    except ShapeError as error:
        if is_known and (layout.rank or is_at_least(call.ev, _WITH_NUMBERS, "torch")):
            by_tensors = TupleValue(tuple(entry for entry in entries if isinstance(entry, TensorValue)))
            reject(call, error, {"self": tensor, "index": by_tensors})
        return TensorValue(dtype=tensor.dtype, device=tensor.device)
    if advanced:
        taken = as_result(call, found, Op.INDEX, dtype=tensor.dtype, device=tensor.device)
        return selected(tensor, taken, index)
    row = sliced(tensor, index, call.place)
    note_window(call.ev, call.place, tensor, index)
    result = as_view(call, tensor, found, op)
    result.certain, result.row = tensor.certain, row
    if result.origin is not None:
        result.origin.has_open_rank = has_open_rank
    if isinstance(index, Integer) and isinstance(index.size.only_symbol, SampleIndex):
        chosen(tensor, result)
    else:
        selected(tensor, result, index)
    if not is_known:
        # The layout trace keeps the assumption.
        result.layout = None
    return result


_WITH_NUMBERS = "0.5"
"""The first torch with an error for an index of a 0-dim tensor: before 0.4, a loss had one dimension."""


def _copies(entry: Value) -> bool:
    """Check for a tensor of some dimensions: with any dtype it makes the result a copy."""
    return isinstance(entry, TensorValue) and entry.layout is not None and entry.layout.rank > 0


def specs_of(entries: list[Value]) -> list[indexing.Spec] | None:
    """Entries of an index for the algebra; None if one of them is unknown."""
    specs: list[indexing.Spec] = []
    for entry in entries:
        if isinstance(entry, Constant):
            if entry.value is not None and entry.value is not Ellipsis and type(entry.value) is not int:
                return None
            specs.append(entry.value)
        elif isinstance(entry, Integer):
            specs.append(entry.size)
        elif isinstance(entry, Slice):
            specs.append(slice(_bound(entry.start), _bound(entry.stop), _bound(entry.step)))
        elif isinstance(entry, TensorValue) and entry.layout is not None and entry.dtype is not None:
            is_mask = entry.dtype == "bool"
            specs.append(
                indexing.BooleanIndex(entry.layout.sizes) if is_mask else indexing.IntegerIndex(entry.layout)
            )
        elif isinstance(entry, ListValue):
            items = elements(entry)
            if not items or not all(isinstance(item, Constant) and type(item.value) is int for item in items):
                return None
            specs.append(indexing.IntegerIndex(contiguous([len(items)])))
        else:
            return None
    return specs


def _bound(value: Value) -> int | Size | None:
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, int) else None
    if isinstance(value, Integer):
        return value.size
    # It may be negative or None: the remaining size is unknown.
    return Size.symbol(value.hint if isinstance(value, Unknown) and value.hint else "length", UNBOUNDED)


def _ranked(call: Call, tensor: TensorValue, entries: list[Value]) -> tuple[Layout | None, bool]:
    """Layout implied by an index of a tensor of unknown rank, and whether the tensor gets it, too.

    Code with a trailing `:` after two other entries mostly names every dimension, although others may follow.
    Two slices say that there are two dimensions at least: a gap found for exactly two also exists with more.
    """
    basic = all(isinstance(entry, (Slice, Integer)) or _is_int(entry) for entry in entries)
    if not basic or len(entries) < 2:
        return None, False
    last = entries[-1]
    if len(entries) > 2 and isinstance(last, Slice) and _is_full(last):
        known = tensor.known_sizes(len(entries))
        layout = assume_rank(call, tensor, len(entries))
        note_open(call.ev, (size for size, old in zip(layout.sizes, known, strict=True) if old is None))
        return layout, True
    if len(entries) > 2 or not all(isinstance(entry, Slice) for entry in entries):
        return None, False
    sizes = [tensor.size(dim, new_size(call, dim)) for dim in range(len(entries))]
    return contiguous(sizes) if tensor.contiguous else unknown_strides(sizes), False


def _is_int(entry: Value) -> bool:
    return isinstance(entry, Constant) and type(entry.value) is int


def _is_full(part: Slice) -> bool:
    return all(isinstance(b, Constant) and b.value is None for b in (part.start, part.stop, part.step))


def _unknown(call: Call, tensor: TensorValue, index: Value, op: Op, advanced: bool) -> TensorValue:
    if advanced:
        return as_result(call, None, op, dtype=tensor.dtype, device=tensor.device)
    note_window(call.ev, call.place, tensor, index)
    result = as_view(call, tensor, None, op)
    result.certain, result.row = tensor.certain, sliced(tensor, index, call.place)
    return result
