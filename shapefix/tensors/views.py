"""Layouts of reshape, flatten, unflatten and view_as."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.errors import ShapeError, WrongNumberOfElements
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, sizes_of, substitute, wrap_dim
from shapefix.tensors.legality import view
from shapefix.tensors.overlap import unknown_view
from shapefix.tensors.polynomials import Size, product
from shapefix.tensors.symbols import Atom, Symbol
from shapefix.tensors.verdicts import Illegal, Legal, Undecided, ViewVerdict, WrongNumel


def target_of(arguments: Sequence[int | Size]) -> tuple[tuple[Size, ...], int | None]:
    """Convert the arguments of a view to sizes and the position of -1, None without a -1.

    Raises ShapeError for more than one -1 and for other negative numbers.
    """
    minus_one: int | None = None
    target = sizes_of(arguments)
    for place, size in enumerate(target):
        if size.value is not None and size.value < 0:
            if size.value != -1:
                raise ShapeError(f"invalid shape dimension {size.value}")
            if minus_one is not None:
                raise ShapeError("only one dimension can be inferred")
            minus_one = place
    return target, minus_one


def reshape(layout: Layout, target: Sequence[int | Size], minus_one: int | None = None) -> Layout:
    """Layout of `.reshape(target)`: of a view if legal, of a contiguous copy if not, else unknown strides.

    minus_one is the position of -1 in target. Raises WrongNumberOfElements if the number provably differs.
    """
    verdict = view(layout, target, minus_one)
    if isinstance(verdict, WrongNumel):
        raise WrongNumberOfElements(
            f"shape {_shape(target, minus_one)} is invalid for input of size {verdict.has}",
            verdict.has,
            sizes_of(target),
        )
    if isinstance(verdict, Illegal) and not _contiguous_either_way(layout, verdict):
        return unknown_view(verdict.layout.sizes, layout)
    return verdict.layout


def _contiguous_either_way(layout: Layout, refused: Illegal) -> bool:
    """Check that the result is contiguous even if a condition fails.

    A failing condition makes the reshape a view.
    """
    for condition in refused.conditions:
        solved = _solved(condition)
        if solved is None:
            return False
        there = substitute(layout, solved)
        verdict = view(there, substitute(refused.layout, solved).sizes)
        if isinstance(verdict, Illegal):
            if not _contiguous_either_way(there, verdict):
                return False
        elif not isinstance(verdict, Legal) or is_contiguous(verdict.layout) is not True:
            return False
    return True


def _solved(size: Size) -> dict[Symbol, int] | None:
    """Solve the equation `size = 1` for the only symbol; None if that is impossible."""
    constant = size.terms.get((), 0)
    symbol = (size - constant).only_symbol
    return None if symbol is None or isinstance(symbol, Atom) else {symbol: 1 - constant}


def _shape(target: Sequence[int | Size], minus_one: int | None) -> str:
    return f"({', '.join('-1' if place == minus_one else str(size) for place, size in enumerate(target))})"


def flatten(layout: Layout, start: int = 0, end: int = -1) -> Layout:
    """Layout of `.flatten(start, end)`: dimensions start to end, inclusive, become one.

    Raises ShapeError if a dimension is out of range or start is after end.
    """
    start, end = wrap_dim(start, layout.rank), wrap_dim(end, layout.rank)
    if start > end:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not layout.rank:
        return contiguous([1])
    if start == end:
        return layout
    merged = product(layout.sizes[start : end + 1])
    return reshape(layout, (*layout.sizes[:start], merged, *layout.sizes[end + 1 :]))


def unflatten(
    layout: Layout, dim: int, sizes: Sequence[int | Size], minus_one: int | None = None
) -> ViewVerdict:
    """Verdict on `.unflatten(dim, sizes)`: splitting one dimension is always legal if the sizes fit.

    Raises ShapeError if dim is out of range.
    """
    dim = wrap_dim(dim, layout.rank)
    inner = sizes_of(sizes)
    whole, stride = layout.sizes[dim], layout.strides[dim]
    verdict = view(Layout((whole,), (stride,)), inner, minus_one)
    if isinstance(verdict, WrongNumel | Illegal):
        return verdict
    split = Layout(
        (*layout.sizes[:dim], *verdict.layout.sizes, *layout.sizes[dim + 1 :]),
        (*layout.strides[:dim], *verdict.layout.strides, *layout.strides[dim + 1 :]),
    )
    return Legal(split) if isinstance(verdict, Legal) else Undecided(split, verdict.numel)


def view_as(layout: Layout, other: Layout) -> ViewVerdict:
    """Verdict on `.view_as(other)`."""
    return view(layout, other.sizes)
