"""SF416: a callback of Lightning with a value never logged by the model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.lightning_steps import MetricUnlogged
from shapefix.interpreter.modules import Place

_STOPPING = "EarlyStopping"


@rule("SF416", on=MetricUnlogged)
def unlogged_metric(event: MetricUnlogged, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    given = _given(event)
    if event.kind == _STOPPING:
        error = ExpectedError(
            "RuntimeError", f"Early stopping conditioned on metric `{event.metric}` which is not available"
        )
    else:
        error = ExpectedError(
            "MisconfigurationException", "could not find the monitored key in the returned metrics"
        )
    module = event.place.module
    yield rule.diagnostic(
        module.span(given or event.place.node),
        f"`{event.kind}` watches `{event.metric}`, which the model never logs",
        error=error,
        evidence=[Evidence(place.span, "logged here") for place in event.logged],
        fixes=_fixes(event, given),
    )


def _given(event: MetricUnlogged) -> cst.SimpleString | None:
    """Return the text with the name of the value in the call of the callback."""
    node = event.place.node
    for each in node.args if isinstance(node, cst.Call) else ():
        if isinstance(each.value, cst.SimpleString) and each.value.evaluated_value == event.metric:
            return each.value
    return None


def _fixes(event: MetricUnlogged, given: cst.SimpleString | None) -> Iterator[Fix]:
    names = [name for name in map(_name, event.logged) if name is not None]
    near = difflib.get_close_matches(event.metric, names, 1, 0.6)
    if near and given is not None:
        quoted = f"{given.quote}{near[0]}{given.quote}"
        edit = Edit(event.place.module.span(given), quoted)
        yield Fix(Applicability.UNSAFE, f"watch `{near[0]}`", (edit,))
    else:
        yield Fix(Applicability.DISPLAY, f'self.log("{event.metric}", …) in `validation_step`', ())


def _name(place: Place) -> str | None:
    """Return the name in a call of `self.log`, if it is a plain text."""
    node = place.node
    value = node.args[0].value if isinstance(node, cst.Call) and node.args else None
    text = value.evaluated_value if isinstance(value, cst.SimpleString) else None
    return text if isinstance(text, str) and re.fullmatch(r"[^\"'\\]+", text) else None
