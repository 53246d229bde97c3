"""Statements with a body: branches, `try`, `with` and `match`; loops are in loops.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Arguments, call_method
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import elements
from shapefix.interpreter.evaluator import Evaluator, Flow, statement
from shapefix.interpreter.expected_errors import (
    expects_raise,
    fails_without_exception,
    has_alternative,
    only_prints,
    skips_test,
    suppresses_itself,
)
from shapefix.interpreter.first_passes import forget_first_pass, is_counted, loop_decided
from shapefix.interpreter.functions import enter
from shapefix.interpreter.journal import UNCHANGED, Changes
from shapefix.interpreter.modules import children
from shapefix.interpreter.narrowing import narrow
from shapefix.interpreter.option_flags import (
    OptionFlag,
    by_default,
    is_option,
    muted_unless_default,
    note_lost_choice,
)
from shapefix.interpreter.refinement import note_compared
from shapefix.interpreter.targets import bind
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import (
    FunctionValue,
    InstanceValue,
    LibraryObject,
    OpenedFile,
    Reference,
    Unknown,
    Value,
)

_REFUSALS = frozenset({"builtins.RuntimeError", "builtins.ValueError", "builtins.IndexError"})
"""Exceptions of torch for sizes that do not fit."""
_ANY = frozenset({"builtins.Exception", "builtins.BaseException"})


@statement(cst.If)
def branch(ev: Evaluator, node: cst.If) -> Flow:
    tested = ev.evaluate(node.test)
    known = truth(tested)
    if known is not None and is_counted(ev, node.test):
        # So it is in the first pass; others run, too.
        known = None
    if known is True:
        return ev.run(node.body)
    note_compared(ev, node.test, tested)
    orelse = node.orelse
    if known is False and (orelse is not None or not any(hook(ev, node) for hook in hooks.open_branch)):
        return _otherwise(ev, orelse)
    ev.frame.tests.append(node.test)
    try:
        return _both(ev, node, orelse, tested)
    finally:
        ev.frame.tests.pop()


def _both(ev: Evaluator, node: cst.If, orelse: cst.If | cst.Else | None, tested: Value) -> Flow:
    """Run both branches, and continue with the facts shared by both."""
    decided = loop_decided(ev, node.test)
    loop, taken = decided or (None, None)
    ev.journal.begin()
    if loop is not None and taken is False:
        forget_first_pass(ev, loop, node.test)
    narrow(ev, node.test, True)
    with muted_unless_default(ev, tested, outcome=True):
        first = ev.run(node.body)
    one = ev.journal.undo()
    if loop is not None and taken is True and first is Flow.LEAVES:
        forget_first_pass(ev, loop, node.test)
    if orelse is None:
        ev.journal.begin()
        narrow(ev, node.test, False)
        skipped = ev.journal.undo()
        ev.journal.apply([one, skipped] if first is Flow.FALLS_THROUGH else [skipped])
        if first is Flow.FALLS_THROUGH:
            _note_losses(ev, tested, one)
        return Flow.FALLS_THROUGH
    ev.journal.begin()
    narrow(ev, node.test, False)
    if loop is not None and taken is True:
        forget_first_pass(ev, loop, node.test)
    with muted_unless_default(ev, tested, outcome=False):
        second = _otherwise(ev, orelse)
    other = ev.journal.undo()
    paths = [path for path, end in ((one, first), (other, second)) if end is Flow.FALLS_THROUGH]
    if not paths:
        return Flow.LEAVES
    ev.journal.apply(paths)
    if len(paths) == 2:
        _keep_defaults(ev, tested, one, other)
        _note_losses(ev, tested, one, other)
    return Flow.FALLS_THROUGH


def _note_losses(ev: Evaluator, tested: Value, *paths: Changes) -> None:
    """Note the objects lost by the join of the branches of a test of an option."""
    if is_option(tested):
        for path in paths:
            for container, key, value in path.written.values():
                if isinstance(container, dict) and isinstance(value, Value):
                    note_lost_choice(ev, tested, container.get(key), value)


def _keep_defaults(ev: Evaluator, tested: Value, one: Changes, other: Changes) -> None:
    """Give variables set by both branches of a flag's test the value of its default, if they lost both."""
    if not isinstance(tested, OptionFlag):
        return
    names = ev.frame.scope.names
    for location, (container, key, first) in one.written.items():
        entry = other.written.get(location)
        if (
            container is names
            and entry is not None
            and isinstance(first, Value)
            and isinstance(entry[2], Value)
        ):
            chosen = by_default(ev, tested, names[key], first, entry[2])
            if chosen is not names[key]:
                ev.journal.write(names, key, chosen)


def _otherwise(ev: Evaluator, orelse: cst.If | cst.Else | None) -> Flow:
    if orelse is None:
        return Flow.FALLS_THROUGH
    return ev.execute(orelse) if isinstance(orelse, cst.If) else ev.run(orelse.body)


