"""Results of network layers: embedding, normalization, recurrence, attention."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import same
from shapefix.tensors.errors import SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout, contiguous, permuted_dense, sizes_of, unknown_strides
from shapefix.tensors.memory_format import suggested
from shapefix.tensors.polynomials import Size


def embedding(indices: Layout, dim: int | Size) -> Layout:
    """The layout of an Embedding's output: the sizes of the indices, then dim."""
    return contiguous((*indices.sizes, dim))


def layer_norm(layout: Layout, normalized: Sequence[int | Size]) -> Layout:
    """The layout of a LayerNorm's output.

    Raises ShapeError where the last sizes provably differ from the normalized shape.
    """
    _check_normalized(layout, sizes_of(normalized))
    return contiguous(layout.sizes)


def rms_norm(layout: Layout, normalized: Sequence[int | Size]) -> Layout:
    """The layout of an RMSNorm's output. Raises ShapeError as layer_norm does."""
    _check_normalized(layout, sizes_of(normalized))
    return suggested(layout.sizes, layout)


def _check_normalized(layout: Layout, normalized: tuple[Size, ...]) -> None:
    last = layout.sizes[layout.rank - len(normalized) :] if len(normalized) <= layout.rank else ()
    message = (
        f"normalized_shape is [{', '.join(map(str, normalized))}], "
        f"but the input has sizes [{', '.join(map(str, layout.sizes))}]"
    )
    if len(last) < len(normalized):
        raise WrongRank(message, layout.rank, range(len(normalized), len(normalized) + 3))
    for place, (have, want) in enumerate(zip(last, normalized, strict=True)):
        if same(have, want) is False:
            raise SizeMismatch(message, have, want, layout.rank - len(normalized) + place)


def batch_norm(layout: Layout) -> Layout:
    """The layout of the output of BatchNorm or GroupNorm: it follows channels_last."""
    return suggested(layout.sizes, layout)


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
    """The layouts of the output and of h_n of an LSTM, GRU or RNN over (T, B, features), or (B, T, features).

    With batch_first the output is a transposed view, not contiguous. An LSTM's c_n has the layout of h_n,
    but for a projection. Raises ShapeError for ranks other than 2 and 3, and where the last size is
    provably not features.
    """
    if layout.rank not in (2, 3):
        raise WrongRank(f"expected a 2-D or 3-D input, got {layout.rank}-D", layout.rank, (2, 3))
    if features is not None and same(layout.sizes[-1], features) is False:
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


def multihead_attention(
    query: Layout,
    key: Layout,
    *,
    heads: int | Size = 1,
    batch_first: bool = False,
    average: bool = True,
    fast_path: bool | None = False,
) -> tuple[Layout, Layout]:
    """The layouts of the output and the weights of a MultiheadAttention over (L, B, E), or (B, L, E).

    With batch_first the output is a transposed view, not contiguous, unless torch takes the fast path of
    evaluation without gradients; fast_path is None where that is not known. Raises ShapeError for ranks
    other than 2 and 3.
    """
    if query.rank not in (2, 3) or key.rank != query.rank:
        raise WrongRank(
            f"query should be unbatched 2D or batched 3D tensor but received {query.rank}-D",
            query.rank,
            (2, 3),
        )
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
