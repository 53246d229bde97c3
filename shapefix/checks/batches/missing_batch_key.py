"""SF403: a required argument of `forward` without a batch key."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.batch_keys import (
    caller_text,
    definition,
    forward_text,
    keys_in_code,
    unexpected_keys,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import listed
from shapefix.diagnostics import Diagnostic, Evidence, ExpectedError
from shapefix.domains.batches import ModelCalled


@rule("SF403", on=ModelCalled)
def missing_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward = event.signature
    # A call with an empty batch calls something other than the known model.
    from_batch = event.keywords.keys() - keys_in_code(event)
    if not from_batch or not event.complete or unexpected_keys(event):
        return
    given = {*forward.named[: event.positional], *event.keywords}
    missing = [name for name in forward.named if name in forward.required and name not in given]
    if not missing:
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{caller_text(event)}` does not pass {listed(missing)} to "
        f"{forward_text(event, event.place.module)}",
        error=ExpectedError("TypeError", "missing required positional argument"),
        evidence=[
            *call_trace(event),
            *definition(event),
            Evidence(event.place.span, f"passes {listed(list(event.keywords))}"),
        ],
    )
