"""SF301: labels of different lengths, not padded by the collator."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites, seq2seq_collator
from shapefix.checks.support.evidence import call_trace, own_lengths
from shapefix.checks.support.ragged_columns import LABELS, PAD, padding_kind, ragged_condition, ragged_origin
from shapefix.checks.support.syntax import enclosing_function
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Import, Role
from shapefix.domains.batches import Collated
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Reference, Value


@rule("SF301", on=Collated)
def ragged_labels(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    kind = padding_kind(event)
    sample = event.sample
    if kind is None or not isinstance(sample, DictValue) or event.single:
        return
    for key in LABELS:
        row = sample.fields.get(key)
        made = ragged_origin(row)
        if row is None or made is None:
            continue
        place = sample.written.get(key, event.place)
        module = place.module
        copy = f"; copied, {rewrites.line_of(place, module)}" if _is_copy(row, sample) else ""
        collator = _collator_text(event, kind, module)
        yield rule.diagnostic(
            place.span,
            f"`{key}` rows have different lengths ({made.what}, {rewrites.line_of(made.place, module)}"
            f"{copy}), but {collator} pads only the inputs",
            evidence=[
                *call_trace(event),
                own_lengths(made),
                Evidence(place.span, f"`{key}` set here"),
                Evidence(event.place.span, "collated here", Role.FAILURE),
            ],
            condition=ragged_condition(made),
            error=ExpectedError("ValueError", "Unable to create tensor"),
            fixes=_pad_labels(event, key, place),
        )


def _collator_text(event: Collated, kind: str, module: Module) -> str:
    name = kind.rpartition(".")[2]
    if kind == PAD:
        function = enclosing_function(event.place)
        if function is None:
            return f"`tokenizer.pad` ({rewrites.line_of(event.place, module)})"
        where = rewrites.line_of(Place(event.place.module, function.name), module)
        return f"`{function.name.value}` ({where})"
    if isinstance(event.collator, LibraryObject) and event.collator.place is not None:
        return f"`{name}` ({rewrites.line_of(event.collator.place, module)})"
    trainer = event.consumer.rpartition(".")[2]
    where = rewrites.line_of(event.place, module)
    return f"`{name}` (the default of `{trainer}` with a tokenizer, {where})"


def _is_copy(row: Value, sample: DictValue) -> bool:
    """Whether labels hold the same items as input_ids."""
    ids = sample.fields.get("input_ids")
    return (
        isinstance(row, ListValue)
        and isinstance(ids, ListValue)
        and isinstance(row.element, Integer)
        and isinstance(ids.element, Integer)
        and row.element.size == ids.element.size
    )


def _pad_labels(event: Collated, key: str, place: Place) -> list[Fix]:
    module = place.module
    collator = event.collator
    if key != "labels":
        return []
    if isinstance(collator, Reference):
        return []
    if isinstance(collator, LibraryObject):
        made = collator.place
        if made is None or made.module is not module or not isinstance(made.node, cst.Call):
            return []
        if _masks(collator):
            return _without_labels(place)
        edits = seq2seq_collator.replacing(module, made.node)
        old = collator.kind.rpartition(".")[2]
    else:
        if event.place.module is not module or not isinstance(event.place.node, cst.Call):
            return []
        edits = _seq2seq_argument(module, event.place.node)
        old = ""
    if not edits:
        return []
    node = made.node if isinstance(collator, LibraryObject) and made is not None else None
    qualified = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    package = "transformers"
    return [
        Fix(
            Applicability.SAFE,
            "use `DataCollatorForSeq2Seq`, which also pads labels with -100",
            tuple(edits),
            () if qualified else (Import(package, "DataCollatorForSeq2Seq"),),
            (Import(package, old),) if old and not qualified else (),
        )
    ]


def _masks(collator: LibraryObject) -> bool:
    mlm = collator.fields.get("mlm")
    return collator.kind.endswith("LanguageModeling") and isinstance(mlm, Constant) and mlm.value is True


def _without_labels(place: Place) -> list[Fix]:
    edit = rewrites.without_statement(place)
    if edit is None:
        return []
    message = "remove the labels; `DataCollatorForLanguageModeling` creates them"
    return [Fix(Applicability.SAFE, message, (edit,))]


def _seq2seq_argument(module: Module, call: cst.Call) -> list[Edit]:
    """Return the edit to pass the collator to a trainer, with the tokenizer from its arguments."""
    for name in ("processing_class", "tokenizer"):
        given = rewrites.argument(call, 99, name)
        if given is not None:
            tokenizer = module.code(given.value)
            made = f"data_collator=DataCollatorForSeq2Seq({tokenizer}, label_pad_token_id=-100)"
            return [rewrites.appended(module, call, made)]
    return []
