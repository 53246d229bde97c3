"""SF401: a batch key not accepted by `forward`."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import key_repairs
from shapefix.checks.support.batch_keys import (
    caller_text,
    definition,
    forward_text,
    keys_in_code,
    origins,
    unexpected_keys,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.near_keys import near
from shapefix.checks.support.wording import listed
from shapefix.diagnostics import Diagnostic, ExpectedError
from shapefix.domains.batches import ModelCalled


@rule("SF401", on=ModelCalled)
def unexpected_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    keys = unexpected_keys(event)
    if not keys:
        return
    module, forward = event.place.module, event.signature
    from_batch = not keys_in_code(event).intersection(keys)
    meant = {key: near(key, forward.named) for key in keys}
    taken = [
        f"`{name}`"
        for name in dict.fromkeys(meant.values())
        if name is not None and name not in event.keywords
    ]
    hint = f" (did you mean {' and '.join(taken)}?)" if taken else ""
    yield rule.diagnostic(
        event.place.span,
        f"`{caller_text(event)}` passes {listed(keys)}{hint} to {forward_text(event, module)}",
        error=ExpectedError("TypeError", "got an unexpected keyword argument"),
        evidence=[*call_trace(event), *origins(event, keys), *definition(event)],
        fixes=key_repairs.left_out(event, keys) if from_batch and not taken else (),
    )
