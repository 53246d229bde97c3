"""SF301 and SF302: rows of different lengths that whoever makes the batch does not pad."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import padding_code, rewrites, seq2seq_collator
from shapefix.checks.support.evidence import call_trace, own_lengths
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import
from shapefix.interpreter.batch_events import Collated
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.rows import PADDED_IN_MAP, Origin, differs
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Reference, Text, Value

_PADS_INPUTS = {
    "transformers.DataCollatorForLanguageModeling",
    "transformers.DataCollatorWithPadding",
}
_PAD = "transformers.PreTrainedTokenizerBase.pad"
_LABELS = ("labels", "label", "label_ids")
_CONDITION = "two rows of a batch differ in length"


@rule("SF301", on=Collated)
def ragged_labels(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    kind = _padding_kind(event)
    sample = event.sample
    if kind is None or not isinstance(sample, DictValue) or event.single:
        return
    for key in _LABELS:
        row = sample.fields.get(key)
        made = _origin(row)
        if row is None or made is None:
            continue
        place = sample.written.get(key, event.place)
        module = place.module
        copy = f"; copied, {rewrites.line_of(place, module)}" if _is_copy(row, sample) else ""
        collator = _collator_text(event, kind, module)
        yield rule.diagnostic(
            place.span,
            f"`{key}` rows have different lengths ({made.what}, {rewrites.line_of(made.place, module)}"
            f"{copy}) and {collator} pads input_ids but not {key}: "
            "ValueError at the first batch with two lengths",
            evidence=[
                *call_trace(event),
                own_lengths(made),
                Evidence(place.span, f"`{key}` set here"),
                Evidence(event.place.span, "collated here"),
            ],
            condition=_CONDITION,
            fixes=_pad_labels(event, key, place),
        )


@rule("SF302", on=Collated)
def ragged_default_collation(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    default = _default_text(event)
    if default is None or event.single:
        return
    for key, row in _columns(event.sample):
        made = _origin(row)
        if made is None:
            continue
        place = _collation_place(event)
        error = (
            "RuntimeError" if event.consumer.startswith("torch.") and event.collator is None else "ValueError"
        )
        named = f"`{key}` rows" if key is not None else "rows"
        yield rule.diagnostic(
            place.span,
            f"{default} stacks {named} of different lengths ({made.what}, "
            f"{rewrites.line_of(made.place, place.module)}): {error} at the first batch with two lengths",
            evidence=[
                *call_trace(event),
                own_lengths(made),
                Evidence(event.place.span, "collated here"),
            ],
            condition=_CONDITION,
            fixes=_pad_inputs(event, made, context),
        )
        return


def labels_fail(event: Collated) -> bool:
    """Whether SF301 is reported for the column `labels`."""
    sample = event.sample
    if _padding_kind(event) is None or not isinstance(sample, DictValue) or event.single:
        return False
    return _origin(sample.fields.get("labels")) is not None


def _columns(sample: Value) -> Iterator[tuple[object, Value]]:
    """The columns of a sample, or its parts, with their names where they have some."""
    if isinstance(sample, DictValue):
        yield from sample.fields.items()
    else:
        yield None, sample
        for part in getattr(sample, "items", None) or ():
            yield None, part


def _origin(row: Value | None) -> Origin | None:
    """Why the lengths of a row differ from sample to sample; None where they are not known to."""
    symbol = differs(row)
    made = symbol.source if symbol is not None else None
    return made if isinstance(made, Origin) and made.what != PADDED_IN_MAP else None


def _padding_kind(event: Collated) -> str | None:
    """The collator that pads inputs and no labels; None for any other."""
    collator = event.collator
    if isinstance(collator, LibraryObject):
        kind = collator.kind
        padding = collator.fields.get("padding")
        if isinstance(padding, Constant) and padding.value in (False, "do_not_pad"):
            return None
        return kind if kind in _PADS_INPUTS else None
    if isinstance(collator, Reference):
        return _PAD if collator.name == _PAD else None
    if collator is None and event.consumer.startswith("transformers.") and event.tokenizer is not None:
        return "transformers.DataCollatorWithPadding"
    return None


def _collator_text(event: Collated, kind: str, module: Module) -> str:
    name = kind.rpartition(".")[2]
    if kind == _PAD:
        around = rewrites.enclosing(event.place.module, event.place.node)
        function = next((node for node in reversed(around) if isinstance(node, cst.FunctionDef)), None)
        if function is None:
            return f"`tokenizer.pad` ({rewrites.line_of(event.place, module)})"
        where = rewrites.line_of(Place(event.place.module, function.name), module)
        return f"`{function.name.value}` ({where})"
    if isinstance(event.collator, LibraryObject) and event.collator.place is not None:
        return f"`{name}` ({rewrites.line_of(event.collator.place, module)})"
    trainer = event.consumer.rpartition(".")[2]
    where = rewrites.line_of(event.place, module)
    return f"`{name}` (the default of `{trainer}` with a tokenizer, {where})"


def _default_text(event: Collated) -> str | None:
    """What collates without padding, in the user's words; None for anything else."""
    collator = event.collator
    if isinstance(collator, Reference) and collator.name.endswith("default_data_collator"):
        return "`default_data_collator`"
    if isinstance(collator, LibraryObject) and collator.kind.endswith(".DefaultDataCollator"):
        return "`DefaultDataCollator`"
    if collator is not None:
        return None
    if event.consumer.startswith("torch."):
        return "`DataLoader` without a collate_fn"
    if event.consumer.startswith("transformers.") and event.tokenizer is None:
        return f"`{event.consumer.rpartition('.')[2]}` without a tokenizer or data_collator"
    return None