@statement(cst.Try, cst.TryStar)
def try_(ev: Evaluator, node: cst.Try | cst.TryStar) -> Flow:
    tried: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = node.handlers
    caught = [_caught(ev, handler) for handler in tried]
    named = frozenset(name for names in caught for name in names or ())
    is_refusal = not named.isdisjoint(_REFUSALS)
    is_caught = is_refusal or None in caught or not named.isdisjoint(_ANY)
    expected = (is_refusal and _is_one_line(node.body)) or (
        is_caught and (fails_without_exception(node) or has_alternative(node) or skips_test(node))
    )
    # An expected error is not reported; a handler that swallows it may be.
    reported = ev.events
    if expected:
        ev.events = []
    start = len(ev.events)
    ev.caught.append(named)
    listeners = [hook(ev, node) for hook in hooks.begin_try]
    ev.journal.begin()
    body, stages = _attempt(ev, node.body)
    ev.caught.pop()
    hidden = tuple(ev.events[start:])
    matters = False
    for listener in listeners:
        matters = listener.end_body(hidden) or matters
    if not expected and is_caught and not matters and not ev.frame.loops and only_prints(node):
        del ev.events[start:]
    ev.events = reported
    if body is Flow.FALLS_THROUGH and node.orelse is not None:
        body = ev.run(node.orelse.body)
    after = ev.journal.undo()
    paths = [after] if body is Flow.FALLS_THROUGH else []
    for handler, catches in zip(tried, caught, strict=True):
        ev.journal.begin()
        for listener in listeners:
            listener.begin_handler()
        # The exception may have come at any point of the body.
        ev.journal.apply([UNCHANGED, *stages])
        if handler.name is not None:
            bind(ev, handler.name.name, Unknown("exception"))
        end = ev.run(handler.body)
        for listener in listeners:
            listener.end_handler(handler, catches)
        state = ev.journal.undo()
        if end is Flow.FALLS_THROUGH:
            paths.append(state)
    for listener in listeners:
        listener.end()
    if paths:
        ev.journal.apply(paths)
        return ev.run(node.finalbody.body) if node.finalbody is not None else Flow.FALLS_THROUGH
    if node.finalbody is not None:
        ev.journal.begin()
        ev.journal.apply([UNCHANGED, *stages])
        ev.run(node.finalbody.body)
        ev.journal.undo()
    return Flow.LEAVES


def _attempt(ev: Evaluator, block: cst.BaseSuite) -> tuple[Flow, list[Changes]]:
    """Run a block; return its way of ending, and the changes after each of its statements."""
    depth = ev.journal.depth - 1
    stages: list[Changes] = []
    for node in block.body:
        parts = node.body if isinstance(node, cst.SimpleStatementLine) else (node,)
        for part in parts:
            end = ev.execute(part)
            stages.append(ev.journal.since(depth))
            if end is Flow.LEAVES:
                return end, stages
    return Flow.FALLS_THROUGH, stages


def _caught(ev: Evaluator, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> frozenset[str] | None:
    """Exceptions named by a handler; None if it catches all of them."""
    if handler.type is None:
        return None
    given = ev.evaluate(handler.type)
    return frozenset(kind.name for kind in elements(given) or (given,) if isinstance(kind, Reference))


def _is_one_line(block: cst.BaseSuite) -> bool:
    """Check for a block of a single line: a `try` around one line expects it to raise."""
    return len(block.body) == 1 and isinstance(block.body[0], cst.SimpleStatementLine)


@statement(cst.With)
def with_(ev: Evaluator, node: cst.With) -> Flow:
    suppressing = False
    exits: list[hooks.Exit] = []
    for entry in node.items:
        value = ev.evaluate(entry.item)
        if isinstance(value, Reference) and ev.library.function(value.name) is None:
            # No context by itself: its author has left something out.
            value = Unknown()
        exits += enter(ev, value)
        suppressing = suppressing or ev.library.suppresses(value) or expects_raise(ev, entry.item)
        suppressing = suppressing or suppresses_itself(value)
        entered = _entered(ev, value, entry.item)
        if entry.asname is not None:
            bind(ev, entry.asname.name, entered)
    ev.silenced += suppressing
    end = ev.run(node.body)
    ev.silenced -= suppressing
    for leave in reversed(exits):
        leave()
    # An exception that is suppressed does not leave the block.
    return Flow.FALLS_THROUGH if suppressing else end


def _entered(ev: Evaluator, value: Value, node: cst.CSTNode) -> Value:
    """Value bound by `with value as name`; the project's own `__enter__` runs."""
    if isinstance(value, InstanceValue) and isinstance(member(value.cls, "__enter__"), FunctionValue):
        return call_method(ev, value, "__enter__", Arguments(), node)
    return value if isinstance(value, (LibraryObject, OpenedFile)) else Unknown()


@statement(cst.Match)
def match(ev: Evaluator, node: cst.Match) -> Flow:
    ev.evaluate(node.subject)
    paths = [UNCHANGED]
    ev.frame.tests.append(node.subject)
    for case in node.cases:
        ev.journal.begin()
        for captured in _captures(case.pattern):
            bind(ev, captured, Unknown())
        end = ev.run(case.body)
        state = ev.journal.undo()
        if end is Flow.FALLS_THROUGH:
            paths.append(state)
        if _matches_all(case):
            paths.remove(UNCHANGED)
            break
    ev.frame.tests.pop()
    if not paths:
        return Flow.LEAVES
    ev.journal.apply(paths)
    return Flow.FALLS_THROUGH


def _captures(pattern: cst.CSTNode) -> Iterator[cst.Name]:
    """Names bound by a pattern."""
    if isinstance(pattern, (cst.MatchAs, cst.MatchStar)) and pattern.name is not None:
        yield pattern.name
    elif isinstance(pattern, cst.MatchMapping) and pattern.rest is not None:
        yield pattern.rest
    for child in children(pattern):
        yield from _captures(child)


def _matches_all(case: cst.MatchCase) -> bool:
    return isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None and case.guard is None
