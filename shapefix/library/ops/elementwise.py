"""Elementwise operations: results get the layout of the operands, as TensorIterator computes it."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.batches import Batches
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import CutKind, GraphCut, TensorValue, requires_grad
from shapefix.interpreter.values import Unknown, Value, as_tensor, is_whole
from shapefix.library.data.last_batches import try_last_batch
from shapefix.library.ops.broadcasts import COMPARING, note_broadcast
from shapefix.library.ops.clamped_exponentials import CLAMPS, note_clamped
from shapefix.library.ops.value_range import TRUTH, combined, either
from shapefix.library.registry import METHODS, TENSOR, function, operation, tensor_function, tensor_method
from shapefix.library.rejections import by_position, refuse_beyond_one, reject, trace
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import as_result, contiguous_result, default_dtype, is_number
from shapefix.library.transformers.label_provenance import masked_row
from shapefix.tensors import dtypes
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.ops import BINARY_NAMES, OPERATORS, Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.tensor_iterator import broadcast_sizes, elementwise

_COMPARISONS = frozenset(
    {
        Op.EQ,
        Op.NE,
        Op.LT,
        Op.LE,
        Op.GT,
        Op.GE,
        Op.ISNAN,
        Op.ISINF,
        Op.ISFINITE,
        Op.LOGICAL_AND,
        Op.LOGICAL_OR,
        Op.LOGICAL_NOT,
        Op.LOGICAL_XOR,
        Op.ISCLOSE,
    }
)
_FLOATING = frozenset(
    {
        Op.SQRT,
        Op.RSQRT,
        Op.EXP,
        Op.LOG,
        Op.LOG2,
        Op.LOG10,
        Op.LOG1P,
        Op.EXPM1,
        Op.SIN,
        Op.COS,
        Op.TAN,
        Op.TANH,
        Op.SIGMOID,
        Op.ERF,
        Op.RECIPROCAL,
        Op.DIV,
        Op.SINH,
        Op.COSH,
        Op.ASIN,
        Op.ACOS,
        Op.ATAN,
        Op.EXP2,
        Op.ERFC,
        Op.ERFINV,
        Op.LOGIT,
        Op.LGAMMA,
        Op.DIGAMMA,
        Op.DEG2RAD,
        Op.RAD2DEG,
        Op.ATAN2,
        Op.XLOGY,
    }
)

UNARY = (
    "abs",
    "absolute",
    "neg",
    "negative",
    "sqrt",
    "rsqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "arcsin",
    "arccos",
    "arctan",
    "sigmoid",
    "erf",
    "erfc",
    "erfinv",
    "reciprocal",
    "square",
    "sign",
    "sgn",
    "round",
    "floor",
    "ceil",
    "trunc",
    "frac",
    "relu",
    "logical_not",
    "bitwise_not",
    "isnan",
    "isinf",
    "isfinite",
    "nan_to_num",
    "logit",
    "deg2rad",
    "rad2deg",
    "lgamma",
    "digamma",
    "clamp",
    "clip",
    "clamp_min",
    "clamp_max",
)


_DIVIDES_TRULY = "1.7"
"""The first torch with a float for `/` of integers: it rounded, then raised an error."""


def result_of(call: Call, operands: list[Value | None], op: Op) -> TensorValue:
    """Result of an elementwise operation on these operands; numbers among them have no layout."""
    tensors = [tensor for tensor in map(as_tensor, operands) if tensor is not None]
    unsure = any(isinstance(operand, Unknown) and not _is_certain(operand) for operand in operands)
    dtype = _dtype(tensors, operands, op, default_dtype(call)) if not unsure else None
    if op is Op.DIV and not is_at_least(call.ev, _DIVIDES_TRULY, "torch"):
        dtype = dtype if any(each.dtype and dtypes.is_floating(each.dtype) for each in tensors) else None
    first = tensors[0] if tensors else None
    if unsure or first is None:
        # An unknown operand may be a number, or a tensor that broadcasts.
        return as_result(call, None, op, dtype=dtype, device=first.device if first else None)
    layouts = [tensor.layout for tensor in tensors]
    known = [layout for layout in layouts if layout is not None]
    if len(known) < len(layouts):
        is_contiguous = len(tensors) == 1 and first.contiguous
        result = as_result(call, None, op, dtype=dtype, device=first.device, is_contiguous=is_contiguous)
        if len(tensors) == 1:
            result.copy_sizes(first)
        return result
    named = _named(call, operands)
    try:
        layout = elementwise(*known)
    except ShapeError as error:
        reject(call, error, named)
        return TensorValue(dtype=dtype)
    refuse_beyond_one(call, named, known)
    if call.ev.state[Batches].vary:
        try_last_batch(call, named, _broadcast)
    before = next((tensor.origin for tensor in tensors if tensor.layout == layout), None)
    made = trace(call, as_result(call, layout, op, dtype=dtype, device=first.device, before=before), first)
    if len(tensors) == 2 and op in COMPARING:
        note_broadcast(call, call.name, named, result=made)
    return made


def _named(call: Call, operands: list[Value | None]) -> dict[str, Value]:
    """Tensors among the operands by their names or positions in the call, as the code has it."""
    is_method = call.receiver is not None and call.name.startswith(f"{TENSOR}.")
    by_keyword = {id(value): name for name, value in call.arguments.keywords.items()}
    named: dict[str, Value] = {}
    for place, operand in enumerate(operands):
        tensor = as_tensor(operand)
        if tensor is not None:
            position = "self" if is_method and not place else str(place - is_method)
            named[by_keyword.get(id(operand), position) if place else position] = tensor
    return named


def _broadcast(values: Mapping[str, Value]) -> None:
    tensors = [value for value in values.values() if isinstance(value, TensorValue)]
    elementwise(*(tensor.layout for tensor in tensors if tensor.layout is not None))


def _is_certain(value: Unknown) -> bool:
    return value.tensor is not None and (value.tensor.certain or value.tensor.layout is not None)


def _dtype(
    tensors: list[TensorValue], operands: list[Value | None], op: Op, default: str | None
) -> str | None:
    """Dtype of a result; default is that of whole numbers in a floating-point operation."""
    if op in _COMPARISONS:
        return "bool"
    if any(tensor.dtype is None for tensor in tensors) or not tensors:
        return None
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.layout is None or tensors[0].layout is None:
            return None
        # A tensor of rank 0 does not decide the dtype within its category.
        if dtype != tensor.dtype and 0 in (tensor.layout.rank, tensors[0].layout.rank):
            return None
        dtype = dtypes.promote(dtype, tensor.dtype) if dtype and tensor.dtype else None
    if any(is_number(operand) for operand in operands) and dtype and not dtypes.is_floating(dtype):
        if not all(map(is_whole, filter(is_number, operands))):
            return None
        dtype = "int64" if dtype == "bool" else dtype
    if op in _FLOATING and dtype and not dtypes.is_floating(dtype):
        return default
    return dtype


_OPERANDS = ("other", "exponent", "end", "weight", "tensor1", "tensor2", "values", "min", "max")
"""Parameters of elementwise functions that may be tensors."""


def _operands(call: Call, tensor: TensorValue) -> list[Value | None]:
    given = arguments_of(call).values
    others = [given[name] for name in _OPERANDS if name in given]
    return [call.receiver if call.receiver is not None else tensor, *others]


@operation(*BINARY_NAMES)
def binary(call: Call, tensor: TensorValue) -> Value:
    name, operands = call.name.rpartition(".")[2], _operands(call, tensor)
    made = result_of(call, operands, Op.named(name))
    if len(operands) == 2 and "alpha" not in call.arguments.keywords:
        _note_range(made, _SHORT.get(name, name), operands)
    return made


_SHORT = {"subtract": "sub", "multiply": "mul", "floor_divide": "floordiv"}
"""Names of operators for functions that compute the same."""


def _note_range(made: TensorValue, name: str, operands: list[Value | None]) -> None:
    """Record the smallest and the largest element of the result of an operation on two operands."""
    if made.dtype == "bool" and name in ("lt", "le", "gt", "ge", "eq", "ne"):
        made.extremes = TRUTH
    elif len(operands) == 2:
        made.extremes = combined(name, operands[0], operands[1], made.dtype)


@operation(*UNARY)
def unary(call: Call, tensor: TensorValue) -> Value:
    if call.name.rpartition(".")[2] in CLAMPS:
        note_clamped(call, tensor)
    limits = [v for v in _operands(call, tensor)[1:] if isinstance(v, TensorValue)]
    return result_of(call, [tensor, *limits], Op.named(call.name.rpartition(".")[2]))


@function(*(f"operator.{name}" for name in OPERATORS))
def operator(call: Call) -> Value:
    made = result_of(call, list(call.arguments.positional), Op.named(call.name.rpartition(".")[2]))
    _note_range(made, call.name.rpartition(".")[2], list(call.arguments.positional))
    if call.name == "operator.pow" and is_number(call.value(0)) and made.layout is not None:
        # The only operation with a layout different from that of its single tensor.
        made.layout = contiguous(made.layout.sizes)
    return made


@function("operator.neg")
def negative(call: Call) -> Value:
    return result_of(call, list(call.arguments.positional), Op.NEG)


@function("torch.where")
def where(call: Call) -> Value:
    given = arguments_of(call)
    if given.is_none("input"):
        return _indices(call, as_tensor(given.value("condition")))
    parts = [given.value("input"), given.value("other")]
    made = result_of(call, [given.value("condition"), *parts], Op.WHERE)
    made.row = masked_row(parts, call.place)
    made.extremes = either(*parts)
    return made


def _indices(call: Call, condition: TensorValue | None) -> Value:
    """Indices of the nonzero elements: one tensor for each dimension, all of one length."""
    if condition is None or condition.layout is None or call.arguments.open:
        return Unknown()
    layout = unknown_strides((Size.symbol("nonzero", least=0),))
    rank = max(condition.layout.rank, 1)
    return TupleValue(
        tuple(
            as_result(call, layout, Op.MASKED_SELECT, dtype="int64", device=condition.device)
            for _ in range(rank)
        )
    )


@tensor_method("where")
def where_method(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    return result_of(call, [tensor, given.value("condition"), given.value("other")], Op.WHERE)


ACTIVATIONS = (
    "prelu",
    "gelu",
    "hardshrink",
    "tanhshrink",
    "softsign",
    "softplus",
    "softshrink",
    "tanh",
    "sigmoid",
)
"""Activations of torch.nn.functional without a parameter `inplace`."""

_ACTIVATIONS = {"tanh": Op.TANH, "sigmoid": Op.SIGMOID, "expit": Op.SIGMOID}
"""Activations also available as elementwise operations of torch."""


@tensor_function(*(f"torch.nn.functional.{name}" for name in ACTIVATIONS), "torch.special.expit")
def activation(call: Call, tensor: TensorValue) -> Value:
    return result_of(call, [tensor], _ACTIVATIONS.get(call.name.rpartition(".")[2], Op.ACTIVATION))


@operation("masked_fill")
def masked_fill(call: Call, tensor: TensorValue) -> Value:
    sizes = None if tensor.layout is None else tensor.layout.sizes
    given = arguments_of(call)
    mask, value = given.value("mask"), given.value("value")
    if sizes is not None and isinstance(mask, TensorValue) and mask.layout is not None:
        refuse_beyond_one(call, by_position(call), [contiguous(sizes), mask.layout])
        sizes = broadcast_sizes(sizes, mask.layout.sizes)
    made = contiguous_result(call, sizes, Op.MASKED_FILL, dtype=tensor.dtype, device=tensor.device)
    made.row = masked_row([tensor, value], call.place)
    return made


_LAYOUT_IN_PLACE = (
    "squeeze_",
    "unsqueeze_",
    "transpose_",
    "t_",
    "swapaxes_",
    "swapdims_",
    "resize_",
    "as_strided_",
    "set_",
    "detach_",
)


def _replace(call: Call, tensor: TensorValue) -> None:
    """Give the tensor the memory and the layout of another one; any others after further arguments."""
    source = call.value(0, "source")
    is_whole = isinstance(source, TensorValue) and len(call.arguments.everything) == 1
    other = source if isinstance(source, TensorValue) and is_whole else TensorValue()
    for attribute in ("layout", "contiguous", "storage", "origin", "row", "extremes"):
        call.ev.journal.write(tensor, attribute, getattr(other, attribute))
    if other.graph is not False:
        call.ev.journal.write(tensor, "graph", None)
    tensor.clear_sizes()
    tensor.copy_sizes(other)


def _resized(before: Layout | None, sizes: list[Size] | None) -> Layout | None:
    """Layout after `resize_`: a tensor of these sizes already keeps its strides."""
    if sizes is None:
        return None
    if before is not None and list(before.sizes) == sizes:
        return before
    may_stay = before is None or (len(sizes) == before.rank and not is_contiguous(before))
    return unknown_strides(sizes) if may_stay else contiguous(sizes)


@tensor_method(*_LAYOUT_IN_PLACE)
def change_in_place(call: Call, tensor: TensorValue) -> Value:
    """Change the tensor itself in place."""
    name = call.name.rpartition(".")[2].removesuffix("_")
    if name == "resize":
        sizes = arguments_of(call).shape("size")
        call.ev.journal.write(tensor, "layout", _resized(tensor.layout, sizes))
        tensor.clear_sizes()
    elif name == "set":
        _replace(call, tensor)
    elif name == "detach":
        tensor.cut = GraphCut(CutKind.OPERATION, call.place, call.name, requires_grad(tensor) is True)
        call.ev.journal.write(tensor, "graph", False)
    else:
        seen = METHODS[TENSOR][name](call) if name in METHODS[TENSOR] else None
        call.ev.journal.write(tensor, "layout", seen.layout if isinstance(seen, TensorValue) else None)
        tensor.clear_sizes()
        if isinstance(seen, TensorValue) and seen.layout is None:
            # Of an unknown rank, only the result has the new sizes: the call may be in a branch.
            return seen
    return tensor
