"""SF308: a classifier of sequences without a pad token in its configuration, for several rows."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.tokens import PadIdMissing


@rule("SF308", on=PadIdMissing)
def pad_id_missing(event: PadIdMissing, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    created = []
    if event.created is not None:
        created = [Evidence(event.created.span, "created here, without pad_token_id")]
    yield rule.diagnostic(
        event.place.span,
        f"`{event.model}` gets batches of several rows, but its config has no pad_token_id",
        evidence=[
            *call_trace(event),
            *created,
            Evidence(event.place.span, "the last token before the padding cannot be found here"),
        ],
        error=ExpectedError("ValueError", "Cannot handle batch sizes > 1 if no padding token is defined"),
        fixes=[
            Fix(
                Applicability.DISPLAY,
                "set `model.config.pad_token_id` to the pad token of the tokenizer before training",
                (),
            )
        ],
    )
