"""Writes into the memory of a tensor, and rejected writes to elements sharing memory.

Rejections were executed with torch 2.13: elementwise writes, copies and scatters check for overlap;
masked fills and writes through an index tensor do not, and change every element that shares the memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from shapefix.domains.masks import note_mask
from shapefix.domains.operations import InPlaceWrite
from shapefix.domains.saved_tensors import note_write_into_saved
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    Integer,
    LibraryObject,
    Parameter,
    Value,
    as_tensor,
)
from shapefix.library.ops.elementwise import UNARY
from shapefix.library.ops.graphs import note_graph_write
from shapefix.library.ops.indexing import specs_of
from shapefix.library.ops.leaf_writes import note_leaf_write, note_parameter_write
from shapefix.library.ops.scatters import check_scatter
from shapefix.library.registry import expanded_dim, function, operation, tensor_function, tensor_method
from shapefix.library.rejections import by_position, refuse_beyond_one, reject
from shapefix.library.signatures import arguments_of
from shapefix.library.transformers.label_provenance import note_index_write, note_write
from shapefix.tensors import indexing
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.ops import BINARY_NAMES, Op
from shapefix.tensors.tensor_iterator import check_expands_to

_NOT_IN_PLACE = frozenset(
    {"maximum", "minimum", "fmax", "fmin", "logaddexp", "isclose", "isnan", "isinf", "isfinite"}
)
"""Elementwise functions without a method that writes the result into the tensor."""
_METHODS_ONLY = frozenset(
    {"absolute_", "erfinv_", "sign_", "sgn_", "logical_not_", "bitwise_not_", "lgamma_", "digamma_"}
)
"""In-place methods of one tensor that torch has no function for."""


def _in_place(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}_" for name in names if name not in _NOT_IN_PLACE)


UNARY_WRITES = _in_place(UNARY)
BINARY_WRITES = _in_place(BINARY_NAMES)
PLACED = ("scatter_", "scatter_add_", "index_add_", "index_copy_")
"""Writes at the places of an index."""
REFUSED = (
    *UNARY_WRITES,
    *BINARY_WRITES,
    *PLACED,
    "copy_",
    "masked_scatter_",
    "scatter_reduce_",
    "put_",
    "cumsum_",
    "normal_",
    "uniform_",
    "bernoulli_",
    "exponential_",
    "random_",
    "baddbmm_",
    "addmm_",
)
"""Writes that torch rejects if several elements share memory."""
FUNCTIONS = (*(name for name in UNARY_WRITES if name not in _METHODS_ONLY), "xlogy_")
"""Rejected writes also available as functions of torch."""
STRETCHED = frozenset(
    {
        *BINARY_WRITES,
        *(name for name in UNARY_WRITES if name.startswith(("clamp_", "clip_"))),
        "copy_",
        "masked_scatter_",
        "masked_fill_",
    }
)
"""Writes with operands expanded to the sizes of the tensor."""
SPREAD = ("index_fill_", "index_put_", "tril_", "triu_", "fill_diagonal_")
HARMLESS = ("zero_", "fill_")
"""Writes of one value to every element."""


def emit_write(
    call: Call,
    tensor: TensorValue,
    subject: cst.CSTNode | None,
    shared: int | None = None,
    refused: bool = False,
    value: Value | None = None,
) -> None:
    """Report a write to the memory of tensor, and record the written value."""
    given = [each for each in call.arguments.everything if each is not tensor]
    if "dropout" not in call.name.lower():
        note_leaf_write(call, tensor, subject, given)
    note_write(call, tensor, value)
    note_graph_write(call, tensor, given)
    note_mask(call.ev, tensor, value, call.place.node, subject)
    if "dropout" not in call.name.lower():
        # In evaluation mode, and for p = 0, a dropout writes nothing.
        layer = call.receiver if isinstance(call.receiver, LibraryObject) else None
        note_write_into_saved(call.ev, call.place, tensor, subject, layer)
    call.ev.emit(InPlaceWrite(call.place, call.ev.calls, tensor, tensor.layout, subject, shared, refused))


def subject_of(call: Call) -> cst.CSTNode | None:
    """Expression of the tensor written to by a call: the method's object or the first argument."""
    node = call.place.node
    if isinstance(node, cst.Call):
        if (
            call.receiver is not None
            and isinstance(node.func, cst.Attribute)
            and call.name.startswith("torch.Tensor.")
        ):
            return node.func.value
        return node.args[0].value if node.args else None
    if isinstance(node, cst.Subscript):
        return node.value
    return node.target if isinstance(node, cst.AugAssign) else None


