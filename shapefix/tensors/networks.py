"""Neural network layers: embedding, normalization, recurrence, attention."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout, contiguous, permuted_dense, sizes_of, unknown_strides
from shapefix.tensors.memory_format import in_suggested_format
from shapefix.tensors.options import provably_differ
from shapefix.tensors.polynomials import Size
from shapefix.tensors.products import check_size
from shapefix.tensors.quotients import modulo


def embedding(indices: Layout, dim: int | Size) -> Layout:
    """Layout of an Embedding's output: the sizes of the indices, then dim."""
    return contiguous((*indices.sizes, dim))


def layer_norm(layout: Layout, normalized: Sequence[int | Size]) -> Layout:
    """Layout of a LayerNorm's output.

    Raises ShapeError if the last sizes provably differ from the normalized shape.
    """
    _check_normalized(layout, sizes_of(normalized))
    return contiguous(layout.sizes)


def rms_norm(layout: Layout, normalized: Sequence[int | Size]) -> Layout:
    """Layout of an RMSNorm's output. Raises ShapeError as layer_norm does."""
    _check_normalized(layout, sizes_of(normalized))
    return in_suggested_format(layout.sizes, layout)


def _check_normalized(layout: Layout, normalized: tuple[Size, ...]) -> None:
    last = layout.sizes[layout.rank - len(normalized) :] if len(normalized) <= layout.rank else ()
    message = (
        f"normalized_shape is [{', '.join(map(str, normalized))}], "
        f"but the input has sizes [{', '.join(map(str, layout.sizes))}]"
    )
    if len(last) < len(normalized):
        raise WrongRank(message, layout.rank, range(len(normalized), len(normalized) + 3))
    for place, (have, want) in enumerate(zip(last, normalized, strict=True)):
        if provably_differ(have, want):
            raise SizeMismatch(message, have, want, layout.rank - len(normalized) + place)


def check_rank(layout: Layout, ranks: Sequence[int], operand: int = 0) -> None:
    """Check that the rank is among ranks. Raises WrongRank about operand number `operand`."""
    if layout.rank not in ranks:
        wanted = " or ".join(f"{rank}D" for rank in ranks)
        raise WrongRank(f"expected {wanted} input (got {layout.rank}D input)", layout.rank, ranks, operand)


def check_divisible(size: int | Size, by: int | Size, what: str) -> None:
    """Check that a size is divisible by a number; `what` is torch's name of the size.

    Raises NotDivisible if there is provably a remainder.
    """
    size, by = Size.of(size), Size.of(by)
    if by.value != 0 and same(modulo(size, by), 0) is False:
        raise NotDivisible(f"{what} {size} must be divisible by {by}", size, by, what)


def batch_norm(
    layout: Layout, channels: int | Size | None = None, ranks: Sequence[int] = (2, 3, 4, 5)
) -> Layout:
    """Layout of BatchNorm's output, in the memory format of the input.

    Raises ShapeError for a rank not in ranks, or if the size of dimension 1 provably differs from channels.
    """
    check_rank(layout, ranks)
    if channels is not None:
        check_size(layout.sizes[1], channels, dim=1)
    return in_suggested_format(layout.sizes, layout)


def group_norm(
    layout: Layout, groups: int | Size | None = None, channels: int | Size | None = None
) -> Layout:
    """Layout of GroupNorm's output, in the memory format of the input.

    Raises ShapeError for rank 0 or 1, or if the size of dimension 1 provably differs from channels or is not
    divisible by groups.
    """
    if layout.rank < 2:
        raise WrongRank(f"expected at least 2 dimensions, got {layout.rank}", layout.rank, (2, 3, 4, 5))
    if channels is not None:
        check_size(layout.sizes[1], channels, dim=1)
    if groups is not None:
        check_divisible(layout.sizes[1], groups, "number of channels")
    return in_suggested_format(layout.sizes, layout)


def instance_norm(layout: Layout, rank: int | None = None, channels: int | Size | None = None) -> Layout:
    """Layout of InstanceNorm's output over `rank` spatial dimensions, batched or unbatched.

    Raises ShapeError for other ranks, or if the number of channels provably differs from channels.
    """
    if rank is not None:
        check_rank(layout, (rank + 1, rank + 2))
        if channels is not None:
            check_size(layout.sizes[-rank - 1], channels, dim=layout.rank - rank - 1)
    return contiguous(layout.sizes)


