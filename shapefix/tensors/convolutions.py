"""Convolution, pooling and interpolation over one, two or three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least
from shapefix.tensors.dims import unsqueeze
from shapefix.tensors.errors import ShapeError, SizeMismatch, WindowTooLarge, WrongRank
from shapefix.tensors.layout import (
    Layout,
    channels_last,
    contiguous,
    contiguous_strides,
    is_contiguous,
    permuted_dense,
    sizes_of,
    unknown_strides,
)
from shapefix.tensors.memory_format import as_contiguous, suggests_channels_last
from shapefix.tensors.options import provably_differ
from shapefix.tensors.polynomials import ONE, Size
from shapefix.tensors.quotients import ceil_divide, floor_divide

Number = int | Size
Numbers = int | Size | Sequence[int | Size]
"""One number for all spatial dimensions, or one for each."""


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
    """Layout of a convolution's output; kernel has one size per spatial dimension.

    Contiguous, or channels_last if the input or the weight is. Raises ShapeError for a wrong rank or number
    of channels, or a kernel that is provably larger than the padded input.
    """
    rank = len(kernel)
    _check(layout, rank, in_channels)
    pads = [Size.of(0)] * rank if isinstance(padding, str) else each(padding, rank)
    steps, spreads = each(stride, rank), each(dilation, rank)

    def windows(lengths: Sequence[Size]) -> list[Size]:
        if padding == "same":
            return list(lengths)
        settings = zip(lengths, sizes_of(kernel), steps, pads, spreads, strict=True)
        return [
            _window(n, k, step, pad, spread, dim)
            for dim, (n, k, step, pad, spread) in enumerate(settings, -rank)
        ]

    found = windows(layout.sizes[layout.rank - rank :])
    if rank == 1:
        spare = 2 * pads[0] - spreads[0] * (Size.of(kernel[0]) - 1)
        alone = ONE if padding == "same" or at_least(steps[0] - spare, 1) else found[0]
        return _one_dimensional(layout, out_channels, found[0], alone)
    return _followed(_following(layout, out_channels, found, weight_channels_last), rank)


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
    """Layout of a transposed convolution's output, in the memory format of conv's result.

    Raises ShapeError for a wrong rank or number of channels, an output_padding that is not smaller than
    stride or dilation, or an output of negative size.
    """
    rank = len(kernel)
    _check(layout, rank, in_channels)
    settings = (each(stride, rank), each(padding, rank), each(output_padding, rank), each(dilation, rank))
    found = [
        (n - 1) * step - 2 * pad + spread * (k - 1) + extra + 1
        for n, k, step, pad, extra, spread in zip(
            layout.sizes[layout.rank - rank :], sizes_of(kernel), *settings, strict=True
        )
    ]
    for step, extra, spread in zip(settings[0], settings[2], settings[3], strict=True):
        if at_least(step - extra, 1) is False and at_least(spread - extra, 1) is False:
            raise ShapeError("output padding must be smaller than either stride or dilation")
    if any(at_least(length, 0) is False for length in found):
        raise ShapeError("output size is too small: the padding exceeds the output")
    if rank == 1:
        alone = settings[3][0] * (Size.of(kernel[0]) - 1) + settings[2][0] - 2 * settings[1][0] + 1
        return _one_dimensional(layout, out_channels, found[0], alone)
    return _followed(_following(layout, out_channels, found, weight_channels_last), rank)


def pool(
    layout: Layout,
    kernel: Sequence[Number],
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Layout:
    """Layout of a max or average pooling's output; kernel has one size per spatial dimension.

    Contiguous, or channels_last if the input is. Raises ShapeError for a wrong rank, a padding above half of
    the kernel, or a kernel that is provably larger than the padded input.
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
    for size, _, pad, spread in zip(*settings, strict=True):
        if at_least(spread * (size - 1) + 1 - 2 * pad, 0) is False:
            raise ShapeError(
                f"pad should be at most half of the kernel, but {pad} is more than half of {size}"
            )
    found = [
        _window(n, k, step, pad, spread, dim, ceil_mode)
        for dim, (n, k, step, pad, spread) in enumerate(
            zip(layout.sizes[layout.rank - rank :], *settings, strict=True), -rank
        )
    ]
    return _following(layout, layout.sizes[-rank - 1], found, False)


def resize(layout: Layout, lengths: Sequence[Number | None]) -> Layout:
    """Layout of adaptive pooling or interpolation to the given spatial sizes; None keeps a size.

    Contiguous, or channels_last if the input is. Raises ShapeError for a wrong rank.
    """
    rank = len(lengths)
    _check(layout, rank, None)
    have = layout.sizes[layout.rank - rank :]
    found = [size if length is None else Size.of(length) for size, length in zip(have, lengths, strict=True)]
    return _following(layout, layout.sizes[-rank - 1], found, False)


