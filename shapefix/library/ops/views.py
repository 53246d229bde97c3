"""Views of the same memory, and reshape: a view if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

from shapefix.domains.gradients import Gradients, require_grad
from shapefix.domains.operations import Viewed
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.fixed_sizes import with_fixed
from shapefix.interpreter.tensor_values import TensorValue, own_row, tensor_row
from shapefix.interpreter.values import Constant, Value, as_size, as_tensor
from shapefix.library.ops.conversions import in_memory_format
from shapefix.library.registry import TENSOR, operation, tensor_method
from shapefix.library.signatures import BoundArguments, arguments_of
from shapefix.library.tensors import (
    as_result,
    as_view,
    assume_rank,
    contiguous_result,
    copied,
    dtype_of,
    size_list,
)
from shapefix.tensors import dims, indexing, legality, views
from shapefix.tensors.errors import WrongNumberOfElements
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides, wrap_dim
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size, product
from shapefix.tensors.verdicts import Illegal, Legal, Undecided, WrongNumel


@tensor_method("view")
def view(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dtype = dtype_of(given.value("size")) or dtype_of(given.value("dtype"))
    if dtype is not None:
        return TensorValue(dtype=dtype, device=tensor.device)
    return _viewed(call, tensor, "view", given.shape("size"))


@tensor_method("view_as")
def view_as(call: Call, tensor: TensorValue) -> Value:
    other = as_tensor(arguments_of(call).value("other"))
    target = list(other.layout.sizes) if other is not None and other.layout is not None else None
    return _viewed(call, tensor, "view_as", target)


def _viewed(call: Call, tensor: TensorValue, method: str, target: list[Size] | None) -> Value:
    if target is None:
        return as_view(call, tensor, None, Op.VIEW)
    made = _viewed_as(call, tensor, method, target)
    if isinstance(made, TensorValue) and len(target) == 1:
        made.row = tensor_row(tensor)
    return made


def _viewed_as(call: Call, tensor: TensorValue, method: str, target: list[Size]) -> Value:
    sizes, minus_one = views.target_of(target)
    stated = len(sizes) - (minus_one is not None)
    if tensor.layout is None:
        result = _of_unknown_rank(call, tensor, sizes, minus_one, Op.VIEW)
        assumed = tensor.origin.layout if tensor.origin is not None else None
        if assumed is not None:
            # A slice of at least so many dimensions: its gap exists for every rank.
            refused = legality.view(assumed, sizes, minus_one)
            if isinstance(refused, Illegal):
                _emit(call, method, tensor, assumed, refused, result, stated)
        return result
    verdict = legality.view(tensor.layout, sizes, minus_one)
    if isinstance(verdict, Illegal) and any(
        size.value == 1 for size in with_fixed(call.ev, verdict.conditions)
    ):
        verdict = Undecided(verdict.layout, numel=False)
    if isinstance(verdict, WrongNumel):
        raise WrongNumberOfElements(_no_view(method, verdict), verdict.has, target)
    result = as_view(call, tensor, verdict.layout, Op.VIEW)
    result.views = (*tensor.views, call.place.node)
    _emit(call, method, tensor, tensor.layout, verdict, result, stated)
    return result


def _no_view(method: str, verdict: WrongNumel) -> str:
    return f"{method} of {verdict.has} elements as {verdict.wants}"


def _emit(
    call: Call,
    method: str,
    tensor: TensorValue,
    layout: Layout,
    verdict: Legal | Illegal | Undecided,
    result: TensorValue,
    stated: int,
) -> None:
    free = not call.name.startswith((TENSOR, "numpy.ndarray."))
    place, target = call.place, verdict.layout.sizes
    event = Viewed(
        place,
        call.ev.calls,
        place.node,
        method,
        tensor,
        layout,
        target,
        verdict,
        result,
        call.ev.function,
        call.ev.frame.undecided,
        stated,
        free,
    )
    call.ev.emit(event)


def _of_unknown_rank(
    call: Call, tensor: TensorValue, sizes: tuple[Size, ...], minus_one: int | None, op: Op
) -> TensorValue:
    """View of a tensor of unknown rank: at least its sizes are known."""
    known = [
        Size.symbol(f"size({dim})", least=0) if dim == minus_one else size for dim, size in enumerate(sizes)
    ]
    layout = contiguous(known) if tensor.contiguous else unknown_strides(known)
    result = as_view(call, tensor, layout, op)
    result.views = (*tensor.views, call.place.node)
    return result


@operation("reshape")
def reshape(call: Call, tensor: TensorValue) -> Value:
    return _reshaped(call, tensor, "reshape", arguments_of(call).shape("shape"))


@tensor_method("reshape_as")
def reshape_as(call: Call, tensor: TensorValue) -> Value:
    other = as_tensor(arguments_of(call).value("other"))
    target = list(other.layout.sizes) if other is not None and other.layout is not None else None
    return _reshaped(call, tensor, "reshape_as", target)


def _reshaped(call: Call, tensor: TensorValue, method: str, target: list[Size] | None) -> Value:
    if target is None:
        return as_result(
            call, None, Op.RESHAPE, dtype=tensor.dtype, device=tensor.device, is_contiguous=tensor.contiguous
        )
    made = _reshaped_as(call, tensor, method, target)
    if isinstance(made, TensorValue) and len(target) == 1:
        made.row = tensor_row(tensor)
    return made


def _reshaped_as(call: Call, tensor: TensorValue, method: str, target: list[Size]) -> Value:
    sizes, minus_one = views.target_of(target)
    if tensor.layout is None:
        return _of_unknown_rank(call, tensor, sizes, minus_one, Op.RESHAPE)
    verdict = legality.view(tensor.layout, sizes, minus_one)
    if isinstance(verdict, WrongNumel):
        raise WrongNumberOfElements(_no_view(method, verdict), verdict.has, target)
    if isinstance(verdict, Legal):
        result = as_view(call, tensor, verdict.layout, Op.RESHAPE)
    else:
        layout = views.reshape(tensor.layout, sizes, minus_one)
        result = as_result(call, layout, Op.RESHAPE, dtype=tensor.dtype, device=tensor.device)
        if not isinstance(verdict, Illegal):
            # A copy, or still the same storage: unknown.
            result.storage = tensor.storage
    _emit(call, method, tensor, tensor.layout, verdict, result, len(sizes) - (minus_one is not None))
    return result


@operation("ravel")
def ravel(call: Call, tensor: TensorValue) -> Value:
    """Make the tensor contiguous and flatten it; `flatten` returns a view of evenly spaced elements."""
    if tensor.layout is None or is_contiguous(tensor.layout):
        return flatten(call, tensor)
    made = contiguous_result(
        call, [product(tensor.layout.sizes)], Op.FLATTEN, dtype=tensor.dtype, device=tensor.device
    )
    made.row = tensor_row(tensor)
    return made


@operation("flatten")
def flatten(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    start = given.number("start_dim") if "start_dim" in given.values else 0
    end = given.number("end_dim") if "end_dim" in given.values else -1
    if tensor.layout is None or start is None or end is None:
        return as_result(
            call, None, Op.FLATTEN, dtype=tensor.dtype, device=tensor.device, is_contiguous=tensor.contiguous
        )
    result = as_view(call, tensor, views.flatten(tensor.layout, start, end), Op.FLATTEN)
    result.row = tensor_row(tensor)
    return result


@operation("unflatten")
def unflatten(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dim, sizes = given.number("dim"), size_list(given.value("sizes"))
    if tensor.layout is None or dim is None or sizes is None:
        return as_view(call, tensor, None, Op.UNFLATTEN)
    target, minus_one = views.target_of(sizes)
    verdict = views.unflatten(tensor.layout, dim, target, minus_one)
    if isinstance(verdict, WrongNumel):
        raise WrongNumberOfElements(_no_view("unflatten", verdict), verdict.has, target)
    return as_view(call, tensor, verdict.layout, Op.UNFLATTEN)


@operation("t")
def t(call: Call, tensor: TensorValue) -> Value:
    if tensor.layout is None and tensor.known_size(1) is not None:
        # t() accepts at most two dimensions. If nothing is known of the second one, the
        # tensor may be a column, with a contiguous transpose.
        assume_rank(call, tensor, 2)
    layout = None if tensor.layout is None else dims.t(tensor.layout)
    return as_view(call, tensor, layout, Op.TRANSPOSE)


@operation("permute")
def permute(call: Call, tensor: TensorValue) -> Value:
    order = arguments_of(call).numbers("dims")
    if order is None:
        return as_view(call, tensor, None, Op.PERMUTE)
    # permute names every dimension, so it implies the rank.
    layout = tensor.layout or assume_rank(call, tensor, len(order))
    return as_view(call, tensor, dims.permute(layout, order), Op.PERMUTE)


@operation("squeeze")
def squeeze(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dim, is_whole = given.numbers("dim"), given.is_none("dim")
    if tensor.layout is None or (dim is None and not is_whole):
        return as_view(call, tensor, None, Op.SQUEEZE)
    result = as_view(call, tensor, dims.squeeze(tensor.layout, dim), Op.SQUEEZE)
    result.row = tensor_row(tensor) if dim == [0] and tensor.layout.rank > 1 else None
    return result


@operation("unsqueeze")
def unsqueeze(call: Call, tensor: TensorValue) -> Value:
    dim = arguments_of(call).number("dim")
    if tensor.layout is None or dim is None:
        result = as_view(call, tensor, None, Op.UNSQUEEZE)
        result.contiguous = tensor.contiguous
        if dim is not None:
            result.set_size(dim, ONE)
        return result
    return as_view(call, tensor, dims.unsqueeze(tensor.layout, dim), Op.UNSQUEEZE)


@tensor_method("expand")
def expand(call: Call, tensor: TensorValue) -> Value:
    sizes = arguments_of(call).shape("size")
    if tensor.layout is None or sizes is None:
        return as_view(call, tensor, None, Op.EXPAND)
    return as_view(call, tensor, dims.expand(tensor.layout, sizes), Op.EXPAND)


@operation("broadcast_to")
def broadcast_to(call: Call, tensor: TensorValue) -> Value:
    sizes = arguments_of(call).shape("size")
    if tensor.layout is None or sizes is None:
        return as_view(call, tensor, None, Op.EXPAND)
    return as_view(call, tensor, dims.broadcast_to(tensor.layout, sizes), Op.EXPAND)


MOST_PIECES = 1_000
"""Maximum number of pieces of a tensor: `x.split(1)` may give a billion."""


@operation("chunk", "split", "tensor_split", "split_with_sizes")
def split(call: Call, tensor: TensorValue) -> Value:
    method = call.name.rpartition(".")[2]
    given = arguments_of(call)
    dim, amount = given.number("dim"), next(iter(given.values.values()))
    pieces: tuple[Layout, ...] | None = None
    if tensor.layout is not None and dim is not None:
        if method == "chunk" and _is_few(amount):
            found = indexing.chunk(tensor.layout, amount.value, dim)
            pieces = None if found is None else tuple(found)
        elif method in ("split", "split_with_sizes"):
            sizes = size_list(amount)
            size = as_size(amount)
            if sizes is not None:
                pieces = _pieces(indexing.split(tensor.layout, sizes, dim))
            elif size is not None and _gives_few(tensor.layout, size, dim):
                pieces = _pieces(indexing.split(tensor.layout, size, dim))
    if pieces is not None:
        return TupleValue(tuple(as_view(call, tensor, piece, Op.SPLIT) for piece in pieces))
    if method == "chunk" and _is_few(amount):
        return TupleValue(tuple(as_view(call, tensor, None, Op.SPLIT) for _ in range(amount.value)))
    return ListValue(None, as_view(call, tensor, None, Op.SPLIT))


def _is_few(amount: Value | None) -> TypeGuard[Constant]:
    """Check for a small number of pieces, known one by one."""
    return isinstance(amount, Constant) and isinstance(amount.value, int) and amount.value <= MOST_PIECES


def _gives_few(layout: Layout, size: Size, dim: int) -> bool:
    """Check for few pieces of this size, known one by one."""
    whole = layout.sizes[wrap_dim(dim, layout.rank)].value
    return whole is None or size.value is None or whole <= MOST_PIECES * max(size.value, 1)


def _pieces(found: object) -> tuple[Layout, ...] | None:
    return tuple(found) if isinstance(found, (list, tuple)) else None


@operation("unbind")
def unbind(call: Call, tensor: TensorValue) -> Value:
    dim = arguments_of(call).number("dim")
    if tensor.layout is None or dim is None:
        return ListValue(None, as_view(call, tensor, None, Op.UNBIND))
    count = tensor.layout.sizes[wrap_dim(dim, tensor.layout.rank)].value
    row = indexing.select(tensor.layout, dim, Size.of(0))
    if count is None or count > 64:
        return ListValue(None, as_view(call, tensor, row, Op.UNBIND))
    return TupleValue(tuple(as_view(call, tensor, row, Op.UNBIND) for _ in range(count)))


_Read = Callable[[BoundArguments, str], Any]
_INT: _Read = BoundArguments.number
_INTS: _Read = BoundArguments.numbers
_SIZE: _Read = BoundArguments.size


def _layout_of(given: BoundArguments, name: str) -> Layout | None:
    tensor = as_tensor(given.value(name))
    return None if tensor is None else tensor.layout


class _View(NamedTuple):
    """View with a layout computed from the tensor's layout and its first arguments, all known."""

    op: Op
    names: tuple[str, ...]
    layout: Callable[..., Layout]
    reads: tuple[_Read, ...] = ()
    is_function: bool = True


