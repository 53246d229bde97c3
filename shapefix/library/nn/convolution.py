"""Convolutions: contiguous results, or channels_last if the input or the weight is."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.domains.gradients import mark_leaf
from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FALSE, Value
from shapefix.library.nn.changed_weights import note_weight
from shapefix.library.nn.layers import computed_dtype, fields_of, functional, layer, result, weights
from shapefix.library.nn.module import WEIGHT_IS_CHANNELS_LAST
from shapefix.library.nn.training import is_trained
from shapefix.library.registry import method
from shapefix.library.rejections import operand_number
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import as_result, assume_rank
from shapefix.tensors import convolutions, memory_format
from shapefix.tensors.layout import Layout, channels_last, contiguous, unknown_strides
from shapefix.tensors.networks import check_divisible, check_rank
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import quotient

_AXES = ("depth", "height", "width")


def spatial_rank(call: Call, kind: str = "") -> int:
    """Number of spatial dimensions of a layer or function, from the digit in its name."""
    return int(next(c for c in reversed(kind or call.name) if c.isdigit()))


def of_fresh_lengths(layout: Layout, rank: int) -> Layout:
    """Layout of the same memory format with unknown spatial sizes."""
    return convolutions.resize(layout, [Size.symbol(axis) for axis in _AXES[3 - rank :]])


def _groups_fit(given: BoundArguments) -> None:
    groups = given.size("groups")
    for name in ("in_channels", "out_channels"):
        channels = given.size(name)
        if groups is not None and channels is not None:
            check_divisible(channels, groups, name)


def _convolved(
    call: Call,
    tensor: TensorValue | None,
    given: BoundArguments,
    kernel: Sequence[Size] | None,
    out_channels: Size | None,
    in_channels: Size | None,
    weight_is_last: bool | None,
    rank: int,
    *,
    transposed: bool,
) -> Value:
    layout = None
    if tensor is not None and out_channels is not None:
        # The input may be a single image, without a batch.
        image = assume_rank(call, tensor, rank + 2, certain=False)
        names = ("stride", "padding", "dilation", *(("output_padding",) if transposed else ()))
        settings = {name: given.sizes(name, rank) for name in names}
        text = given.text("padding")
        if text == "same":
            kernel = None
        elif text == "valid":
            settings["padding"] = [Size.of(0)] * rank
        if kernel is None or None in settings.values():
            known = image if text == "same" else of_fresh_lengths(image, rank)
            layout = convolutions.conv(
                known,
                out_channels,
                (1,) * rank,
                in_channels=in_channels,
                weight_channels_last=weight_is_last,
            )
        else:
            convolution = convolutions.conv_transpose if transposed else convolutions.conv
            layout = convolution(
                image,
                out_channels,
                kernel,
                in_channels=in_channels,
                weight_channels_last=weight_is_last,
                **{name: value for name, value in settings.items() if value is not None},
            )
    dtype = computed_dtype(tensor)
    return result(call, tensor, layout, Op.CONVOLUTION, dtype=dtype, channels=(-rank - 1, out_channels))


def _register(rank: int, *, transposed: bool) -> None:
    kind = f"ConvTranspose{rank}d" if transposed else f"Conv{rank}d"

    @layer(kind, extra_fields={WEIGHT_IS_CHANNELS_LAST: FALSE}, validate=_groups_fit)
    @layer(f"Lazy{kind}", base=f"torch.nn.{kind}", extra_fields={WEIGHT_IS_CHANNELS_LAST: FALSE})
    def convolution(call: Call, given: BoundArguments) -> Value:
        expected = given.size("in_channels") if "in_channels" in given.values else None
        kernel = given.sizes("kernel_size", rank)
        if transposed and given.is_none("output_size") is not True:
            kernel = None
        return _convolved(
            call,
            given.tensor("input"),
            given,
            kernel,
            given.size("out_channels"),
            expected,
            given.flag(WEIGHT_IS_CHANNELS_LAST),
            rank,
            transposed=transposed,
        )

    def weight(call: Call) -> Value:
        given = BoundArguments(fields_of(call.receiver))
        layout = _weight_layout(given, rank, transposed=transposed)
        made = TensorValue() if layout is None else as_result(call, layout, Op.PARAMETER)
        made.graph = is_trained(call, call.receiver)
        if made.graph:
            mark_leaf(call.ev, made)
        note_weight(call, made)
        return made

    method(f"torch.nn.{kind}", "@weight")(weight)
    weights((kind, f"Lazy{kind}"), bias=lambda given: (given.size("out_channels"),))
    _register_function(rank, transposed=transposed)


def _weight_layout(given: BoundArguments, rank: int, *, transposed: bool) -> Layout | None:
    outer, inner = given.size("out_channels"), given.size("in_channels")
    kernel, groups = given.sizes("kernel_size", rank), given.size("groups")
    if (
        outer is None
        or inner is None
        or kernel is None
        or groups is None
        or "in_channels" not in given.values
    ):
        return None
    if transposed:
        outer, inner = inner, outer
    sizes = (outer, quotient(inner, groups), *kernel)
    is_last = given.flag(WEIGHT_IS_CHANNELS_LAST)
    if rank == 1 or is_last is False:
        return contiguous(sizes)
    return channels_last(sizes) if is_last else unknown_strides(sizes)


def _register_function(rank: int, *, transposed: bool) -> None:
    name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"

    @functional(name, namespaces=("torch", "torch.nn.functional"))
    def convolution(call: Call, given: BoundArguments) -> Value:
        tensor, weight, groups = given.tensor("input"), given.tensor("weight"), given.size("groups")
        kernel, out_channels, in_channels, is_last = None, None, None, None
        if weight is not None and weight.layout is not None:
            check_rank(weight.layout, (rank + 2,), operand_number(given.values, "input", "weight"))
            first, second, *kernel = weight.layout.sizes
            if groups is not None:
                check_divisible(first, groups, "weight.size(0)")
            is_last = memory_format.suggests_channels_last(weight.layout)
            in_channels = first if transposed else None if groups is None else second * groups
            out_channels = first if not transposed else None if groups is None else second * groups
        return _convolved(
            call, tensor, given, kernel, out_channels, in_channels, is_last, rank, transposed=transposed
        )


for _rank in (1, 2, 3):
    _register(_rank, transposed=False)
    _register(_rank, transposed=True)
