"""SF801: loops over batches swallowing every exception of the model, the loss or the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import RULES, Rule, findings, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.batch_loops import call_text, is_in_batches
from shapefix.checks.support.device_placement import bound_by
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.handlers import (
    ExceptHandler,
    header_span,
    header_text,
    is_swallowed_again,
    is_swallowing,
    means_memory,
    memory_errors_only,
    report_of,
    tests_exception,
)
from shapefix.checks.support.syntax import enclosing, enclosing_function, holds
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, Evidence, Fix, Import, Role, Severity
from shapefix.domains.try_blocks import ExceptClause, StepKind, TrainStep, TryBlock
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes

_FAMILIES = ("SF1", "SF3", "SF4", "SF5")
"""Families of rules that report exceptions of torch; SF602 does so, too."""


@rule("SF801", on=TryBlock)
def swallowed_exception(event: TryBlock, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not is_in_batches(event) or _is_whole_run(event):
        return
    for handler in event.handlers:
        if not handler.catches_all:
            continue
        if handler.acts or not is_swallowing(event.place.module, handler.node):
            return
        yield _finding(event, handler, context, rule)
        return


def _is_whole_run(event: TryBlock) -> bool:
    """Whether the body loops over batches itself, and the loop around it is not over epochs.

    The first batch to fail then ends a whole run, such as the evaluation of one server.
    """
    module, node = event.place.module, event.place.node
    around = reversed(enclosing(module, node))
    loop = next((each for each in around if isinstance(each, (cst.For, cst.While, cst.FunctionDef))), None)
    if not isinstance(loop, cst.For) or not isinstance(node, (cst.Try, cst.TryStar)):
        return False
    if isinstance(loop.iter, cst.Call) and dotted_name(loop.iter.func) in ("range", "trange", "tqdm.trange"):
        return False
    own = [(*act.calls, act.place)[len(event.calls)].node for act in event.acts]
    inner = [each for each in nodes(node.body) if isinstance(each, (cst.For, cst.While))]
    return all(any(holds(each.body, step) for each in inner) for step in own)


def _finding(event: TryBlock, handler: ExceptClause, context: CheckContext, rule: Rule) -> Diagnostic:
    module = event.place.module
    span = header_span(module, handler.node)
    act = _foremost(event)
    subject = f"`{call_text(act.place)}`" if isinstance(act.place.node, cst.Call) else act.kind
    hidden = _hidden(event, context)
    header, report = header_text(module, handler.node), report_of(module, handler.node)
    if report is None:
        message, consequence = f"`{header}` hides errors from {subject}", "every batch can fail silently"
    else:
        message = f"`{header}` around {subject} {report} each failure and goes on"
        consequence = "every batch can fail"
    stale = _stale_name(module, event.place.node, handler.node)
    if stale:
        # The first batch to fail ends the run instead: the name has no value yet.
        consequence = f"then `{stale}` is that of the batch before"
    if hidden:
        first = hidden[0]
        where = f"line {first.failing.row}" if first.failing.path == span.path else _elsewhere(first)
        consequence = f"{first.code} at {where}"
    return rule.diagnostic(
        span,
        f"{message}: {consequence}",
        evidence=[
            *call_trace(event),
            Evidence(act.place.span, f"{act.kind} runs here", Role.CAUSE, "its exceptions end below"),
            *(Evidence(each.failing, f"{each.code}, hidden: {each.text}") for each in hidden[:3]),
        ],
        fixes=list(_fixes(event, handler)),
        follows=Cause(hidden[0].code, hidden[0].span) if hidden else None,
    )


def _stale_name(module: Module, node: cst.CSTNode, handler: ExceptHandler) -> str:
    """Return a name bound by the body of a try statement only, and read by the same pass after it."""
    if not isinstance(node, (cst.Try, cst.TryStar)):
        return ""
    *_, block, _ = (None, *enclosing(module, node))
    around = enclosing_function(Place(module, node)) or module.tree
    body = block.body if isinstance(block, cst.IndentedBlock) else ()
    if any(isinstance(each, (cst.Continue, cst.Break, cst.Return)) for each in nodes(handler)):
        return ""
    first = module.span(node).row
    before = {name for each in nodes(around) if module.span(each).row < first for name in bound_by(each)}
    bound = {name for each in nodes(node.body) for name in bound_by(each)} - before
    bound -= {name for each in nodes(handler) for name in bound_by(each)}
    after = body[body.index(node) + 1 :] if node in body else ()
    bound -= {name for statement in after for each in nodes(statement) for name in bound_by(each)}
    read = (each.value for statement in after for each in nodes(statement) if isinstance(each, cst.Name))
    return next((name for name in read if name in bound), "")


def _elsewhere(finding: Diagnostic) -> str:
    file = finding.failing.path.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{finding.failing.row}"


def _foremost(event: TryBlock) -> TrainStep:
    """Return the main step of the try statement: the first one with the fewest calls in between."""
    return min(
        (act for act in event.acts if act.kind is not StepKind.LOADER),
        key=lambda act: len(act.calls),
    )


def _hidden(event: TryBlock, context: CheckContext) -> list[Diagnostic]:
    """Return findings of other rules in the body of the try statement: errors with an exception."""
    codes = frozenset(
        code
        for code, other in RULES.items()
        if other.severity is Severity.ERROR and (code[:3] in _FAMILIES or code == "SF602")
    )
    found = findings(replace(context, events=event.hidden), codes)
    by_place = {(each.code, each.span): each for each in found}
    return sorted(by_place.values(), key=lambda each: (each.condition is not None, each.span, each.code))


def _fixes(event: TryBlock, handler: ExceptClause) -> Iterator[Fix]:
    """Suggest to raise unexpected exceptions in the handlers; nothing if a caller swallows them."""
    if is_swallowed_again(event):
        return
    module, node = event.place.module, handler.node
    others = [
        _raising(module, each.node, each.node.body)
        for each in event.handlers
        if each is not handler and each.catches_all and is_swallowing(module, each.node)
    ]
    also = tuple(edit for edit in others if edit is not None)
    if len(also) < len(others):
        return
    if not any(tests_exception(node, test) for test in _tests(node.body)) and means_memory(module, node):
        edit = memory_errors_only(module, node)
        if edit is not None:
            message = "catch only `torch.cuda.OutOfMemoryError`"
            yield Fix(Applicability.UNSAFE, message, (edit, *also), (Import("torch"),))
    edit = _raising(module, node, node.body)
    if edit is not None:
        yield Fix(Applicability.UNSAFE, "re-raise it: the run stops at the first error", (edit, *also))


def _tests(block: cst.BaseSuite) -> Iterator[cst.BaseExpression]:
    for statement in block.body:
        node: cst.CSTNode | None = statement
        while isinstance(node, cst.If):
            yield node.test
            node = node.orelse


def _raising(module: Module, handler: ExceptHandler, block: cst.BaseSuite) -> Edit | None:
    """Return the edit to end a block with `raise`, in the branch for unexpected exceptions."""
    if not isinstance(block, cst.IndentedBlock):
        return None
    last = block.body[-1]
    span = module.span(last)
    indent = " " * (span.column - 1)
    rows = module.text.split("\n")
    if rows[span.row - 1][: span.column - 1].strip(" "):
        # Tabs, or code before the statement.
        indent = rows[span.row - 1][: span.column - 1]
    if isinstance(last, cst.SimpleStatementLine):
        small = last.body[-1]
        if isinstance(small, (cst.Continue, cst.Pass)) and len(last.body) == 1:
            return Edit(module.span(small), "raise")
        if len(last.body) > 1:
            return None
        return Edit(rewrites.end_of_line(rows, span), f"\n{indent}raise")
    if isinstance(last, cst.If) and tests_exception(handler, last.test):
        return _raising_otherwise(module, handler, last, rows, indent)
    return Edit(rewrites.end_of_line(rows, span), f"\n{indent}raise")


def _raising_otherwise(
    module: Module, handler: ExceptHandler, test: cst.If, rows: list[str], indent: str
) -> Edit | None:
    if isinstance(test.orelse, cst.If):
        return _raising_otherwise(module, handler, test.orelse, rows, indent)
    if test.orelse is not None:
        return _raising(module, handler, test.orelse.body)
    inner = module.span(test.body.body[-1])
    step = rows[inner.row - 1][: inner.column - 1]
    return Edit(rewrites.end_of_line(rows, inner), f"\n{indent}else:\n{step}raise")