def check_write(call: Call, tensor: TensorValue) -> None:
    """Check a written value. Raises ShapeError if it provably does not fit the sizes of the tensor."""
    name = call.name.rpartition(".")[2]
    if name in PLACED:
        check_scatter(call, tensor)
    if name not in STRETCHED or tensor.layout is None:
        return
    named = by_position(call)
    operands = [value for value in named.values() if isinstance(value, TensorValue)]
    for number, operand in enumerate(operands):
        if operand is not tensor and operand.layout is not None:
            check_expands_to(tensor.layout.sizes, operand.layout.sizes, operand=number)
    layouts = [operand.layout for operand in operands if operand.layout is not None]
    if len(layouts) == len(operands):
        refuse_beyond_one(call, named, layouts)


@tensor_function(*(f"torch.{name}" for name in FUNCTIONS))
@tensor_method(*REFUSED)
def overwritten(call: Call, tensor: TensorValue) -> Value:
    check_write(call, tensor)
    emit_write(call, tensor, subject_of(call), expanded_dim(tensor.layout), refused=True)
    name = call.name.rpartition(".")[2]
    if name in UNARY_WRITES:
        # Its elements are those of the function from here on: `sigmoid_` makes probabilities of scores.
        step = LayoutStep(
            call.place, Op.named(name.removesuffix("_")), tensor.layout, tensor.origin, call.ev.function
        )
        call.ev.journal.write(tensor, "origin", step)
    return tensor


@tensor_method(*SPREAD)
def spread(call: Call, tensor: TensorValue) -> Value:
    emit_write(call, tensor, subject_of(call), expanded_dim(tensor.layout))
    return tensor


@operation(*HARMLESS)
def harmless(call: Call, tensor: TensorValue) -> Value:
    emit_write(call, tensor, subject_of(call), value=arguments_of(call).values.get("value"))
    return tensor


@tensor_method("masked_fill_")
def masked_fill(call: Call, tensor: TensorValue) -> Value:
    check_write(call, tensor)
    shared = expanded_dim(tensor.layout)
    given = arguments_of(call)
    mask = as_tensor(given.value("mask"))
    if shared is not None and tensor.layout is not None:
        # A mask with equal values along the expanded dimension has no effect on other elements.
        from_right = tensor.layout.rank - shared
        known = mask.layout if mask is not None else None
        if known is None or known.rank < from_right or known.sizes[-from_right].value == 1:
            shared = None
    emit_write(call, tensor, subject_of(call), shared, value=given.value("value"))
    return tensor


@function("operator.iadd")
def augmented(call: Call) -> Value:
    written, operand = call.value(0), call.value(1)
    if isinstance(written, Parameter):
        note_parameter_write(call, written, subject_of(call))
        return NONE
    tensor = as_tensor(written)
    if tensor is None:
        return NONE
    emit_write(call, tensor, subject_of(call), expanded_dim(tensor.layout), refused=True)
    if isinstance(operand, TensorValue) and tensor.layout is not None and operand.layout is not None:
        try:
            check_expands_to(tensor.layout.sizes, operand.layout.sizes)
            refuse_beyond_one(call, by_position(call), [tensor.layout, operand.layout])
        except ShapeError as error:
            reject(call, error, by_position(call))
            # torch raises here; later mismatches of this tensor are not reported.
            call.ev.journal.write(tensor, "layout", None)
            tensor.clear_sizes()
    return NONE