def _collation_place(event: Collated) -> Place:
    """The argument that names the collator, else the call that makes the batches."""
    node = event.place.node
    if isinstance(node, cst.Call) and event.collator is not None:
        for name in ("data_collator", "collate_fn"):
            given = rewrites.argument(node, 99, name)
            if given is not None:
                return Place(event.place.module, given)
    return event.place


def _is_copy(row: Value, sample: DictValue) -> bool:
    """Whether labels hold the very items that input_ids hold."""
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
            "use `DataCollatorForSeq2Seq`, which pads labels with -100, too",
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
    message = "leave the labels out: `DataCollatorForLanguageModeling` makes them"
    return [Fix(Applicability.SAFE, message, (edit,))]


def _seq2seq_argument(module: Module, call: cst.Call) -> list[Edit]:
    """The edit that hands a trainer the collator, for the tokenizer that it is given."""
    for name in ("processing_class", "tokenizer"):
        given = rewrites.argument(call, 99, name)
        if given is not None:
            tokenizer = module.code(given.value)
            made = f"data_collator=DataCollatorForSeq2Seq({tokenizer}, label_pad_token_id=-100)"
            return [rewrites.appended(module, call, made)]
    return []


def _pad_inputs(event: Collated, made: Origin, context: CheckContext) -> list[Fix]:
    call, module = event.place.node, event.place.module
    if not event.consumer or not isinstance(call, cst.Call) or any(given.star for given in call.args):
        return []
    keyword = "collate_fn" if event.consumer.startswith("torch.") else "data_collator"
    if not isinstance(event.sample, DictValue):
        return _pad_sequence(event, module, call, keyword)
    tokenizer = padding_code.tokenizer_at(event.place, made, context)
    if tokenizer is None or not padding_code.has_pad_token(made, context):
        return []
    if keyword == "collate_fn" and any(isinstance(value, Text) for value in event.sample.fields.values()):
        return []
    labels = any(_origin(event.sample.fields.get(key)) is not None for key in _LABELS)
    name = "DataCollatorForSeq2Seq" if labels else "DataCollatorWithPadding"
    arguments = f"{tokenizer}, label_pad_token_id=-100" if labels else tokenizer
    code = f"{keyword}={name}({arguments})"
    given = rewrites.argument(call, 99, keyword)
    edit = rewrites.appended(module, call, code) if given is None else rewrites.replaced(module, given, code)
    old = rewrites.argument_name(given)
    return [
        Fix(
            Applicability.SAFE,
            f"collate with `{name}`, which pads",
            (edit,),
            (Import("transformers", name),),
            (Import("transformers", old),) if old else (),
        )
    ]


def _pad_sequence(event: Collated, module: Module, call: cst.Call, keyword: str) -> list[Fix]:
    """A collate function for samples that are one row each."""
    row = event.sample
    if not (isinstance(row, TensorValue) and row.layout is not None and row.layout.rank == 1):
        return []
    code = f"{keyword}=lambda rows: pad_sequence(rows, batch_first=True, padding_value=0)"
    return [
        Fix(
            Applicability.UNSAFE,
            "pad the rows with 0, if that is no token of its own",
            (rewrites.appended(module, call, code),),
            (Import("torch.nn.utils.rnn", "pad_sequence"),),
        )
    ]
