"""SF206: the EOS token, masked as padding by the collator."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import name_of
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.batches import Collated
from shapefix.domains.tokens import Tokens, added_to, row_of, sources_of, special_id
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.events import AttributeSet, Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.texts import contains
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Value
from shapefix.tensors.symbols import SpecialId

_COLLATOR = "DataCollatorForLanguageModeling"


@rule("SF206", on=Collated)
def eos_masked_in_labels(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    collator, sample = event.collator, event.sample
    if not isinstance(collator, LibraryObject) or not collator.kind.endswith(f".{_COLLATOR}"):
        return
    mlm, tokenizer = collator.fields.get("mlm"), collator.fields.get("tokenizer")
    if not isinstance(mlm, Constant) or mlm.value is not False or not isinstance(tokenizer, LibraryObject):
        return
    eos = _pad_that_is_eos(tokenizer)
    if eos is None or not isinstance(sample, DictValue):
        return
    ended = _ended(sample.fields.get("input_ids"), eos)
    if ended is None or already_reported(event, context, _collator):
        return
    place = collator.place or event.place
    set_at = _set_at(tokenizer, context)
    where = f" ({rewrites.line_of(set_at, place.module)})" if set_at is not None else ""
    name = f"`{name_of(tokenizer.place)}`" if tokenizer.place is not None else "the tokenizer"
    yield rule.diagnostic(
        place.span,
        f"the pad token of {name} is its EOS token{where}; `{_COLLATOR}` masks every EOS token "
        f"({rewrites.line_of(ended, place.module)}), so the model never learns to stop",
        evidence=[
            *call_trace(event),
            *([Evidence(set_at.span, "pad token set to the EOS token here")] if set_at is not None else []),
            Evidence(ended.span, "EOS token added to the text here"),
            Evidence(event.place.span, "collated here"),
        ],
    )


def _pad_that_is_eos(tokenizer: LibraryObject) -> Value | None:
    """Return the EOS token if it is certainly also the pad token."""
    eos, pad = tokenizer.fields.get("eos_token"), tokenizer.fields.get("pad_token")
    if not isinstance(eos, Value):
        return None
    stated = tokenizer.fields.get("pad_token_id")
    if stated is not None:
        return eos if stated is special_id(tokenizer, eos) else None
    if isinstance(eos, Constant) and isinstance(pad, Constant):
        return eos if isinstance(eos.value, str) and eos.value == pad.value else None
    return eos if pad is eos else None


def _symbol(value: object) -> SpecialId | None:
    symbol = value.size.only_symbol if isinstance(value, Integer) else None
    return symbol if isinstance(symbol, SpecialId) else None


def _ended(ids: Value | None, eos: Value) -> Place | None:
    """Return the place of adding the EOS token: in the text, as an id, or by a tokenizer setting."""
    row = row_of(ids)
    for tokens in sources_of(row):
        symbol = _symbol(special_id(tokens.tokenizer, eos))
        added = added_to(row, symbol) if symbol is not None else None
        if added is not None:
            return added
        if _is_in(tokens, eos) or _adds_itself(tokens.tokenizer):
            return tokens.place
    return None


def _is_in(tokens: Tokens, eos: Value) -> bool:
    text: Value | None = tokens.text
    if isinstance(text, ListValue):
        items = text.items
        return all(contains(item, eos) for item in items) if items else _holds(text.element, eos)
    return _holds(text, eos)


def _holds(text: Value | None, eos: Value) -> bool:
    return text is not None and contains(text, eos)


def _adds_itself(tokenizer: LibraryObject) -> bool:
    setting = tokenizer.fields.get("add_eos_token")
    return isinstance(setting, Constant) and setting.value is True


def _set_at(tokenizer: LibraryObject, context: CheckContext) -> Place | None:
    """Return the last place of setting the pad token, or else the creation of the tokenizer."""
    places = [
        event.place
        for event in context.events
        if isinstance(event, AttributeSet)
        and event.owner is tokenizer
        and event.name in ("pad_token", "pad_token_id")
    ]
    return places[-1] if places else tokenizer.place


def _collator(event: Event) -> Value | None:
    return event.collator if isinstance(event, Collated) else None
