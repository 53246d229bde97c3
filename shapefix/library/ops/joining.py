"""Operations to combine tensors, or to select from them by index."""

from __future__ import annotations

from shapefix.domains.batches import Batches
from shapefix.domains.raggedness import longest as longest_of
from shapefix.domains.raggedness import ragged, varying
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import Contents, ListValue, elements
from shapefix.interpreter.iteration import each
from shapefix.interpreter.refinement import refine_rank
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown, Value, as_size, as_tensor
from shapefix.library.data.last_batches import try_last_batch
from shapefix.library.data.rows import note_rows
from shapefix.library.ops.elementwise import result_of
from shapefix.library.ops.scatters import check_scatter
from shapefix.library.ops.value_range import any_of, different, fitting, listed, of_all, part_of, range_of
from shapefix.library.registry import function, operation, tensor_method
from shapefix.library.rejections import reject, trace
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import as_result, contiguous_result
from shapefix.library.transformers.label_provenance import rolled
from shapefix.tensors import concat, dims, tensor_iterator
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import UnknownSize


def _parts(call: Call, name: str = "tensors") -> tuple[list[TensorValue], bool]:
    """Tensors in the argument of this name, and whether these are all of them."""
    given = arguments_of(call).value(name)
    items = elements(given)
    if items is not None:
        tensors = [as_tensor(item) for item in items]
        return [t for t in tensors if t is not None], bool(tensors) and None not in tensors
    element = as_tensor(each(call.ev, given)) if isinstance(given, ListValue) else None
    return ([] if element is None else [element]), False


def _dtype(parts: list[TensorValue]) -> str | None:
    return parts[0].dtype if parts and all(part.dtype == parts[0].dtype for part in parts) else None


@function("torch.cat", "torch.concat", "torch.concatenate")
def cat(call: Call) -> Value:
    parts, complete = _parts(call)
    for part in parts:
        part.certain = True
    dim = arguments_of(call).number("dim")
    _assume_ranks(call, parts)
    layouts = [part.layout for part in parts if part.layout is not None]
    if dim is None or not layouts or len(layouts) < len(parts):
        made = as_result(call, None, Op.CAT, dtype=_dtype(parts), is_contiguous=bool(layouts))
        if complete and dim is not None:
            _sum_sizes(parts, dim, made)
        return made
    layout: Layout | None
    try:
        if complete:
            layout = concat.cat(layouts, dim)
        else:
            sizes = list(layouts[0].sizes)
            sizes[dim] = Size.symbol("joined")
            # With one tensor's layout known, the others' memory format is not.
            layout = contiguous(sizes) if len(sizes) != 4 else None
    except ShapeError as error:
        reject(call, error, {"tensors": ListValue(tuple(parts))})
        return TensorValue()
    except IndexError:
        return TensorValue()
    if complete and call.ev.state[Batches].vary:
        given = {"tensors": ListValue(tuple(parts))}
        try_last_batch(call, given, lambda fewer: _joined(fewer["tensors"], dim))
    made = as_result(call, layout, Op.CAT, dtype=_dtype(parts), device=parts[0].device)
    made.extremes = fitting(of_all(parts, complete=complete), made.dtype)
    return trace(call, made, parts[0])


def _assume_ranks(call: Call, parts: list[TensorValue]) -> None:
    """Give the parts of unknown rank the rank of the others.

    torch ignores an empty vector beside them, so that a vector does not show the rank of the others, and
    theirs is only likely.
    """
    ranks = {part.layout.rank for part in parts if part.layout is not None}
    if len(ranks) == 1 and (rank := ranks.pop()) > 1:
        for part in parts:
            if part.layout is None:
                sizes = [Size.from_symbol(UnknownSize(f"size({dim})")) for dim in range(rank)]
                refine_rank(call.ev, part, sizes, certain=False)


def _sum_sizes(parts: list[TensorValue], dim: int, made: TensorValue) -> None:
    """Set the size along dim of joined tensors of unknown rank, if it is known of each of them."""
    sizes = [size for part in parts if (size := part.known_size(dim)) is not None]
    if len(sizes) == len(parts):
        made.set_size(dim, sum(sizes[1:], sizes[0]))


def _joined(tensors: Value, dim: int) -> Layout:
    """Layout of tensors of known layouts, joined along dim. Raises ShapeError if torch rejects them."""
    parts = [as_tensor(part) for part in elements(tensors) or ()]
    return concat.cat([part.layout for part in parts if part is not None and part.layout is not None], dim)