_VIEWS = (
    _View(Op.TRANSPOSE, ("transpose", "swapaxes", "swapdims"), dims.transpose, (_INT, _INT)),
    _View(Op.TRANSPOSE, ("@T", "@H"), dims.T, is_function=False),
    _View(Op.TRANSPOSE, ("@mT", "@mH", "adjoint"), dims.mT, is_function=False),
    _View(Op.MOVEDIM, ("movedim", "moveaxis"), dims.movedim, (_INTS, _INTS)),
    _View(Op.NARROW, ("narrow",), indexing.narrow, (_INT, _SIZE, _SIZE)),
    _View(Op.SELECT, ("select",), indexing.select, (_INT, _SIZE)),
    _View(Op.DIAGONAL, ("diagonal",), indexing.diagonal, (_INT, _INT, _INT)),
    _View(Op.UNFOLD, ("unfold",), indexing.unfold, (_INT, _INT, _INT), is_function=False),
    _View(Op.EXPAND, ("expand_as",), dims.expand_as, (_layout_of,), is_function=False),
)


def _register(view: _View) -> None:
    register = operation if view.is_function else tensor_method

    @register(*view.names)
    def seen(call: Call, tensor: TensorValue) -> Value:
        values: list[Any] = []
        if view.reads:
            given = arguments_of(call)
            values = [read(given, name) for read, name in zip(view.reads, given.values, strict=False)]
        if tensor.layout is None or any(value is None for value in values):
            return as_view(call, tensor, None, view.op)
        return as_view(call, tensor, view.layout(tensor.layout, *values), view.op)


