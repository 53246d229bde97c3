"""Shape checks for attention over queries, keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.light_dataclasses import dataclass
from shapefix.tensors.errors import SizeMismatch
from shapefix.tensors.layout import Layout
from shapefix.tensors.networks import check_rank
from shapefix.tensors.options import provably_differ
from shapefix.tensors.polynomials import Size
from shapefix.tensors.products import check_size


@dataclass(frozen=True, slots=True)
class AttentionInput:
    """One input of attention: its layout, None if unknown, and its operand number."""

    layout: Layout | None
    operand: int


def check_attention(
    query: AttentionInput,
    key: AttentionInput,
    value: AttentionInput,
    *,
    widths: Sequence[int | Size | None] = (None, None, None),
    heads: int | Size | None = None,
    batch_first: bool | None = False,
    mask: AttentionInput | None = None,
    padding_mask: AttentionInput | None = None,
) -> None:
    """Check that the operands of a MultiheadAttention fit each other.

    query is (L, B, E), key (S, B, K) and value (S, B, V); with batch_first the batch comes first, and
    unbatched inputs have no B. widths are E, K and V. mask is (L, S) or (B * heads, L, S), padding_mask is
    (B, S). Raises ShapeError if two operands provably do not fit.
    """
    parts = (query, key, value)
    ranks = _ranks(parts)
    for part, width in zip(parts, widths, strict=True):
        if part.layout is not None:
            check_rank(part.layout, ranks, part.operand)
            if width is not None:
                check_size(part.layout.sizes[-1], width, part.layout.rank - 1, part.operand)
    if key.layout is not None and value.layout is not None:
        for dim in range(key.layout.rank - 1):
            _check_alike(key, value, dim, dim)
    if len(ranks) == 1 and ranks[0] == 3:
        if batch_first is None:
            return
        _check_alike(query, key, int(not batch_first), int(not batch_first))
        _check_alike(query, value, int(not batch_first), int(not batch_first))
    time = 0 if ranks == (2,) or not batch_first else 1
    if mask is not None and mask.layout is not None:
        check_rank(mask.layout, (2, 3), mask.operand)
        _check_alike(mask, query, mask.layout.rank - 2, time)
        _check_alike(mask, key, mask.layout.rank - 1, time)
        if mask.layout.rank == 3 and heads is not None and len(ranks) == 1:
            batch: int | Size | None = 1
            if ranks[0] == 3:
                known = query.layout or key.layout
                batch = None if known is None else known.sizes[1 - time]
            if batch is not None:
                check_size(mask.layout.sizes[0], batch * heads, 0, mask.operand)
    if padding_mask is not None and padding_mask.layout is not None and len(ranks) == 1:
        check_rank(padding_mask.layout, (ranks[0] - 1,), padding_mask.operand)
        _check_alike(padding_mask, key, ranks[0] - 2, time)
        if ranks[0] == 3:
            _check_alike(padding_mask, key if query.layout is None else query, 0, 1 - time)


def _ranks(parts: Sequence[AttentionInput]) -> tuple[int, ...]:
    """Possible ranks of the inputs: the rank of the first known one, or 2 and 3.

    Raises WrongRank if that rank is neither 2 nor 3.
    """
    for part in parts:
        if part.layout is not None:
            check_rank(part.layout, (2, 3), part.operand)
            return (part.layout.rank,)
    return (2, 3)


def _check_alike(one: AttentionInput, two: AttentionInput, dim: int, other_dim: int) -> None:
    if one.layout is None or two.layout is None:
        return
    have, want = one.layout.sizes[dim], two.layout.sizes[other_dim]
    if provably_differ(have, want):
        message = f"expected size {want} in dimension {dim}, got {have}"
        raise SizeMismatch(message, have, want, dim, one.operand, two.operand, other_dim)
