"""Results of products: matmul, linear, einsum, attention."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.iteration import broadcast_sizes
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.polynomials import Size


def matmul(left: Layout, right: Layout) -> Layout:
    """The layout of `left @ right`: vectors, matrices, and batches of them that broadcast.

    Raises ShapeError for rank 0, where the inner sizes provably differ, or the batches cannot broadcast.
    """
    if not left.rank or not right.rank:
        scalar = 0 if not left.rank else 1
        raise WrongRank("both arguments to matmul need to be at least 1D", 0, (1, 2, 3, 4), scalar)
    rows = left.sizes[-2:-1]
    columns = right.sizes[-1:] if right.rank > 1 else ()
    inner = right.sizes[-2] if right.rank > 1 else right.sizes[0]
    if same(left.sizes[-1], inner) is False:
        raise SizeMismatch(
            f"mat1 and mat2 shapes cannot be multiplied "
            f"({_shape(left.sizes[-2:])} and {_shape(right.sizes[-2:])})",
            left.sizes[-1],
            inner,
            dim=left.rank - 1,
            other=1,
            other_dim=max(right.rank - 2, 0),
        )
    batch = broadcast_sizes(left.sizes[:-2], right.sizes[:-2])
    return contiguous((*batch, *rows, *columns))


def _shape(sizes: Sequence[Size]) -> str:
    return "x".join(map(str, sizes))


def linear(layout: Layout, out_features: int | Size, in_features: int | Size | None = None) -> Layout:
    """The layout of a Linear layer's output: the last size becomes out_features.

    Raises ShapeError for rank 0, or where the last size is provably not in_features.
    """
    if not layout.rank:
        raise WrongRank("both arguments to linear need to be at least 1D", 0, (1, 2, 3, 4))
    if in_features is not None:
        check_size(layout.sizes[-1], in_features, dim=layout.rank - 1)
    return contiguous((*layout.sizes[:-1], out_features))


def check_size(have: Size, want: int | Size, dim: int, operand: int = 0) -> None:
    """Raises SizeMismatch where a size provably is not what a layer's setting asks for."""
    if same(have, want) is False:
        raise SizeMismatch(
            f"expected size {want} in dimension {dim}, got {have}", have, Size.of(want), dim, operand
        )


def scaled_dot_product_attention(query: Layout, key: Layout, value: Layout) -> Layout:
    """The sizes of attention over (..., L, E), (..., S, E) and (..., S, V): (..., L, V).

    Strides are unknown: they depend on the backend. Raises ShapeError for fewer than two dimensions, or
    where E or S provably differ.
    """
    if min(query.rank, key.rank, value.rank) < 2:
        raise ShapeError("scaled_dot_product_attention takes tensors of at least 2 dimensions")
    if same(query.sizes[-1], key.sizes[-1]) is False:
        raise SizeMismatch(
            f"the last size of query ({query.sizes[-1]}) differs from that of key ({key.sizes[-1]})",
            query.sizes[-1],
            key.sizes[-1],
            dim=query.rank - 1,
            other=1,
            other_dim=key.rank - 1,
        )
    if same(key.sizes[-2], value.sizes[-2]) is False:
        raise SizeMismatch(
            f"key has {key.sizes[-2]} positions, value has {value.sizes[-2]}",
            key.sizes[-2],
            value.sizes[-2],
            dim=key.rank - 2,
            operand=1,
            other=2,
            other_dim=value.rank - 2,
        )
    return unknown_strides((*query.sizes[:-1], value.sizes[-1]))


def einsum(equation: str, operands: Sequence[Layout]) -> Layout:
    """The sizes of `torch.einsum(equation, ...)`; the strides are unknown for more than one dimension.

    Raises ShapeError where the equation does not fit the operands, or a letter stands for sizes that
    provably differ.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"einsum(): {len(terms)} terms in the equation for {len(operands)} operands")
    letters: dict[str, Size] = {}
    shapes: list[tuple[Size, ...]] = []
    for term, operand in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        spare = operand.rank - len(before) - len(after)
        if spare < 0 or (spare and not dots):
            raise ShapeError(f"einsum(): {term} does not fit an operand of {operand.rank} dimensions")
        end = len(before) + spare
        shapes.append(operand.sizes[len(before) : end])
        for letter, size in zip(
            before + after, operand.sizes[: len(before)] + operand.sizes[end:], strict=True
        ):
            letters[letter] = _agreed(letter, letters.get(letter, size), size)
    dotted = broadcast_sizes(*shapes)
    if not arrow:
        singles = sorted(letter for letter in letters if inputs.count(letter) == 1)
        output = "..." * bool(dotted) + "".join(singles)
    before, _, after = output.partition("...")
    if not set(before + after) <= letters.keys():
        raise ShapeError(f"einsum(): output {output} names a letter that no operand has")
    sizes = (*(letters[c] for c in before), *dotted * ("..." in output), *(letters[c] for c in after))
    return unknown_strides(sizes) if len(sizes) > 1 else contiguous(sizes)


def _agreed(letter: str, one: Size, two: Size) -> Size:
    if same(one, two) is False and at_least(one, 2) and at_least(two, 2):
        raise ShapeError(f"einsum(): {letter} stands for size {one} and for size {two}")
    return two if one.value == 1 else one