def recurrent(
    layout: Layout,
    hidden: int | Size,
    *,
    layers: int | Size = 1,
    bidirectional: bool = False,
    batch_first: bool = False,
    projection: int | Size | None = None,
    features: int | Size | None = None,
) -> tuple[Layout, Layout]:
    """Layouts of output and h_n of an LSTM, GRU or RNN over (T, B, features), or (B, T, features).

    With batch_first the output is a transposed view, so it is not contiguous. Without a projection c_n of an
    LSTM has the layout of h_n. Raises ShapeError for ranks other than 2 and 3, or if the last size provably
    differs from features.
    """
    if layout.rank not in (2, 3):
        raise WrongRank(f"expected a 2-D or 3-D input, got {layout.rank}-D", layout.rank, (2, 3))
    if features is not None and provably_differ(layout.sizes[-1], features):
        raise SizeMismatch(
            f"input.size(-1) must be equal to input_size. Expected {features}, got {layout.sizes[-1]}",
            layout.sizes[-1],
            Size.of(features),
            layout.rank - 1,
        )
    directions = 2 if bidirectional else 1
    width = Size.of(hidden if projection is None else projection)
    sizes = (*layout.sizes[:-1], width * directions)
    states = Size.of(layers) * directions
    if layout.rank == 2:
        return contiguous(sizes), contiguous((states, width))
    if batch_first:
        return permuted_dense(sizes, (1, 0, 2)), contiguous((states, sizes[0], width))
    return contiguous(sizes), contiguous((states, sizes[1], width))


def check_state(
    layout: Layout,
    state: Layout,
    operand: int,
    width: int | Size | None,
    count: int | Size | None,
    *,
    batch_first: bool | None,
) -> None:
    """Check the state of an RNN for an input of the given layout; operand is the state's operand number.

    The state is (count, B, width), or (count, width) for an unbatched input; count is the number of layers
    times the number of directions. Raises ShapeError if the state provably does not fit, or for (B, count,
    width), which fits only if both sizes are equal by chance.
    """
    if layout.rank not in (2, 3):
        return
    check_rank(state, (layout.rank,), operand)
    if count is not None:
        check_size(state.sizes[0], count, 0, operand)
        if layout.rank == 3 and batch_first is not None:
            batch, number = layout.sizes[0 if batch_first else 1], Size.of(count)
            if state.sizes[0] == batch != number and state.sizes[1] == number:
                message = f"expected {number} layers and directions in dimension 0, got the batch {batch}"
                raise SizeMismatch(message, batch, number, dim=0, operand=operand)
    if width is not None:
        check_size(state.sizes[-1], width, state.rank - 1, operand)
    if layout.rank == 3 and batch_first is not None:
        dim = 0 if batch_first else 1
        if provably_differ(state.sizes[1], layout.sizes[dim]):
            raise SizeMismatch(
                f"expected a hidden state for a batch of {layout.sizes[dim]}, got {state.sizes[1]}",
                state.sizes[1],
                layout.sizes[dim],
                dim=1,
                operand=operand,
                other=0,
                other_dim=dim,
            )


def check_cell_state(layout: Layout, state: Layout, operand: int, hidden: int | Size) -> None:
    """Check the state of an RNN cell for an input of the given layout; operand is the state's operand number.

    The state is (B, hidden), or (hidden,) for an unbatched input. Raises ShapeError if it provably does not
    fit.
    """
    check_rank(state, (layout.rank,), operand)
    check_size(state.sizes[-1], hidden, state.rank - 1, operand)
    if layout.rank == 2 and provably_differ(state.sizes[0], layout.sizes[0]):
        raise SizeMismatch(
            f"input batch size {layout.sizes[0]} doesn't match hidden batch size {state.sizes[0]}",
            state.sizes[0],
            layout.sizes[0],
            dim=0,
            operand=operand,
            other=0,
            other_dim=0,
        )


def multihead_attention(
    query: Layout,
    key: Layout,
    *,
    heads: int | Size = 1,
    batch_first: bool = False,
    average: bool = True,
    fast_path: bool | None = False,
) -> tuple[Layout, Layout]:
    """Layouts of output and weights of a MultiheadAttention over (L, B, E), or (B, L, E) with batch_first.

    With batch_first the output is a transposed view, so it is not contiguous, unless torch takes its fast
    path (evaluation without gradients); fast_path is None if that is unknown. average is
    average_attn_weights. Raises ShapeError for ranks other than 2 and 3.
    """
    check_rank(query, (2, 3))
    check_rank(key, (query.rank,), 1)
    if query.rank == 2:
        pair: tuple[Size, ...] = (query.sizes[0], key.sizes[0])
        return contiguous(query.sizes), contiguous(pair if average else (heads, *pair))
    time = 1 if batch_first else 0
    batch = query.sizes[1 - time]
    output = contiguous(query.sizes)
    if batch_first and not fast_path:
        output = (
            permuted_dense(query.sizes, (1, 0, 2)) if fast_path is False else unknown_strides(query.sizes)
        )
    pair = (query.sizes[time], key.sizes[time])
    return output, contiguous((batch, *pair) if average else (batch, heads, *pair))
