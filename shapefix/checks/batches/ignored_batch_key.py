"""SF402: a misspelled batch key ignored by `forward`."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import key_repairs
from shapefix.checks.support.batch_keys import definition, forward_text, origins
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.model_outputs import reads_loss
from shapefix.checks.support.near_keys import near
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic
from shapefix.domains.batches import ModelCalled


@rule("SF402", on=ModelCalled)
def ignored_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward = event.signature
    if event.trainer or forward.raises is True or not forward.unused:
        return
    module = event.place.module
    positional = frozenset(forward.named[: event.positional])
    for key in event.keywords:
        meant = None if key in forward.used else near(key, forward.named)
        if meant is None or meant in event.keywords or meant in positional or not event.complete:
            continue
        if meant.lstrip("_") == key:
            # A leading underscore marks a parameter that is there to be ignored.
            continue
        if meant == "labels" and not reads_loss(event.place):
            continue
        loss = "; the loss is None" if meant == "labels" and forward.place is None else ""
        yield rule.diagnostic(
            event.place.span,
            f"`{abbreviate(event.place.code)}` passes `{key}`, but {forward_text(event, module)} reads "
            f"`{meant}` and ignores `{key}`{loss}",
            evidence=[*call_trace(event), *origins(event, [key]), *definition(event)],
            fixes=key_repairs.renamed(event, key, meant),
        )