@function("operator.setitem")
def setitem(call: Call) -> Value:
    tensor, index = as_tensor(call.value(0)), call.value(1)
    if tensor is None or index is None:
        return NONE
    shared, refused = _index_write(tensor, index)
    _check_part(call, tensor, index)
    note_leaf_write(call, tensor, subject_of(call), [call.value(2) or NONE])
    note_index_write(call, tensor, index, call.value(2))
    note_graph_write(call, tensor, [call.value(2) or NONE])
    note_mask(call.ev, tensor, call.value(2), call.place.node, subject_of(call))
    note_write_into_saved(call.ev, call.place, tensor, subject_of(call), None)
    event = InPlaceWrite(call.place, call.ev.calls, tensor, tensor.layout, subject_of(call), shared, refused)
    call.ev.emit(event)
    return NONE


def _check_part(call: Call, tensor: TensorValue, index: Value) -> None:
    """Report an index impossible for a tensor, or a value provably not expandable to its part."""
    value, entries = call.value(2), list(index.items) if isinstance(index, TupleValue) else [index]
    specs = specs_of(entries)
    if tensor.layout is None or specs is None:
        return
    try:
        part = indexing.index(tensor.layout, specs).sizes
    except ShapeError as error:
        if tensor.layout.rank:
            by_tensors = TupleValue(tuple(entry for entry in entries if isinstance(entry, TensorValue)))
            # Reading this part raises the same error.
            reject(call, error, {"self": tensor, "index": by_tensors}, function="operator.getitem")
        return
    if not isinstance(value, TensorValue) or value.layout is None:
        return
    # Dimensions of size 1 in front of it are left out.
    given = value.layout.sizes
    spare = len(given) - len(part)
    if any(same(size, 1) is None for size in given[: max(spare, 0)]):
        return
    while len(given) > len(part) and given[0].value == 1:
        given = given[1:]
    try:
        check_expands_to(part, given, other=None)
    except ShapeError as error:
        reject(call, error, {"self": tensor, "value": value})


def _index_write(tensor: TensorValue, index: Value) -> tuple[int | None, bool]:
    """Expanded dimension hit by a write to tensor[index], and whether torch rejects the write."""
    shared = expanded_dim(tensor.layout)
    entries = list(index.items) if isinstance(index, TupleValue) else [index]
    specs = specs_of(entries)
    if shared is None or tensor.layout is None or specs is None:
        return None, False
    if any(isinstance(spec, (indexing.IntegerIndex, indexing.BooleanIndex)) for spec in specs):
        return (shared, False) if shared in _reached_by_tensors(specs, tensor.layout.rank) else (None, False)
    try:
        part = indexing.index(tensor.layout, specs)
    except ShapeError:
        return None, False
    if expanded_dim(part) is not None:
        return shared, True
    picked = any(isinstance(entry, Integer) or _is_int(entry) for entry in entries)
    return (shared, False) if picked else (None, False)


def _is_int(entry: Value) -> bool:
    return isinstance(entry, Constant) and type(entry.value) is int


def _reached_by_tensors(specs: list[indexing.Spec], rank: int) -> set[int]:
    """Dimensions of the tensor selected by index tensors and masks."""
    widths = [_width(spec) for spec in specs]
    reached: set[int] = set()
    dim = 0
    for spec, width in zip(specs, widths, strict=True):
        if spec is Ellipsis:
            width = rank - sum(widths)
        if isinstance(spec, (indexing.IntegerIndex, indexing.BooleanIndex)):
            reached.update(range(dim, dim + width))
        dim += width
    return reached


def _width(spec: indexing.Spec) -> int:
    if spec is None or spec is Ellipsis:
        return 0
    return len(spec.sizes) if isinstance(spec, indexing.BooleanIndex) else 1
