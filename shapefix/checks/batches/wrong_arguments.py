"""SF414: a module, a loss or a scheduler created or called with wrong arguments."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import appended
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate, counted
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Span
from shapefix.interpreter.events import ArgumentsRefused, KeywordRefused
from shapefix.interpreter.modules import Place, nodes

_METRIC = "metrics"
_LOSS = re.compile(r"(^|_)loss(es)?(_|$)|loss$|^loss")
_OF_EVALUATION = re.compile(r"(^|_)(val|valid|validation|eval|test|dev)", re.IGNORECASE)


@rule("SF414", on=ArgumentsRefused)
def wrong_arguments(event: ArgumentsRefused, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.undecided or _is_tried(event):
        return
    called = f"`{event.owner}`" if event.function == "__init__" else f"`{event.owner}.{event.function}`"
    missing = event.wanted[event.given :]
    if missing:
        named = " and ".join(f"`{name}`" for name in missing)
        problem = f"needs {named}, too" if event.given else f"needs {named}"
    else:
        problem = f"takes {counted(f'{event.most:.0f}', 'argument')}, but gets {event.given}"
    defined = event.defined
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}`: {called} {problem}",
        error=_error(event, missing),
        evidence=[
            *call_trace(event),
            *([] if defined is None else [Evidence(_header(defined), "defined here")]),
        ],
        fixes=_fixes(event, missing),
    )


@rule("SF414", on=KeywordRefused)
def wrong_keyword(event: KeywordRefused, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    keyword, module = event.argument.keyword, event.place.module
    if keyword is None or event.undecided or _is_tried(event):
        return
    near = difflib.get_close_matches(keyword.value, event.accepted, 1, 0.75)
    given = {each.keyword.value for each in _arguments(event.place) if each.keyword is not None}
    meant = next((name for name in near if name not in given), None)
    if meant is not None:
        fix = Fix(Applicability.UNSAFE, f"rename it to `{meant}`", (Edit(module.span(keyword), meant),))
    else:
        fix = Fix(Applicability.DISPLAY, "remove it", ())
    yield rule.diagnostic(
        module.span(event.argument),
        f"`{event.owner}` has no argument `{keyword.value}`"
        + (f"; did you mean `{meant}`?" if meant is not None else ""),
        error=ExpectedError("TypeError", f"got an unexpected keyword argument '{keyword.value}'"),
        evidence=call_trace(event),
        fixes=[fix],
    )


def _is_tried(event: ArgumentsRefused | KeywordRefused) -> bool:
    """Whether the call, or a call around it, is in a `try`, perhaps for this very error."""
    return any(
        isinstance(node, (cst.Try, cst.TryStar))
        for place in (event.place, *event.calls)
        for node in enclosing(place.module, place.node)
    )


def _arguments(place: Place) -> tuple[cst.Arg, ...]:
    """Return the arguments of the call at a place."""
    return tuple(place.node.args) if isinstance(place.node, cst.Call) else ()


def _error(event: ArgumentsRefused, missing: tuple[str, ...]) -> ExpectedError:
    if missing:
        arguments = counted(len(missing), "required positional argument")
        return ExpectedError("TypeError", f"missing {arguments}")
    return ExpectedError("TypeError", f"but {event.given + 1} were given")


def _header(defined: Place) -> Span:
    """Return the span of the name of a function, in its definition."""
    node = defined.node
    return defined.module.span(node.name if isinstance(node, cst.FunctionDef) else node)


def _fixes(event: ArgumentsRefused, missing: tuple[str, ...]) -> Iterator[Fix]:
    node, module = event.place.node, event.place.module
    if missing == (_METRIC,) and isinstance(node, cst.Call):
        metric = _metric_before(event.place)
        if metric is not None:
            message = f"step with the watched value: `{metric}`"
            yield Fix(Applicability.UNSAFE, message, (appended(module, node, metric),))
        else:
            yield Fix(Applicability.DISPLAY, "pass the watched value, such as the loss of the validation", ())
    elif missing:
        yield Fix(Applicability.DISPLAY, f"pass {' and '.join(f'`{name}`' for name in missing)}", ())
    else:
        yield Fix(Applicability.DISPLAY, "remove the other arguments, or add parameters for them", ())


def _metric_before(place: Place) -> str | None:
    """Return the last loss assigned before a place by its function, one of an evaluation first."""
    around = enclosing(place.module, place.node)
    scope = next((each for each in reversed(around) if isinstance(each, cst.FunctionDef)), place.module.tree)
    found: list[str] = []
    for node in nodes(scope):
        target: cst.BaseExpression | None = None
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
        elif isinstance(node, cst.AugAssign):
            target = node.target
        if not isinstance(target, cst.Name) or not _LOSS.search(target.value):
            continue
        if place.module.span(node).row < place.span.row and not isinstance(
            getattr(node, "value", None), (cst.List, cst.Dict)
        ):
            found.append(target.value)
    of_evaluation = [name for name in found if _OF_EVALUATION.search(name)]
    return next(iter(reversed(of_evaluation or found)), None)
