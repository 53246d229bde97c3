"""Dataset columns with rows of different lengths."""

from __future__ import annotations

from shapefix.diagnostics import Condition
from shapefix.domains.batches import Collated
from shapefix.domains.raggedness import PADDED_IN_MAP, Origin, differs
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, LibraryObject, Reference, Value

_PADS_INPUTS = {
    "transformers.DataCollatorForLanguageModeling",
    "transformers.DataCollatorWithPadding",
}


PAD = "transformers.PreTrainedTokenizerBase.pad"


LABELS = ("labels", "label", "label_ids")


def ragged_condition(made: Origin) -> Condition:
    """Return when rows of this origin have different lengths."""
    if made.cut is not None:
        return Condition(f"two rows of a batch have different lengths, one of fewer than {made.cut} tokens")
    return Condition("two rows of a batch have different lengths")


def failing_labels(event: Collated) -> list[Place]:
    """Return the places of the labels reported by SF301."""
    sample = event.sample
    if padding_kind(event) is None or not isinstance(sample, DictValue) or event.single:
        return []
    return [
        sample.written.get(key, event.place)
        for key in LABELS
        if ragged_origin(sample.fields.get(key)) is not None
    ]


def ragged_origin(row: Value | None) -> Origin | None:
    """Return the origin of different row lengths; None if the lengths are not known to differ."""
    symbol = differs(row)
    made = symbol.source if symbol is not None else None
    return made if isinstance(made, Origin) and made.what != PADDED_IN_MAP else None


def padding_kind(event: Collated) -> str | None:
    """Return the collator padding inputs but not labels; None for any other."""
    collator = event.collator
    if isinstance(collator, LibraryObject):
        kind = collator.kind
        padding = collator.fields.get("padding")
        if isinstance(padding, Constant) and padding.value in (False, "do_not_pad"):
            return None
        return kind if kind in _PADS_INPUTS else None
    if isinstance(collator, Reference):
        return PAD if collator.name == PAD else None
    if collator is None and event.consumer.startswith("transformers.") and event.tokenizer is not None:
        return "transformers.DataCollatorWithPadding"
    return None