@function("torch.stack")
def stack(call: Call) -> Value:
    parts, complete = _parts(call)
    for part in parts:
        part.certain = True
    dim = arguments_of(call).number("dim")
    _assume_ranks(call, parts)
    layouts = [part.layout for part in parts if part.layout is not None]
    known = dim is not None and bool(layouts) and len(layouts) == len(parts)
    layout: Layout | None = None
    try:
        if known and complete and dim is not None:
            layout = concat.stack(layouts, dim)
    except ShapeError as error:
        reject(call, error, {"tensors": ListValue(tuple(parts))})
        if all(each.rank == 1 for each in layouts):
            note_rows(call, arguments_of(call).value("tensors"))
        return TensorValue()
    note_rows(call, arguments_of(call).value("tensors"))
    if ragged(arguments_of(call).value("tensors")) is not None:
        return TensorValue()
    if not known or dim is None:
        return as_result(call, None, Op.STACK, dtype=_dtype(parts), is_contiguous=bool(parts))
    if layout is None:
        sizes = list(layouts[0].sizes)
        sizes.insert(dim if dim >= 0 else dim + len(sizes) + 1, _count(call))
        layout = contiguous(sizes)
    made = as_result(call, layout, Op.STACK, dtype=_dtype(parts), device=parts[0].device)
    made.extremes = fitting(of_all(parts, complete=complete), made.dtype)
    return trace(call, made, parts[0])


def _count(call: Call) -> Size:
    given = arguments_of(call).value("tensors")
    known = given.length if isinstance(given, ListValue) else None
    return known if known is not None else Size.symbol("stacked")


@function("torch.vstack", "torch.row_stack", "torch.hstack", "torch.dstack")
def stacked_flat(call: Call) -> Value:
    """Join along the first, second or third dimension, if it exists; hstack joins vectors."""
    parts, complete = _parts(call)
    for part in parts:
        part.certain = True
    least = {"hstack": 1, "dstack": 3}.get(call.name.rpartition(".")[2], 2)
    layouts = [dims.atleast_nd(part.layout, least) for part in parts if part.layout is not None]
    if not layouts or len(layouts) < len(parts) or not complete:
        return as_result(call, None, Op.CAT, dtype=_dtype(parts))
    dim = {1: 0 if layouts[0].rank == 1 else 1, 2: 0, 3: 2}[least]
    try:
        layout = concat.cat(layouts, dim)
    except ShapeError as error:
        reject(call, error, {"tensors": ListValue(tuple(parts))})
        return TensorValue()
    return trace(call, as_result(call, layout, Op.CAT, dtype=_dtype(parts)), parts[0])


@function("torch.block_diag", "torch.cartesian_prod")
def joined(call: Call) -> Value:
    return as_result(call, None, Op.BLOCK_DIAG, is_contiguous=True)


@function("torch.nn.utils.rnn.pad_sequence")
def pad_sequence(call: Call) -> Value:
    parts, _ = _parts(call, "sequences")
    for part in parts:
        part.certain = True
    layouts = [part.layout for part in parts if part.layout is not None]
    first = parts[0].layout if parts else None
    if first is None or len(layouts) < len(parts):
        return as_result(call, None, Op.PAD_SEQUENCE, dtype=_dtype(parts))
    try:
        behind = concat.padded_sequences(layouts)
    except ShapeError as error:
        reject(call, error, {"sequences": ListValue(tuple(parts))})
        return TensorValue()
    given = arguments_of(call).value("sequences")
    rows = given.contents if isinstance(given, ListValue) else Contents(elements(given) or ())
    differs = bool(rows.axes) and varying(first.sizes[0], rows.axes) is not None
    longest = longest_of(first.sizes[0], rows.axes) if differs else Size.symbol("longest")
    count = rows.length if rows.length is not None else Size.symbol("count")
    batch_first = arguments_of(call).flag("batch_first")
    if batch_first is None:
        return as_result(call, None, Op.PAD_SEQUENCE, dtype=_dtype(parts))
    front = [count, longest] if batch_first else [longest, count]
    made = contiguous_result(call, [*front, *behind], Op.PAD_SEQUENCE, dtype=_dtype(parts))
    if made.origin is not None:
        made.origin.dim = 0 if batch_first else 1
    if differs or len({layout.sizes[0] for layout in layouts}) > 1:
        padding = listed(TensorValue(), arguments_of(call).value("padding_value")).extremes
        for part in parts:
            padding = any_of(padding, part_of(range_of(part)))
        made.extremes = fitting(part_of(padding), made.dtype)
    return made


@tensor_method("repeat")
def repeat(call: Call, tensor: TensorValue) -> Value:
    repeats = arguments_of(call).shape("repeats")
    layout = (
        dims.repeat(tensor.layout, repeats) if tensor.layout is not None and repeats is not None else None
    )
    return as_result(call, layout, Op.REPEAT, dtype=tensor.dtype, device=tensor.device, is_contiguous=True)


@operation("tile")
def tile(call: Call, tensor: TensorValue) -> Value:
    repeats = arguments_of(call).shape("dims")
    layout = dims.tile(tensor.layout, repeats) if tensor.layout is not None and repeats is not None else None
    return as_result(call, layout, Op.REPEAT, dtype=tensor.dtype, device=tensor.device, is_contiguous=True)