def each(numbers: Numbers, rank: int) -> tuple[Size, ...]:
    """Expand numbers to one per dimension. Raises ShapeError for a sequence of the wrong length."""
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
        message = f"expected a {rank + 1}D or {rank + 2}D input, got {layout.rank}D"
        raise WrongRank(message, layout.rank, (rank + 1, rank + 2))
    channels = layout.sizes[-rank - 1]
    if in_channels is not None and provably_differ(channels, in_channels):
        raise SizeMismatch(
            f"expected input to have {in_channels} channels, but got {channels}",
            channels,
            Size.of(in_channels),
            layout.rank - rank - 1,
        )


def _window(
    length: Size, kernel: Size, stride: Size, pad: Size, dilation: Size, dim: int, ceil_mode: bool = False
) -> Size:
    """Number of windows in dimension dim, counted from the end.

    Raises WindowTooLarge if there is provably none, ShapeError for a stride provably not positive.
    """
    if at_least(stride, 1) is False:
        raise ShapeError(f"stride is {stride}, but must be > 0")
    spare = length + 2 * pad - dilation * (kernel - 1) - 1
    if not ceil_mode:
        if at_least(spare, 0) is False:
            window = dilation * (kernel - 1) + 1
            raise WindowTooLarge(
                f"padded input size ({length + 2 * pad}) is smaller than the kernel ({window})",
                length + 2 * pad,
                window,
                dim,
            )
        return floor_divide(spare, stride) + 1
    if kernel == stride and pad.value == 0 and dilation.value == 1:
        return ceil_divide(length, stride)
    count = ceil_divide(spare, stride) + 1
    beyond = at_least((count - 1) * stride - length - pad, 0)
    # torch drops a last window that would start in the padding on the right.
    windows = Size.symbol("windows") if beyond is None else count - 1 if beyond else count
    if at_least(windows, 1) is False:
        raise WindowTooLarge(
            f"output size is too small: no window of size {kernel} starts inside the input of size {length}",
            length + 2 * pad,
            dilation * (kernel - 1) + 1,
            dim,
        )
    return windows


def _followed(layout: Layout, rank: int) -> Layout:
    """Drop the strides of a channels_last 3-D result: whether torch keeps them depends on the backend."""
    if rank < 3 or layout.strides == contiguous_strides(layout.sizes):
        return layout
    return unknown_strides(layout.sizes)


def _one_dimensional(layout: Layout, channels: Number, length: Size, alone: Size) -> Layout:
    """Layout of a 1-D convolution's output; torch makes the input contiguous and runs a 2-D convolution.

    alone is the output length for an input of length 1.
    """
    sizes = (*layout.sizes[:-2], Size.of(channels), length)
    source = layout if layout.rank == 3 else unsqueeze(layout, 0)
    if layout.is_constant:
        if not suggests_channels_last(unsqueeze(as_contiguous(source), 2)):
            return contiguous(sizes)
        return permuted_dense(sizes, (0, 2, 1) if layout.rank == 3 else (1, 0))
    if source.strides == contiguous_strides(source.sizes) or is_contiguous(source) is False:
        return contiguous(sizes)
    # A transposed input of length 1 is contiguous, but torch still treats it as channels_last.
    if at_least(source.sizes[1], 2) and alone.value is not None and alone.value <= 1:
        return contiguous(sizes)
    return unknown_strides(sizes)


def _following(
    layout: Layout, channels: Number, lengths: Sequence[Size], weight_channels_last: bool | None
) -> Layout:
    """Layout of a result of these channels and lengths: channels_last if the input or the weight is."""
    batched = layout.rank == len(lengths) + 2
    sizes = (*layout.sizes[: layout.rank - len(lengths) - 1], channels, *lengths)
    source = layout if batched else unsqueeze(layout, 0)
    if len(lengths) == 1:
        # torch pools 1-D inputs as 2-D ones, and some kinds of pooling then keep a channels_last order.
        ordered = suggests_channels_last(unsqueeze(source, -2)) is not False
        return unknown_strides(sizes) if ordered else contiguous(sizes)
    follows = suggests_channels_last(source)
    if follows is False and weight_channels_last is False:
        return contiguous(sizes)
    if follows or weight_channels_last:
        whole = channels_last(sizes if batched else (1, *sizes))
        return whole if batched else Layout(whole.sizes[1:], whole.strides[1:])
    return unknown_strides(sizes)