for _view in _VIEWS:
    _register(_view)


@tensor_method("contiguous")
def make_contiguous(call: Call, tensor: TensorValue) -> Value:
    wanted = arguments_of(call).value("memory_format")
    if not isinstance(wanted, Constant):
        return in_memory_format(call, tensor, wanted)
    if tensor.layout is not None and (tensor.contiguous or is_contiguous(tensor.layout)):
        return tensor
    sizes = tensor.layout.sizes if tensor.layout is not None else None
    result = contiguous_result(call, sizes, Op.CONTIGUOUS, dtype=tensor.dtype, device=tensor.device)
    result.row = own_row(tensor)
    return result


@tensor_method("requires_grad_")
def requires_grad(call: Call, tensor: TensorValue) -> Value:
    """Make the tensor itself a leaf with gradients, or no longer."""
    require_grad(call.ev, tensor, arguments_of(call).flag("requires_grad"))
    return tensor


@tensor_method("detach", "share_memory_", "pin_memory", "retain_grad")
def same_layout(call: Call, tensor: TensorValue) -> Value:
    result = as_view(call, tensor, tensor.layout, Op.DETACH)
    result.origin = tensor.origin
    result.contiguous = tensor.contiguous
    result.copy_sizes(tensor)
    result.row = own_row(tensor)
    if call.name.endswith("retain_grad"):
        call.ev.state[Gradients].retained = True
    return result


@operation("clone")
def clone(call: Call, tensor: TensorValue) -> Value:
    wanted = arguments_of(call).value("memory_format")
    if not isinstance(wanted, Constant):
        return in_memory_format(call, tensor, wanted)
    result = copied(call, tensor, Op.CLONE)
    result.row = own_row(tensor)
    return result
