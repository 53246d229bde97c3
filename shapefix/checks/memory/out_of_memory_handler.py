"""SF704: out-of-memory handlers keeping memory from being freed, or catching other errors, too."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.batch_loops import call_text, is_in_batches
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.handlers import (
    ExceptHandler,
    bound_name,
    header_span,
    header_text,
    is_swallowing,
    means_memory,
    memory_errors_only,
    shrinks_batches,
    speaks_of_memory,
    tests_exception,
)
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import, Span
from shapefix.domains.try_blocks import ExceptClause, StepKind, TrainStep, TryBlock
from shapefix.interpreter.modules import Place, children, dotted_name, nodes

_OWN = frozenset(
    {"torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError", "torch.cuda.memory.OutOfMemoryError"}
)
_RUNS = frozenset({StepKind.MODEL, StepKind.BACKWARD, StepKind.AGAIN})
_FREES = frozenset({"clear_frames", "__traceback__", "with_traceback"})
"""Names in code that releases the frames of an exception."""
_LOOKS_AT = frozenset({"exception", "exc_info", "print_exc", "format_exc"})
"""Names of functions that read the exception being handled."""
_KEEPS = frozenset({"append", "add", "put", "put_nowait", "extend", "insert"})


@rule("SF704", on=TryBlock)
def out_of_memory_handler(event: TryBlock, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    recorded = any(act.kind in _RUNS and act.recorded for act in event.acts)
    for handler in event.handlers:
        if _is_of_memory(event, handler) and recorded:
            yield from _tried_again(event, handler, rule)
            yield from _kept(event, handler, rule)
        if handler.catches_all:
            yield from _takes_all(event, handler, rule)
            return


def _is_of_memory(event: TryBlock, handler: ExceptClause) -> bool:
    """Whether a handler is for out-of-memory errors: it catches only those, or its text mentions memory."""
    if handler.catches is not None and not handler.catches.isdisjoint(_OWN):
        return True
    return handler.catches_all and means_memory(event.place.module, handler.node)


def _names(handler: ExceptHandler) -> set[str]:
    return {node.value for node in nodes(handler.body) if isinstance(node, cst.Name)}


def _tried_again(event: TryBlock, handler: ExceptClause, rule: Rule) -> Iterator[Diagnostic]:
    """Report a model run again inside the handler."""
    again = next((act for act in handler.acts if _is_run(act, event)), None)
    if again is None or _names(handler.node) & _FREES:
        return
    depth = len(event.calls)
    place = again.calls[depth] if len(again.calls) > depth else again.place
    module = event.place.module
    yield rule.diagnostic(
        place.span,
        f"`{call_text(place)}` retries inside `except`, which keeps the failed attempt's tensors in memory",
        evidence=[
            *call_trace(event),
            Evidence(
                header_span(module, handler.node),
                "the exception and its frames are alive until the end of this block",
            ),
            Evidence(place.span, "the retry runs before that memory is freed"),
        ],
        fixes=list(_outside(event, handler)),
    )


def _is_run(act: TrainStep, event: TryBlock) -> bool:
    """Whether a step runs the model, or the function with the handler once more."""
    return act.kind in _RUNS and (act.kind is not StepKind.AGAIN or act.calls == event.calls)


def _outside(event: TryBlock, handler: ExceptClause) -> Iterator[Fix]:
    """Set a flag in the handler, and move the rest after the try statement."""
    tried, node, module = event.place.node, handler.node, event.place.module
    if not isinstance(tried, cst.Try) or tried.orelse or tried.finalbody or tried.handlers[-1] is not node:
        return
    names = _names(node)
    raises = any(isinstance(each, cst.Raise) and each.exc is None for each in nodes(node.body))
    if raises or names & _LOOKS_AT or bound_name(node) in names or "out_of_memory" in module.text:
        return
    if not isinstance(node.body, cst.IndentedBlock):
        return
    start, first = module.span(tried), module.span(node.body.body[0])
    rows = module.text.split("\n")
    outer, inner = rows[start.row - 1][: start.column - 1], rows[first.row - 1][: first.column - 1]
    if outer.strip() or inner.strip():
        return
    is_direct = any(act.kind is StepKind.MODEL and act.calls == event.calls for act in event.acts)
    held = _reassigned(tried.body, node.body) if is_direct else []
    release = f"{' = '.join(held)} = None\n{inner}" if held else ""
    yield Fix(
        Applicability.SAFE,
        "retry after the `except` block: the exception and its tensors are freed by then",
        (
            _inserted(start, f"out_of_memory = False\n{outer}"),
            _inserted(first, f"out_of_memory = True\n{outer}if out_of_memory:\n{inner}{release}"),
        ),
    )


def _reassigned(tried: cst.BaseSuite, handler: cst.IndentedBlock) -> list[str]:
    """Return the variables set in the `try`, and set again in the handler before they are read there.

    If the model runs in the `try` itself, they keep tensors of the failed attempt after the handler.
    """
    certain = {
        name
        for statement in handler.body
        if isinstance(statement, cst.SimpleStatementLine)
        for name, is_set in _uses(statement)
        if is_set
    }
    first: dict[str, bool] = {}
    for name, is_set in _uses(handler):
        first.setdefault(name, is_set)
    tried_names = dict.fromkeys(name for name, is_set in _uses(tried) if is_set)
    return [name for name in tried_names if name in certain and first[name]]


def _uses(node: cst.CSTNode) -> Iterator[tuple[str, bool]]:
    """Yield the names in a node in the order of their evaluation, each with whether it is set."""
    if isinstance(node, cst.Assign):
        yield from _uses(node.value)
        for target in node.targets:
            is_name = isinstance(target.target, cst.Name)
            yield from ((name, is_name) for name, _ in _uses(target.target))
    elif isinstance(node, cst.Name):
        yield node.value, False
    else:
        for each in children(node):
            yield from _uses(each)


def _inserted(before: Span, text: str) -> Edit:
    return Edit(before.start(), text)


def _kept(event: TryBlock, handler: ExceptClause, rule: Rule) -> Iterator[Diagnostic]:
    """Report an exception stored beyond the handler in a loop."""
    name = bound_name(handler.node)
    if not name or not (event.loops or event.repeated) or _names(handler.node) & _FREES:
        return
    for node in nodes(handler.node.body):
        value, holder = _stored(node, name)
        if value is None:
            continue
        place = Place(event.place.module, value)
        yield rule.diagnostic(
            place.span,
            f"`{holder}` keeps the exception alive, and with it all tensors of the failed batch",
            evidence=[
                *call_trace(event),
                Evidence(
                    header_span(event.place.module, handler.node),
                    f"`{name}` references the frames of the `try` block",
                ),
                Evidence(place.span, f"`{holder}` keeps `{name}` after the handler ends"),
            ],
            fixes=[
                Fix(
                    Applicability.UNSAFE,
                    "drop its traceback: `.with_traceback(None)`",
                    (Edit(place.span, f"{name}.with_traceback(None)"),),
                )
            ],
        )
        return


def _stored(node: cst.CSTNode, name: str) -> tuple[cst.BaseExpression | None, str]:
    """Return the stored exception in a statement, and the name of its container."""
    if isinstance(node, cst.Assign) and _is_name(node.value, name):
        return node.value, dotted_name(node.targets[0].target)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _KEEPS:
        for argument in node.args:
            if _is_name(argument.value, name):
                return argument.value, dotted_name(node.func.value)
    return None, ""


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _takes_all(event: TryBlock, handler: ExceptClause, rule: Rule) -> Iterator[Diagnostic]:
    """Report a handler treating every RuntimeError as out of memory."""
    module, node = event.place.module, handler.node
    if not any(act.kind in _RUNS for act in event.acts) or _looks(node):
        return
    shrunk = shrinks_batches(node)
    if not shrunk and not speaks_of_memory(node):
        return
    if is_in_batches(event) and is_swallowing(module, node) and not handler.acts:
        return
    span = header_span(module, node)
    outcome = f"shrinks `{shrunk}` after any error" if shrunk else "treats any error as out of memory"
    edit = memory_errors_only(module, node)
    yield rule.diagnostic(
        span,
        f"`{header_text(module, node)}` {outcome}, shape mismatches included",
        evidence=[*call_trace(event), Evidence(span, "the handler never checks the exception")],
        fixes=[]
        if edit is None
        else [
            Fix(
                Applicability.UNSAFE,
                "catch only `torch.cuda.OutOfMemoryError`",
                (edit,),
                (Import("torch"),),
            )
        ],
    )


def _looks(handler: ExceptHandler) -> bool:
    """Whether a handler checks the exception, raises it, or ends the run."""
    for node in nodes(handler.body):
        if isinstance(node, cst.Raise):
            return True
        if isinstance(node, cst.Comparison) and any(
            isinstance(each.operator, (cst.In, cst.NotIn)) for each in node.comparisons
        ):
            return True
        if isinstance(node, cst.Call):
            call_text = dotted_name(node.func)
            if call_text.rpartition(".")[2] in (
                "exit",
                "_exit",
                "isinstance",
                "is_oom_error",
                "fail",
                "skip",
            ):
                return True
        if isinstance(node, (cst.If, cst.IfExp)) and tests_exception(handler, node.test):
            return True
    return False
