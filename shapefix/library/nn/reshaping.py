"""Layers moving elements only: flatten, unflatten, padding, pixel shuffling, folding."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_size
from shapefix.library.nn.layers import functional, layer, result
from shapefix.library.ops import views as operations
from shapefix.library.signatures import BoundArguments
from shapefix.tensors import concat
from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import ShapeError, WrongRank
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.memory_format import in_suggested_format
from shapefix.tensors.networks import check_divisible
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size, product
from shapefix.tensors.quotients import floor_divide, quotient


def _same_call(call: Call, name: str, tensor: TensorValue, *arguments: Value) -> Call:
    """Call of the tensor's own method in place of an equivalent layer."""
    return Call(call.ev, f"torch.Tensor.{name}", call.place, Arguments(list(arguments)), tensor)


@layer("Flatten")
def flatten(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    start, end = given.value("start_dim"), given.value("end_dim")
    return operations.flatten(_same_call(call, "flatten", tensor, start, end), tensor)


@layer("Unflatten")
def unflatten(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    dim, sizes = given.value("dim"), given.value("unflattened_size")
    return operations.unflatten(_same_call(call, "unflatten", tensor, dim, sizes), tensor)


def _register_paddings(rank: int) -> None:
    kinds = [f"ConstantPad{rank}d", f"ZeroPad{rank}d", f"ReflectionPad{rank}d", f"ReplicationPad{rank}d"]

    @layer(kinds[0], *kinds[1:])
    def padded(call: Call, given: BoundArguments) -> Value:
        tensor = given.tensor("input")
        return _padded(call, tensor, given.sizes("padding", 2 * rank), circular=False)

    @layer(f"CircularPad{rank}d")
    def circular(call: Call, given: BoundArguments) -> Value:
        tensor = given.tensor("input")
        return _padded(call, tensor, given.sizes("padding", 2 * rank), circular=True)


for _rank in (1, 2, 3):
    _register_paddings(_rank)


@functional("pad")
def pad(call: Call, given: BoundArguments) -> Value:
    tensor, mode = given.tensor("input"), given.text("mode")
    items = elements(given.value("pad"))
    widths = [size for size in map(as_size, items or ()) if size is not None]
    known = items is not None and len(widths) == len(items) and mode is not None
    return _padded(call, tensor, widths if known else None, circular=mode == "circular")


def _padded(call: Call, tensor: TensorValue | None, widths: list[Size] | None, *, circular: bool) -> Value:
    layout: Layout | None = None
    if tensor is not None and tensor.layout is not None and widths is not None:
        layout = concat.pad(tensor.layout, widths)
        if circular:
            layout = contiguous(layout.sizes)
    return result(call, tensor, layout, Op.PAD, dtype=None if tensor is None else tensor.dtype)


def _is_image(tensor: TensorValue | None) -> None:
    """Check for channels, a height and a width. Raises WrongRank for any other rank."""
    if tensor is not None and tensor.layout is not None and tensor.layout.rank < 3:
        message = f"expects input to have at least 3 dimensions, but got {tensor.layout.rank}"
        raise WrongRank(message, tensor.layout.rank, (3, 4, 5))


@layer("PixelShuffle")
@functional("pixel_shuffle", namespaces=("torch", "torch.nn.functional"))
def pixel_shuffle(call: Call, given: BoundArguments) -> Value:
    tensor, factor = given.tensor("input"), given.size("upscale_factor")
    layout = None
    _is_image(tensor)
    if tensor is not None and tensor.layout is not None and tensor.layout.rank >= 3 and factor is not None:
        *batch, channels, height, width = tensor.layout.sizes
        check_divisible(channels, factor * factor, "the channels")
        sizes = (*batch, quotient(channels, factor * factor), height * factor, width * factor)
        layout = in_suggested_format(sizes, tensor.layout)
    return result(call, tensor, layout, Op.PIXEL_SHUFFLE, dtype=None if tensor is None else tensor.dtype)


@layer("PixelUnshuffle")
@functional("pixel_unshuffle", namespaces=("torch", "torch.nn.functional"))
def pixel_unshuffle(call: Call, given: BoundArguments) -> Value:
    tensor, factor = given.tensor("input"), given.size("downscale_factor")
    layout = None
    _is_image(tensor)
    if tensor is not None and tensor.layout is not None and tensor.layout.rank >= 3 and factor is not None:
        *batch, channels, height, width = tensor.layout.sizes
        check_divisible(height, factor, "height")
        check_divisible(width, factor, "width")
        sizes = (*batch, channels * factor * factor, quotient(height, factor), quotient(width, factor))
        layout = in_suggested_format(sizes, tensor.layout)
    return result(call, tensor, layout, Op.PIXEL_SHUFFLE, dtype=None if tensor is None else tensor.dtype)


@layer("ChannelShuffle")
@functional("channel_shuffle", namespaces=("torch", "torch.nn.functional"))
def channel_shuffle(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = in_suggested_format(tensor.layout.sizes, tensor.layout)
    return result(call, tensor, layout, Op.PIXEL_SHUFFLE, dtype=None if tensor is None else tensor.dtype)


@layer("Unfold")
@functional("unfold")
def unfold(call: Call, given: BoundArguments) -> Value:
    """Unfold (N, C, H, W) to (N, C * kernel, windows)."""
    tensor = given.tensor("input")
    settings = [given.sizes(name, 2) for name in ("kernel_size", "dilation", "padding", "stride")]
    if tensor is None or tensor.layout is None or tensor.layout.rank not in (3, 4):
        return result(call, tensor, None, Op.IM2COL, is_contiguous=True)
    *batch, channels, height, width = tensor.layout.sizes
    known = [setting for setting in settings if setting is not None]
    if len(known) < len(settings):
        sizes = [*batch, Size.symbol("window"), Size.symbol("windows")]
    else:
        windows = ONE
        for length, kernel, dilation, padding, stride in zip((height, width), *known, strict=True):
            if at_least(stride, 1) is False:
                raise ShapeError(f"stride is {stride}, but must be > 0")
            spare = length + 2 * padding - dilation * (kernel - 1) - 1
            windows = windows * (floor_divide(spare, stride) + 1)
        sizes = [*batch, channels * product(known[0]), windows]
    return result(call, tensor, contiguous(sizes), Op.IM2COL, dtype=tensor.dtype)


@layer("Fold")
@functional("fold")
def fold(call: Call, given: BoundArguments) -> Value:
    """Fold (N, C * kernel, windows) to (N, C, H, W)."""
    tensor, wanted, kernel = (
        given.tensor("input"),
        given.sizes("output_size", 2),
        given.sizes("kernel_size", 2),
    )
    layout = None
    if tensor is not None and tensor.layout is not None and wanted is not None and kernel is not None:
        if tensor.layout.rank in (2, 3):
            channels = quotient(tensor.layout.sizes[-2], product(kernel))
            layout = contiguous((*tensor.layout.sizes[:-2], channels, *wanted))
    return result(call, tensor, layout, Op.COL2IM, is_contiguous=True)
