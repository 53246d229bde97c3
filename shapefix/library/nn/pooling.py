"""Pooling and resizing: contiguous results, or channels_last if the input is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Number, Unknown, Value
from shapefix.library.nn.convolution import of_fresh_lengths
from shapefix.library.nn.layers import functional, layer, result
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import as_result, size_list
from shapefix.tensors import convolutions
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.dims import unsqueeze
from shapefix.tensors.errors import WindowTooLarge
from shapefix.tensors.layout import Layout, is_contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_AXES = ("depth", "height", "width")


def _flat(layout: Layout) -> Layout:
    """Layout (…, C, L) as torch pools it: an image of height 1."""
    return unsqueeze(layout, layout.rank - 1)


def _unflat(layout: Layout) -> Layout:
    return Layout((*layout.sizes[:-2], layout.sizes[-1]), (*layout.strides[:-2], layout.strides[-1]))


def _pooled(layout: Layout, rank: int, kernel: Sequence[Size], **settings: Any) -> Layout:
    if rank > 1:
        return convolutions.pool(layout, kernel, **settings)
    if layout.rank not in (2, 3):
        return convolutions.pool(layout, kernel, **settings)
    ones = {"stride": 1, "padding": 0, "dilation": 1}
    wide: dict[str, Any] = {
        name: [Size.of(ones[name]), *value] if name in ones and value is not None else value
        for name, value in settings.items()
    }
    return _unflat(convolutions.pool(_flat(layout), [Size.of(1), *kernel], **wide))


def _resized(layout: Layout, lengths: Sequence[Size | None]) -> Layout:
    if len(lengths) > 1 or layout.rank not in (2, 3):
        return convolutions.resize(layout, lengths)
    return _unflat(convolutions.resize(_flat(layout), [Size.of(1), *lengths]))


def _only_if_contiguous(layout: Layout) -> Layout:
    """Layout of a pooling; its strides are unknown unless it is contiguous.

    The kernels agree only about contiguous inputs.
    """
    return layout if is_contiguous(layout) is True else unknown_strides(layout.sizes)


def _outcome(
    call: Call, tensor: TensorValue | None, layout: Layout | None, indices: bool | None, rank: int
) -> Value:
    channels = None if tensor is None else (-rank - 1, tensor.known_size(-rank - 1))
    dtype = None if tensor is None else tensor.dtype
    pooled = result(call, tensor, layout, Op.POOLING, dtype=dtype, channels=channels)
    if indices:
        where = as_result(call, layout, Op.POOLING, dtype="int64", device=pooled.device)
        return TupleValue((pooled, where))
    return pooled if indices is False else Unknown()


def _pool(call: Call, given: BoundArguments, rank: int, *, name: str) -> Value:
    tensor, kernel = given.tensor("input"), given.sizes("kernel_size", rank)
    # Unlike F.max_pool2d, torch.max_pool2d lacks this parameter.
    indices = given.flag("return_indices") if "return_indices" in given.values else False
    layout = None
    if tensor is not None and tensor.layout is not None:
        if name == "avg" and rank == 3 and kernel is not None:
            _holds_a_window(tensor.layout, kernel)
        settings: dict[str, Any] = {"padding": [Size.of(0)] * rank, "dilation": [Size.of(1)] * rank}
        for key in settings:
            if key in given.values:
                settings[key] = given.sizes(key, rank)
        ceil_mode = given.flag("ceil_mode")
        strided = given.is_none("stride")
        stride = given.sizes("stride", rank) if strided is False else None
        known = kernel is not None and ceil_mode is not None and None not in settings.values()
        if known and kernel is not None and (strided or stride is not None):
            layout = _pooled(tensor.layout, rank, kernel, stride=stride, ceil_mode=ceil_mode, **settings)
        else:
            layout = of_fresh_lengths(tensor.layout, rank)
            if rank == 1:
                layout = unknown_strides(layout.sizes)
        if (name == "max" and rank == 1 and not indices) or (name == "avg" and rank == 3):
            layout = _only_if_contiguous(layout)
    return _outcome(call, tensor, layout, indices, rank)


def _holds_a_window(layout: Layout, kernel: Sequence[Size]) -> None:
    """Check the window of a pooling over volumes, without padding. Raises WindowTooLarge."""
    if layout.rank in (4, 5):
        for dim, size in enumerate(kernel, -3):
            if at_least(layout.sizes[dim] - size, 0) is False:
                message = f"input image ({layout.sizes[dim]}) smaller than kernel size ({size})"
                raise WindowTooLarge(message, layout.sizes[dim], size, dim)


def _register(rank: int) -> None:
    @layer(f"MaxPool{rank}d")
    @functional(f"max_pool{rank}d")
    @functional(f"max_pool{rank}d", namespaces=("torch",))
    def max_pool(call: Call, given: BoundArguments) -> Value:
        return _pool(call, given, rank, name="max")

    @layer(f"AvgPool{rank}d")
    @functional(f"avg_pool{rank}d")
    def avg_pool(call: Call, given: BoundArguments) -> Value:
        return _pool(call, given, rank, name="avg")

    @layer(f"LPPool{rank}d")
    @functional(f"lp_pool{rank}d")
    def lp_pool(call: Call, given: BoundArguments) -> Value:
        return _pool(call, given, rank, name="avg")

    @layer(f"AdaptiveAvgPool{rank}d")
    @functional(f"adaptive_avg_pool{rank}d")
    def adaptive_avg_pool(call: Call, given: BoundArguments) -> Value:
        return _adaptive(call, given, rank, indices=False, averages=True)

    @layer(f"AdaptiveMaxPool{rank}d")
    @functional(f"adaptive_max_pool{rank}d")
    def adaptive_max_pool(call: Call, given: BoundArguments) -> Value:
        return _adaptive(call, given, rank, indices=given.flag("return_indices"))

    @layer(f"MaxUnpool{rank}d")
    @functional(f"max_unpool{rank}d")
    def max_unpool(call: Call, given: BoundArguments) -> Value:
        tensor = given.tensor("input")
        layout = None
        if tensor is not None and tensor.layout is not None:
            layout = _only_if_contiguous(
                convolutions.resize(tensor.layout, _unpooled(given, tensor.layout, rank))
            )
        return _outcome(call, tensor, layout, False, rank)


def _unpooled(given: BoundArguments, layout: Layout, rank: int) -> list[Size]:
    """Spatial sizes of a max_unpool; an unknown one is a new symbol."""
    asked = size_list(given.value("output_size"))
    kernel, padding = given.sizes("kernel_size", rank), given.sizes("padding", rank)
    unset = given.is_none("stride")
    stride = kernel if unset else None if unset is None else given.sizes("stride", rank)
    if asked is not None and len(asked) >= rank:
        return list(asked[-rank:])
    if given.is_none("output_size") and kernel and stride and padding and layout.rank > rank:
        steps = zip(layout.sizes[-rank:], kernel, stride, padding, strict=True)
        return [(have - 1) * step - 2 * pad + width for have, width, step, pad in steps]
    return [Size.symbol(axis) for axis in _AXES[3 - rank :]]


def _adaptive(
    call: Call, given: BoundArguments, rank: int, indices: bool | None, *, averages: bool = False
) -> Value:
    tensor = given.tensor("input")
    layout = None
    if tensor is not None and tensor.layout is not None:
        lengths = _lengths(given.value("output_size"), rank)
        have = tensor.layout
        to_one = averages and rank > 1 and all(n is not None and same(n, 1) is not False for n in lengths)
        if to_one and have.rank >= rank and have.rank not in (rank + 1, rank + 2):
            # torch computes a mean over tensors of any rank.
            layout = unknown_strides((*have.sizes[: have.rank - rank], *(n or Size.of(1) for n in lengths)))
        else:
            layout = _resized(have, lengths)
        if rank == 3:
            layout = _only_if_contiguous(layout)
    return _outcome(call, tensor, layout, indices, rank)


def _lengths(wanted: Value, rank: int) -> list[Size | None]:
    """Requested spatial sizes; None keeps one, and an unknown one is a new symbol."""
    items = elements(wanted)
    if items is not None and len(items) == rank:
        sizes = [BoundArguments({"size": item}).sizes("size", 1) for item in items]
        kept = [isinstance(item, Constant) and item.value is None for item in items]
        return [
            None if keep else size[0] if size is not None else Size.symbol(axis)
            for keep, size, axis in zip(kept, sizes, _AXES[3 - rank :], strict=True)
        ]
    known = BoundArguments({"size": wanted}).sizes("size", rank)
    return list(known) if known is not None else [Size.symbol(axis) for axis in _AXES[3 - rank :]]


for _rank in (1, 2, 3):
    _register(_rank)


@layer("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d")
@functional("interpolate", "upsample")
def interpolate(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    if tensor is None or tensor.layout is None:
        return result(call, tensor, None, Op.INTERPOLATE)
    layout = tensor.layout
    rank = layout.rank - 2
    if rank not in (1, 2, 3):
        return TensorValue()
    if given.is_none("size"):
        lengths = _scaled(layout.sizes[2:], given.value("scale_factor"))
    elif given.is_none("size") is False:
        lengths = _lengths(given.value("size"), rank)
    else:
        lengths = [Size.symbol(axis) for axis in _AXES[3 - rank :]]
    return result(call, tensor, convolutions.resize(layout, lengths), Op.INTERPOLATE, dtype=tensor.dtype)


def _scaled(lengths: Sequence[Size], scale: Value) -> list[Size | None]:
    factors = elements(scale) or (scale,) * len(lengths)
    axes = _AXES[3 - len(lengths) :]
    if len(factors) != len(lengths):
        return [Size.symbol(axis) for axis in axes]
    return [_times(size, factor, axis) for size, factor, axis in zip(lengths, factors, axes, strict=True)]


def _times(length: Size, factor: Value, axis: str) -> Size:
    if isinstance(factor, Constant) and isinstance(factor.value, (int, float)):
        if float(factor.value).is_integer():
            return length * int(factor.value)
        if length.value is not None:
            return Size.of(math.floor(length.value * factor.value))
    elif not isinstance(factor, (Unknown, Number)):
        whole = BoundArguments({"factor": factor}).size("factor")
        if whole is not None:
            return length * whole
    return Size.symbol(axis)
