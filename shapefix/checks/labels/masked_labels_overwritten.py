"""SF205: labels of the script, overwritten by the collator."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites, seq2seq_collator
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix, Import
from shapefix.domains.batches import Collated
from shapefix.domains.raggedness import differs
from shapefix.domains.tokens import Tokens, row_of, tokens_of
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import TEXT, Constant, LibraryObject, Text, Unknown, Value
from shapefix.light_dataclasses import dataclass

_COLLATOR = "DataCollatorForLanguageModeling"
_OVERWRITES = f"`{_COLLATOR}` overwrites `labels` with its own, made from input_ids"


@rule("SF205", on=Collated)
def masked_labels_overwritten(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    collator, sample = event.collator, event.sample
    if not isinstance(collator, LibraryObject) or not collator.kind.endswith(f".{_COLLATOR}"):
        return
    if not isinstance(sample, DictValue) or "labels" not in sample.fields:
        return
    if differs(sample.fields["labels"]) is not None and not event.single:
        # The collator raises.
        return
    place = collator.place or event.place
    lost = _lost(sample, _mlm(collator), place)
    if lost is None or _is_repeated(event, context):
        return
    yield rule.diagnostic(
        place.span,
        f"{_OVERWRITES}; {lost.what}",
        evidence=[*call_trace(event), *lost.evidence, Evidence(event.place.span, "collated here")],
        fixes=_keep_labels(collator) if lost.is_mask else (),
    )


@dataclass(frozen=True)
class _Lost:
    """The overwritten content: a -100 mask on the input ids, or labels from another text."""

    what: str
    evidence: tuple[Evidence, ...]
    is_mask: bool


def _is_repeated(event: Collated, context: CheckContext) -> bool:
    """Whether an earlier event has the same labels and collator, for another split or trainer."""
    for other in context.events:
        if other is event:
            return False
        if isinstance(other, Collated) and other.collator is event.collator:
            if _labels_set_at(other) is _labels_set_at(event):
                return True
    return False


def _labels_set_at(event: Collated) -> cst.CSTNode | None:
    place = event.sample.written.get("labels") if isinstance(event.sample, DictValue) else None
    return place.node if place is not None else None


def _mlm(collator: LibraryObject) -> bool | None:
    value = collator.fields.get("mlm")
    return value.value if isinstance(value, Constant) and isinstance(value.value, bool) else None


def _lost(sample: DictValue, mlm: bool | None, seen_from: Place) -> _Lost | None:
    """Return the label content lost by the collator; None if nothing is known to be lost."""
    ids, labels = row_of(sample.fields.get("input_ids")), row_of(sample.fields["labels"])
    texts = tokens_of(ids)
    if labels is None or not texts:
        return None
    mask = labels.mask
    if mask is not None:
        if not mask.leading and any(tokens.padding != "none" for tokens in texts):
            # It may be the padding, which the collator also masks.
            return None
        line = rewrites.line_of(mask.place, seen_from.module)
        learned = ", and the loss includes the prompt" if mask.leading and mlm is False else ""
        here = Evidence(mask.place.span, "-100 written into labels here")
        return _Lost(f"the -100 from {line} is lost{learned}", (here,), True)
    others = tokens_of(labels)
    written = sample.written.get("labels")
    if written is None or not others or not _are_other_texts(texts, others):
        return None
    line = rewrites.line_of(written, seen_from.module)
    evidence = (
        Evidence(texts[0].place.span, "text of input_ids"),
        Evidence(others[0].place.span, "text of labels"),
    )
    return _Lost(f"the labels from {line} (another text) are lost", evidence, False)


def _are_other_texts(one: tuple[Tokens, ...], other: tuple[Tokens, ...]) -> bool:
    """Whether the texts come from different columns of a dataset."""
    left, right = {_column(tokens.text) for tokens in one}, {_column(tokens.text) for tokens in other}
    return None not in left and None not in right and left.isdisjoint(right)


def _column(text: Value | None) -> Value | str | None:
    """Return the column of a text, or its name; None for any other text."""
    if isinstance(text, ListValue):
        return _column(text.element)
    if isinstance(text, Unknown):
        return text.hint or None
    return text if isinstance(text, Text) and text is not TEXT else None


def _keep_labels(collator: LibraryObject) -> list[Fix]:
    made = collator.place
    if _mlm(collator) is not False or made is None or not isinstance(made.node, cst.Call):
        return []
    edits = seq2seq_collator.replacing(made.module, made.node)
    if not edits:
        return []
    qualified = isinstance(made.node.func, cst.Attribute)
    package = "transformers"
    return [
        Fix(
            Applicability.UNSAFE,
            "use `DataCollatorForSeq2Seq`, which keeps labels",
            tuple(edits),
            () if qualified else (Import(package, "DataCollatorForSeq2Seq"),),
            () if qualified else (Import(package, _COLLATOR),),
        )
    ]
