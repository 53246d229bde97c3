"""Products: matmul, linear, einsum, scaled dot-product attention."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.options import provably_differ
from shapefix.tensors.polynomials import Size
from shapefix.tensors.tensor_iterator import broadcast_sizes, check_expands_to


def matmul(left: Layout, right: Layout, first: int = 0) -> Layout:
    """Layout of `left @ right` for vectors, matrices and batches of matrices, with broadcasting.

    first is the operand number of left. Raises ShapeError for rank 0, or if the inner sizes provably differ
    or the batches provably do not broadcast.
    """
    for operand, layout in enumerate((left, right), first):
        if not layout.rank:
            raise WrongRank("both arguments to matmul need to be at least 1D", 0, (1, 2, 3, 4), operand)
    rows = left.sizes[-2:-1]
    columns = right.sizes[-1:] if right.rank > 1 else ()
    _check_inner(left, right, max(right.rank - 2, 0), first)
    batch = broadcast_sizes(left.sizes[:-2], right.sizes[:-2])
    return contiguous((*batch, *rows, *columns))


def _check_inner(left: Layout, right: Layout, other_dim: int, first: int) -> None:
    """Check the inner sizes of a product. Raises SizeMismatch if they provably differ."""
    have, want = left.sizes[-1], right.sizes[other_dim]
    if provably_differ(have, want):
        shapes = f"{_shape(left.sizes[-2:])} and {_shape(right.sizes[-2:])}"
        message = f"mat1 and mat2 shapes cannot be multiplied ({shapes})"
        raise SizeMismatch(
            message, have, want, left.rank - 1, operand=first, other=first + 1, other_dim=other_dim
        )


def exact_product(left: Layout, right: Layout, ranks: tuple[int, int], first: int = 0) -> Layout:
    """Layout of mm (ranks 2 and 2), bmm (3 and 3), mv (2 and 1) or dot (1 and 1), without broadcasting.

    first is the operand number of left. Raises ShapeError for other ranks, or if the inner sizes or the batch
    sizes provably differ.
    """
    for operand, (layout, rank) in enumerate(zip((left, right), ranks, strict=True), first):
        if layout.rank != rank:
            message = f"expected a tensor of {rank} dimensions, got {layout.rank}"
            raise WrongRank(message, layout.rank, (rank,), operand)
    other_dim = max(right.rank - 2, 0)
    _check_inner(left, right, other_dim, first)
    if left.rank < 3:
        return contiguous((*left.sizes[:-1], *right.sizes[1:]))
    have, want = left.sizes[0], right.sizes[0]
    if provably_differ(have, want):
        message = f"Expected size for first two dimensions of batch2 tensor to be: [{have}], got: [{want}]"
        raise SizeMismatch(message, have, want, 0, operand=first, other=first + 1, other_dim=0)
    return contiguous((have, left.sizes[1], right.sizes[2]))


def added_product(added: Layout, product: Layout) -> Layout:
    """Layout of addmm, addmv, baddbmm and similar.

    Raises ShapeError if added provably does not expand to the product.
    """
    check_expands_to(product.sizes, added.sizes, operand=0, other=None)
    return product


def outer(left: Layout, right: Layout) -> Layout:
    """Layout of `torch.outer(left, right)`. Raises WrongRank for operands other than vectors."""
    for operand, layout in enumerate((left, right)):
        if layout.rank != 1:
            message = f"outer: Expected 1-D argument, but got {layout.rank}-D"
            raise WrongRank(message, layout.rank, (1,), operand)
    return contiguous((*left.sizes, *right.sizes))


def _shape(sizes: Sequence[Size]) -> str:
    return "x".join(map(str, sizes))


def linear(layout: Layout, out_features: int | Size, in_features: int | Size | None = None) -> Layout:
    """Layout of a Linear layer's output: the last size becomes out_features.

    Raises ShapeError for rank 0, or if the last size provably differs from in_features.
    """
    if not layout.rank:
        raise WrongRank("both arguments to linear need to be at least 1D", 0, (1, 2, 3, 4))
    if in_features is not None:
        check_size(layout.sizes[-1], in_features, dim=layout.rank - 1)
    return contiguous((*layout.sizes[:-1], out_features))


def check_size(have: Size, want: int | Size, dim: int, operand: int = 0) -> None:
    """Check a size against a layer's setting. Raises SizeMismatch if they provably differ."""
    if provably_differ(have, want):
        raise SizeMismatch(
            f"expected size {want} in dimension {dim}, got {have}", have, Size.of(want), dim, operand
        )


def linear_function(layout: Layout, weight: Layout, bias: Layout | None = None) -> Layout:
    """Layout of `F.linear(tensor, weight, bias)`; for a weight of rank 1 the last dimension is dropped.

    Raises ShapeError for rank 0, a weight of more than two dimensions, last sizes that provably differ, or a
    bias that provably does not expand to the result.
    """
    for operand, (each, ranks) in enumerate(((layout, (1, 2, 3, 4)), (weight, (1, 2)))):
        if each.rank == 0 or (operand and each.rank > 2):
            message = f"linear: unexpected tensor of {each.rank} dimensions"
            raise WrongRank(message, each.rank, ranks, operand)
    if provably_differ(layout.sizes[-1], weight.sizes[-1]):
        raise SizeMismatch(
            f"mat1 and mat2 shapes cannot be multiplied ({_shape(layout.sizes[-2:])} and "
            f"{_shape(tuple(reversed(weight.sizes)))})",
            layout.sizes[-1],
            weight.sizes[-1],
            layout.rank - 1,
            other=1,
            other_dim=weight.rank - 1,
        )
    made = contiguous((*layout.sizes[:-1], *weight.sizes[:-1]))
    if bias is not None and weight.rank == 2 and bias.rank == 1:
        try:
            check_expands_to(made.sizes, bias.sizes, operand=2, other=1)
        except SizeMismatch as error:
            error.other_dim = 0
            raise
    return made


