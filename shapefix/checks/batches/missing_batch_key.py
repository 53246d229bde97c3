"""SF403: a batch without a key for the loop or for `forward`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import libcst as cst

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
from shapefix.checks.support.wording import abbreviate, listed
from shapefix.diagnostics import Diagnostic, Evidence, ExpectedError, Role
from shapefix.domains.batches import BatchKeyMissing, ModelCalled


@rule("SF403", on=(ModelCalled, BatchKeyMissing))
def missing_batch_key(
    event: ModelCalled | BatchKeyMissing, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    yield from _not_read(event, rule) if isinstance(event, BatchKeyMissing) else _not_passed(event, rule)


def _not_read(event: BatchKeyMissing, rule: Rule) -> Iterator[Diagnostic]:
    keys = [key for key in event.batch.fields if isinstance(key, str)]
    node = event.place.node
    batch = abbreviate(event.place.module.code(node.value)) if isinstance(node, cst.Subscript) else "batch"
    near = difflib.get_close_matches(event.key, keys, 1, 0.6)
    set_at = event.batch.written.get(near[0]) if near else None
    yield rule.diagnostic(
        event.place.span,
        f"`{batch}` has no key {event.key!r}; it has {listed(keys)}",
        error=ExpectedError("KeyError", f"'{event.key}'"),
        evidence=[
            *call_trace(event),
            *([] if set_at is None else [Evidence(set_at.span, f"`{near[0]}` added here")]),
            Evidence(event.collated.span, f"collates samples with {listed(keys)}"),
            Evidence(event.place.span, f"{event.key!r} is read", Role.FAILURE),
        ],
    )


def _not_passed(event: ModelCalled, rule: Rule) -> Iterator[Diagnostic]:
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
