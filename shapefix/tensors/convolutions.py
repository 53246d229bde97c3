"""Results of convolutions and pooling, over one, two or three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.dims import unsqueeze
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, channels_last, contiguous, sizes_of, unknown_strides
from shapefix.tensors.memory_format import suggests_channels_last
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import ceil_divide, floor_divide

Number = int | Size
Numbers = int | Size | Sequence[int | Size]
"""One number for every spatial dimension, or a number for each."""


def conv(
    layout: Layout,
    out_channels: Number,
    kernel: Sequence[Number],
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    *,
    in_channels: Number | None = None,
    weight_channels_last: bool | None = False,
) -> Layout:
    """The layout of a convolution's output; kernel has one size for each spatial dimension.

    Contiguous, or channels_last where the input or the weight is. Raises ShapeError for a wrong rank or
    number of channels, and where the kernel is provably larger than the padded input.
    """
    _check(layout, len(kernel), in_channels)
    lengths = layout.sizes[layout.rank - len(kernel) :]
    if padding == "same":
        found = list(lengths)
    else:
        pads = each(0 if isinstance(padding, str) else padding, len(kernel))
        settings = (sizes_of(kernel), each(stride, len(kernel)), pads, each(dilation, len(kernel)))
        found = [
            _window(n, k, step, pad, spread)
            for n, k, step, pad, spread in zip(lengths, *settings, strict=True)
        ]
    return _following(layout, out_channels, found, weight_channels_last if len(kernel) > 1 else False)


def conv_transpose(
    layout: Layout,
    out_channels: Number,
    kernel: Sequence[Number],
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    *,
    in_channels: Number | None = None,
    weight_channels_last: bool | None = False,
) -> Layout:
    """The layout of a transposed convolution's output; layout and errors as for conv."""
    rank = len(kernel)
    _check(layout, rank, in_channels)
    settings = (each(stride, rank), each(padding, rank), each(output_padding, rank), each(dilation, rank))
    found = [
        (n - 1) * step - 2 * pad + spread * (k - 1) + extra + 1
        for n, k, step, pad, extra, spread in zip(
            layout.sizes[layout.rank - rank :], sizes_of(kernel), *settings, strict=True
        )
    ]
    return _following(layout, out_channels, found, weight_channels_last if rank > 1 else False)


def pool(
    layout: Layout,
    kernel: Sequence[Number],
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Layout:
    """The layout of a max or average pooling's output; kernel has one size for each spatial dimension.

    Contiguous, or channels_last where the input is. Raises ShapeError for a wrong rank, and where the
    kernel is provably larger than the padded input.
    """
    rank = len(kernel)
    _check(layout, rank, None)
    sizes = sizes_of(kernel)
    settings = (
        sizes,
        sizes if stride is None else each(stride, rank),
        each(padding, rank),
        each(dilation, rank),
    )
    found = [
        _window(n, k, step, pad, spread, ceil_mode)
        for n, k, step, pad, spread in zip(layout.sizes[layout.rank - rank :], *settings, strict=True)
    ]
    return _following(layout, layout.sizes[-rank - 1], found, False)


def resized(layout: Layout, lengths: Sequence[Number | None]) -> Layout:
    """The layout of adaptive pooling or interpolation to these spatial sizes; None keeps one.

    Contiguous, or channels_last where the input is. Raises ShapeError for a wrong rank.
    """
    rank = len(lengths)
    _check(layout, rank, None)
    have = layout.sizes[layout.rank - rank :]
    found = [size if length is None else Size.of(length) for size, length in zip(have, lengths, strict=True)]
    return _following(layout, layout.sizes[-rank - 1], found, False)


def each(numbers: Numbers, rank: int) -> tuple[Size, ...]:
    """A number for each of rank dimensions. Raises ShapeError for a sequence of another length."""
    if isinstance(numbers, int | Size):
        return (Size.of(numbers),) * rank
    given = sizes_of(numbers)
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        raise ShapeError(f"expected one number, or {rank}, got {len(given)}")
    return given


def _check(layout: Layout, rank: int, in_channels: Number | None) -> None:
    if layout.rank not in (rank + 1, rank + 2):
        raise ShapeError(f"expected a {rank + 1}D or {rank + 2}D input, got {layout.rank}D")
    channels = layout.sizes[-rank - 1]
    if in_channels is not None and same(channels, in_channels) is False:
        raise ShapeError(f"expected input to have {in_channels} channels, but got {channels}")


def _window(
    length: Size, kernel: Size, stride: Size, pad: Size, dilation: Size, ceil_mode: bool = False
) -> Size:
    """How many windows fit."""
    spare = length + 2 * pad - dilation * (kernel - 1) - 1
    if not ceil_mode:
        if at_least(spare, 0) is False:
            raise ShapeError(
                f"padded input size ({length + 2 * pad}) is smaller than the kernel "
                f"({dilation * (kernel - 1) + 1})"
            )
        return floor_divide(spare, stride) + 1
    if kernel == stride and pad.value == 0 and dilation.value == 1:
        return ceil_divide(length, stride)
    count = ceil_divide(spare, stride) + 1
    beyond = at_least((count - 1) * stride - length - pad, 0)
    # A last window that would start in the padding is dropped.
    return Size.symbol("windows") if beyond is None else count - 1 if beyond else count


def _following(
    layout: Layout, channels: Number, lengths: Sequence[Size], weight_channels_last: bool | None
) -> Layout:
    """The result of these channels and lengths: in channels_last where the input or the weight is."""
    batched = layout.rank == len(lengths) + 2
    sizes = (*layout.sizes[: layout.rank - len(lengths) - 1], channels, *lengths)
    if len(lengths) == 1:
        return contiguous(sizes)
    follows = suggests_channels_last(layout if batched else unsqueeze(layout, 0))
    if follows is False and weight_channels_last is False:
        return contiguous(sizes)
    if follows or weight_channels_last:
        whole = channels_last(sizes if batched else (1, *sizes))
        return whole if batched else Layout(whole.sizes[1:], whole.strides[1:])
    return unknown_strides(sizes)