def scaled_dot_product_attention(
    query: Layout, key: Layout, value: Layout, mask: Layout | None = None, grouped: bool = False
) -> Layout:
    """Layout of attention over query (..., L, E), key (..., S, E) and value (..., S, V): (..., L, V).

    mask is (..., L, S). grouped allows fewer heads in key and value than in query (enable_gqa). Strides are
    unknown because they depend on the backend. Raises ShapeError for rank 0 or 1, or if E or S provably
    differ or the batches provably do not broadcast.
    """
    for operand, each in enumerate((query, key, value)):
        if each.rank < 2:
            message = "scaled_dot_product_attention takes tensors of at least 2 dimensions"
            raise WrongRank(message, each.rank, (2, 3, 4), operand)
    if provably_differ(query.sizes[-1], key.sizes[-1]):
        raise SizeMismatch(
            f"the last size of query ({query.sizes[-1]}) differs from that of key ({key.sizes[-1]})",
            query.sizes[-1],
            key.sizes[-1],
            dim=query.rank - 1,
            other=1,
            other_dim=key.rank - 1,
        )
    if provably_differ(key.sizes[-2], value.sizes[-2]):
        raise SizeMismatch(
            f"key has {key.sizes[-2]} positions, value has {value.sizes[-2]}",
            key.sizes[-2],
            value.sizes[-2],
            dim=key.rank - 2,
            operand=1,
            other=2,
            other_dim=value.rank - 2,
        )
    batch = query.sizes[:-2]
    if not grouped:
        batch = broadcast_sizes(*(each.sizes[:-2] for each in (query, key, value)))
    sizes = (*batch, query.sizes[-2], value.sizes[-1])
    if mask is not None and not grouped:
        weights = (*broadcast_sizes(query.sizes[:-2], key.sizes[:-2]), query.sizes[-2], key.sizes[-2])
        check_expands_to(weights, mask.sizes, operand=3, other=None)
    return unknown_strides(sizes)


def einsum(equation: str, operands: Sequence[Layout]) -> Layout:
    """Layout of `torch.einsum(equation, ...)`; strides are unknown for more than one dimension.

    Raises ShapeError if the equation does not fit the operands, or a letter names sizes that provably differ.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = [tuple(_TOKENS.findall(term)) for term in inputs.split(",")]
    wanted = tuple(_TOKENS.findall(output)) if arrow else None
    return contraction(terms, wanted, operands)


_TOKENS = re.compile(r"\.\.\.|[a-zA-Z]")
_DOTS = "..."


class LetterMismatch(SizeMismatch):
    """Two different sizes for one letter of an einsum."""

    letter = ""


def contraction(
    terms: Sequence[tuple[str, ...]], output: tuple[str, ...] | None, operands: Sequence[Layout]
) -> Layout:
    """Layout of a sum of products over named dimensions; `...` is any number of unnamed ones.

    If output is None, the result has all names that occur once, in alphabetical order. Raises ShapeError if
    the names do not fit the operands, or a name has sizes that provably differ.
    """
    if len(terms) != len(operands):
        raise ShapeError(f"einsum(): {len(terms)} terms in the equation for {len(operands)} operands")
    seen: dict[str, tuple[Size, int, int]] = {}
    dotted: list[tuple[Size, ...]] = []
    for number, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        spare = operand.rank - len(term) + (_DOTS in term)
        if spare < 0 or (spare and _DOTS not in term):
            message = f"einsum(): {' '.join(term)} does not fit an operand of {operand.rank} dimensions"
            raise WrongRank(message, operand.rank, (len(term) - (_DOTS in term),), number)
        dim = 0
        for letter in term:
            if letter == _DOTS:
                dotted.append(operand.sizes[dim : dim + spare])
                dim += spare
                continue
            size = operand.sizes[dim]
            before = seen.get(letter)
            if before is None or before[0].value == 1:
                seen[letter] = (size, number, dim)
            if before is not None:
                _check_letter(letter, before, (size, number, dim))
            dim += 1
    around = broadcast_sizes(*dotted) if dotted else ()
    if output is None:
        singles = sorted(letter for letter in seen if sum(term.count(letter) for term in terms) == 1)
        output = (*((_DOTS,) if dotted else ()), *singles)
    named = [letter for letter in output if letter != _DOTS]
    if not set(named) <= seen.keys():
        raise ShapeError(f"einsum(): output {' '.join(output)} has a subscript that no operand has")
    if len(set(named)) < len(named):
        raise ShapeError(f"einsum(): output {' '.join(output)} repeats a subscript")
    sizes: list[Size] = []
    for letter in output:
        sizes.extend(around if letter == _DOTS else (seen[letter][0],))
    return unknown_strides(sizes) if len(sizes) > 1 else contiguous(sizes)


def _check_letter(letter: str, before: tuple[Size, int, int], now: tuple[Size, int, int]) -> None:
    """Check two sizes of one name. Raises LetterMismatch if they provably differ and do not broadcast."""
    (have, operand, dim), (want, other, other_dim) = before, now
    stretches = operand != other and not (at_least(have, 2) and at_least(want, 2))
    if same(have, want) is not False or stretches:
        return
    message = f"einsum(): subscript {letter} has size {want}, but size {have} in an earlier place"
    error = LetterMismatch(message, have, want, dim, operand=operand, other=other, other_dim=other_dim)
    error.letter = letter
    raise error