@operation("repeat_interleave")
def repeat_interleave(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    wanted, dim, is_flat = given.value("repeats"), given.number("dim"), given.is_none("dim")
    repeats = None if isinstance(wanted, (TensorValue, Unknown)) else as_size(wanted)
    layout: Layout | None = None
    if tensor.layout is not None and repeats is not None and (is_flat or dim is not None):
        layout = concat.repeat_interleave(tensor.layout, repeats, dim)
    return as_result(call, layout, Op.REPEAT, dtype=tensor.dtype, device=tensor.device, is_contiguous=True)


@operation("roll")
def roll(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    axes, is_flat = given.numbers("dims"), given.is_none("dims")
    unknown = tensor.layout is None or (axes is None and not is_flat)
    layout = None if unknown or tensor.layout is None else dims.roll(tensor.layout, axes)
    result = as_result(call, layout, Op.ROLL, dtype=tensor.dtype, device=tensor.device)
    result.row = rolled(tensor, given.value("shifts"), None if is_flat else given.value("dims"), call.place)
    return result


@operation("gather")
def gather(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dim, index = given.number("dim"), as_tensor(given.value("index"))
    layout = None
    if tensor.layout is not None and dim is not None and index is not None and index.layout is not None:
        layout = concat.gather(tensor.layout, dim, index.layout)
    return as_result(call, layout, Op.GATHER, dtype=tensor.dtype, device=tensor.device)


@operation("take_along_dim")
def take_along_dim(call: Call, tensor: TensorValue) -> Value:
    """Gather with operands broadcast except in one dimension; without one, from all elements."""
    return as_result(call, None, Op.GATHER, dtype=tensor.dtype, device=tensor.device)


@operation("index_select")
def index_select(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dim, index = given.number("dim"), as_tensor(given.value("index"))
    layout = None
    if tensor.layout is not None and dim is not None and index is not None and index.layout is not None:
        layout = concat.index_select(tensor.layout, dim, index.layout)
    return as_result(
        call, layout, Op.INDEX_SELECT, dtype=tensor.dtype, device=tensor.device, is_contiguous=True
    )


@operation("masked_select")
def masked_select(call: Call, tensor: TensorValue) -> Value:
    mask = as_tensor(arguments_of(call).value("mask"))
    if tensor.layout is not None and mask is not None and mask.layout is not None:
        layout = concat.masked_select(tensor.layout, mask.layout)
    else:
        layout = contiguous([Size.symbol("selected", 0)])
    return as_result(call, layout, Op.MASKED_SELECT, dtype=tensor.dtype, device=tensor.device)


@operation("masked_scatter")
def masked_scatter(call: Call, tensor: TensorValue) -> Value:
    mask = as_tensor(arguments_of(call).value("mask"))
    sizes = None
    if tensor.layout is not None and mask is not None and mask.layout is not None:
        sizes = tensor_iterator.broadcast_sizes(tensor.layout.sizes, mask.layout.sizes)
    return contiguous_result(call, sizes, Op.SCATTER, dtype=tensor.dtype, device=tensor.device)


@operation("scatter", "scatter_add", "index_add", "index_copy")
def scattered(call: Call, tensor: TensorValue) -> Value:
    check_scatter(call, tensor)
    sizes = None if tensor.layout is None else tensor.layout.sizes
    return contiguous_result(call, sizes, Op.SCATTER, dtype=tensor.dtype, device=tensor.device)


@operation("index_fill", "index_put", "scatter_reduce")
def filled(call: Call, tensor: TensorValue) -> Value:
    return result_of(call, [tensor], Op.SCATTER)


@operation("nonzero", "argwhere", "unique", "bincount", "histc", "unique_consecutive")
def counted(call: Call, tensor: TensorValue) -> Value:
    if call.name.endswith(("unique", "unique_consecutive")) and call.arguments.keywords:
        return Unknown()
    if call.name.endswith("nonzero") and call.arguments.keywords:
        return Unknown()
    name = call.name.rpartition(".")[2]
    if name in ("nonzero", "argwhere") and tensor.layout is not None:
        # torch does not promise its strides.
        layout = unknown_strides((Size.symbol("nonzero", least=0), Size.of(tensor.layout.rank)))
        return as_result(call, layout, Op.MASKED_SELECT, dtype="int64", device=tensor.device)
    if name in ("unique", "unique_consecutive"):
        made = TensorValue(dtype=tensor.dtype)
        if len(call.arguments.positional) == (call.receiver is None):
            made.set_size(0, different(f"len({call.place.code})", tensor))
            made.extremes = range_of(tensor)
        return made
    return TensorValue(dtype="int64" if name != "histc" else None)
