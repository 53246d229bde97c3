"""Facts of a tensor implied by its use in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Operand, OpRejected
from shapefix.interpreter.modules import nodes
from shapefix.interpreter.per_item_sizes import selected
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import Integer, Unknown, Value, as_size
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.errors import (
    NoSuchDimension,
    ShapeError,
    SizeMismatch,
    TooManyIndices,
    WrongNumberOfElements,
    WrongRank,
)
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size, every_symbol, product
from shapefix.tensors.symbols import PerItemSize, Symbol


@dataclass(eq=False, slots=True)
class AssumedRanks:
    """Likely ranks: an operation takes unbatched inputs as well, or more dimensions."""

    firsts: set[Symbol] = field(default_factory=set)
    """The first new size of each of these tensors, where it is a symbol; all of them if the end is open."""


@dataclass(eq=False, slots=True)
class ComparedSizes:
    """Sizes in conditions of the code."""

    by_node: dict[cst.CSTNode, frozenset[Symbol]] = field(default_factory=dict)
    """The symbols of the sizes in a comparison, or in a value used as a condition."""


def note_compared(ev: Evaluator, node: cst.CSTNode, *values: Value) -> None:
    """Note the sizes among the values in a condition at node."""
    symbols: set[Symbol] = set()
    for value in values:
        if isinstance(value, Integer) or (isinstance(value, Unknown) and value.has_size):
            size = as_size(value)
            symbols.update(() if size is None else every_symbol(size))
    if symbols:
        ev.state[ComparedSizes].by_node[node] = frozenset(symbols)


def passed_tests(ev: Evaluator, item: Value, loop: cst.CSTNode | None) -> Value:
    """Item of a loop after its tests for equality: equal sizes for all items on this path.

    The tests are those of the open branches, and all in the body of the loop: `if len(ids) != n: continue`.
    """
    known = ev.state[ComparedSizes].by_node
    if not known:
        return item
    tests = {each for test in ev.frame.tests for each in nodes(test) if _is_equality(each)}
    if loop is not None:
        tests.update(ev.frame.module.once(loop, _equalities))
    symbols = {symbol for test in tests for symbol in known.get(test, ())}
    axes = {symbol.axis for symbol in symbols if isinstance(symbol, PerItemSize) and symbol.axis is not None}
    return selected(item, axes) if axes else item


def _equalities(loop: cst.CSTNode) -> frozenset[cst.CSTNode]:
    return frozenset(node for node in nodes(loop) if _is_equality(node))


def _is_equality(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Comparison) and all(
        isinstance(each.operator, (cst.Equal, cst.NotEqual)) for each in node.comparisons
    )


def depends_on_test(ev: Evaluator, error: ShapeError) -> bool:
    """Check for an error over sizes in the test of an open branch: there, they may have other values."""
    known = ev.state[ComparedSizes].by_node
    if not known:
        return False
    tests = [test for frame in ev.frames for test in frame.tests]
    tested = {symbol for test in tests for node in nodes(test) for symbol in known.get(node, ())}
    return bool(tested) and any(not tested.isdisjoint(every_symbol(size)) for size in sizes_in(error))


def sizes_in(error: ShapeError) -> Iterator[Size]:
    """Yield the sizes of an error."""
    for value in vars(error).values():
        if isinstance(value, Size):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, Size))


def refine_rank(
    ev: Evaluator, tensor: TensorValue, new: Sequence[Size], *, certain: bool = True
) -> tuple[Size, ...]:
    """Assume that tensor has as many dimensions as there are new sizes, each used if its own is unknown.

    certain is False if it may have another rank, which torch then does not reject.
    """
    if tensor.layout is None:
        known = tensor.known_sizes(len(new))
        sizes = [old or size for old, size in zip(known, new, strict=True)]
        layout = contiguous(sizes) if tensor.contiguous else unknown_strides(sizes)
        ev.journal.write(tensor, "layout", layout)
        if not certain:
            note_assumed(ev, sizes, known)
        return tuple(sizes)
    return tensor.layout.sizes


def note_assumed(ev: Evaluator, sizes: Sequence[Size], known: Sequence[Size | None]) -> None:
    """Note that the rank of a tensor with these sizes is assumed.

    It is recognized by its first size if that is new, else by all of its new sizes: one that was known before
    may be that of other tensors, too, and a layer may replace the others.
    """
    new = [size for size, old in zip(sizes, known, strict=True) if old is None]
    marks = new[:1] if known[0] is None else new or sizes[:1]
    note_open(ev, marks)


def note_open(ev: Evaluator, new: Iterable[Size]) -> None:
    """Note new sizes of a tensor, perhaps with further dimensions after these."""
    symbols = (size.only_symbol for size in new)
    ev.state[AssumedRanks].firsts.update(symbol for symbol in symbols if symbol is not None)


def needs_assumed_rank(ev: Evaluator, tensors: Iterable[TensorValue], error: ShapeError) -> bool:
    """Check whether an operation is only rejected if tensors have their assumed ranks."""
    firsts = ev.state[AssumedRanks].firsts
    if not firsts:
        return False
    if isinstance(error, SizeMismatch):
        return _has(firsts, error.have) or _has(firsts, error.want)
    if isinstance(error, WrongNumberOfElements):
        return _has(firsts, error.have) and not _has(firsts, product(error.target))
    if isinstance(error, (WrongRank, NoSuchDimension, TooManyIndices)) or type(error) is ShapeError:
        return any(_is_assumed(firsts, tensor) for tensor in tensors)
    return False


def is_assumed_rank(ev: Evaluator, sizes: Iterable[Size]) -> bool:
    """Check whether a tensor with one of these sizes has an assumed rank."""
    firsts = ev.state[AssumedRanks].firsts
    return bool(firsts) and any(_has(firsts, size) for size in sizes)


def _has(firsts: set[Symbol], size: Size) -> bool:
    return not firsts.isdisjoint(every_symbol(size))


_STATED = frozenset({Op.VIEW, Op.RESHAPE, Op.REARRANGE})
"""Operations with results of a rank that the code states."""


def _is_assumed(firsts: set[Symbol], tensor: TensorValue) -> bool:
    """Check whether the rank of a tensor follows from an assumed one."""
    step: LayoutStep | None = tensor.origin
    if step is None or (step.layout is None and not step.has_open_rank):
        return tensor.layout is not None and any(_has(firsts, size) for size in tensor.layout.sizes)
    while step is not None:
        if step.op in _STATED or _is_number(step):
            return False
        if step.has_open_rank:
            return True
        if step.layout is not None and any(_has(firsts, size) for size in step.layout.sizes):
            return True
        step = step.source or step.before
    return False


def _is_number(step: LayoutStep) -> bool:
    """Check for the reduction of all elements to one number."""
    if step.layout is None or step.layout.rank:
        return False
    source = step.source.layout if step.source is not None else None
    return step.op is Op.LOSS or (step.op is Op.REDUCTION and source is not None and source.rank > 1)


def name_size(ev: Evaluator, value: Value, name: str) -> None:
    """Use the user's name of a size in messages, unless it has one already.

    `slen` for (T - 8) // 8 + 1 names the quotient slen - 1, so that it is found again in other sizes.
    """
    if isinstance(value, Integer) and value.size.value is None and name:
        constant = value.size.terms.get((), 0)
        symbol = (value.size - constant).only_symbol
        if symbol is not None and symbol.name not in ev.frame.scope.names:
            ev.symbol_names.setdefault(symbol, Size.symbol(name) - constant)


def target_name(node: cst.CSTNode) -> str:
    """Name of an assignment target: `B`, or `b` of `self.b`; empty for `_`."""
    if isinstance(node, cst.Name):
        return "" if set(node.value) == {"_"} else node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return ""


def reject_sizes(
    ev: Evaluator, node: cst.CSTNode, function: str, name: str, tensor: TensorValue, error: ShapeError
) -> None:
    """Report that the code at node raises over the sizes of a tensor, its operand of this name."""
    if needs_assumed_rank(ev, (tensor,), error) or depends_on_test(ev, error):
        return
    made_in = None if tensor.origin is None else tensor.origin.function
    operand = Operand(name, tensor, tensor.layout)
    event = OpRejected(
        ev.place(node),
        ev.calls,
        function,
        None,
        (name,),
        (operand,),
        ev.function,
        ev.may_not_reach(made_in),
        {},
        error,
    )
    ev.emit(event)
