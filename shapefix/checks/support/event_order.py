"""Order of training events: before, after, in the same loop or block."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext, Kind
from shapefix.checks.support.syntax import enclosing
from shapefix.domains.training import TrainingEvent
from shapefix.domains.try_blocks import EnclosingLoop
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes, target_names


def already_reported(event: Event, context: CheckContext, key: Callable[[Event], object]) -> bool:
    """Return whether an earlier event has the same key, and so the same finding.

    The key of an event that is not reported is None.
    """
    own = key(event)
    for earlier in context.events:
        if earlier is event:
            break
        if own is not None and key(earlier) is own:
            return True
    return False


def of_kind(context: CheckContext, kind: type[Kind]) -> Iterator[Kind]:
    """Yield the events of this type in order."""
    return iter(context.of_kind(kind)[1])


def after(event: TrainingEvent, context: CheckContext, kind: type[Kind]) -> Iterator[Kind]:
    """Yield later events of this type."""
    positions, events = context.of_kind(kind)
    start = bisect_right(positions, context.positions[event])
    return (events[number] for number in range(start, len(events)))


def between(first: TrainingEvent, last: TrainingEvent, context: CheckContext, kind: type[Kind]) -> list[Kind]:
    """Return the events of this type from first to last."""
    positions, events = context.of_kind(kind)
    start = bisect_left(positions, context.positions[first])
    return events[start : bisect_right(positions, context.positions[last])]


def within(loop: Loop, context: CheckContext, kind: type[Kind]) -> Sequence[Kind]:
    """Return the events of this type in a loop, in order."""
    return context.in_loop(loop, kind)


def is_certain(event: TrainingEvent, loop: Loop) -> bool:
    """Whether each pass of the loop reaches the event."""
    return any(each.loop is loop and each.certain for each in event.loops)


def is_followed(loop: Loop) -> bool:
    """Whether every call in the loop on models or optimizers was followed."""
    before, later = loop.unfollowed
    return before == later


def ends_early(loop: Loop) -> bool:
    """Whether the body of a loop ends in a break or a return, without a second pass."""
    last = loop.node.body.body[-1]
    ends = last.body if isinstance(last, cst.SimpleStatementLine) else ()
    return any(isinstance(node, (cst.Break, cst.Return, cst.Raise)) for node in ends)


_FEW = 20


def stops_after_few(loop: Loop) -> bool:
    """Whether a loop breaks after a stated, small number of passes: `if step == 3: break`."""
    if not isinstance(loop.node, cst.For):
        return False
    counters = set(target_names(loop.node.target))
    return any(
        _is_reached(node.test, counters)
        and isinstance(node.body.body[-1], cst.SimpleStatementLine)
        and isinstance(node.body.body[-1].body[-1], cst.Break)
        for node in nodes(loop.node.body)
        if isinstance(node, cst.If)
    )


def _is_reached(test: cst.BaseExpression, counters: set[str]) -> bool:
    """Whether a test compares a counter with a small number."""
    if not isinstance(test, cst.Comparison) or dotted_name(test.left) not in counters:
        return False
    number = test.comparisons[-1].comparator
    return isinstance(number, cst.Integer) and number.evaluated_value <= _FEW


_COUNTERS = frozenset({"range", "trange", "count"})
_WRAPPERS = frozenset({"tqdm", "track", "enumerate"})
"""Functions that pass on the items of their first argument."""


def goes_over_data(loop: Loop) -> bool:
    """Whether a loop iterates over data instead of counting: `range(n)`, `tqdm(range(n))`."""
    node = loop.node
    if not isinstance(node, cst.For) or loop.state[EnclosingLoop].of_settings:
        return False
    return loop.state[EnclosingLoop].over_batches or not _counts(node.iter)


def _counts(items: cst.BaseExpression) -> bool:
    if not isinstance(items, cst.Call):
        return False
    name = dotted_name(items.func).rpartition(".")[2]
    return name in _COUNTERS or (name in _WRAPPERS and bool(items.args) and _counts(items.args[0].value))


def receiver_code(place: Place) -> str:
    """Return the receiver of a method call: `self.scaler` of `self.scaler.step(x)`."""
    node = place.node
    is_method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return place.module.code(node.func.value) if is_method else ""  # type: ignore[attr-defined]


def first_argument(place: Place) -> cst.BaseExpression | None:
    """Return the first argument of a call, or None."""
    node = place.node
    return node.args[0].value if isinstance(node, cst.Call) and node.args else None


def is_passed(module: Module, first: cst.CSTNode, last: cst.CSTNode) -> bool:
    """Whether reaching first implies reaching last: last is in the same block, or in an outer one."""
    around_first, around_last = enclosing(module, first), enclosing(module, last)
    block = next(
        (node for node in reversed(around_last) if isinstance(node, (cst.BaseSuite, cst.Module))), None
    )
    return any(node is block for node in around_first)


def text_between(first: Place, last: Place) -> str:
    """Return the lines between two places, or an empty string for places in two files."""
    if first.module is not last.module:
        return ""
    start, end = first.span.row, last.span.end_row
    return "\n".join(first.module.text.split("\n")[start - 1 : end])
