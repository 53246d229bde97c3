"""SF404: dataset columns removed by a Trainer or left in the batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import appended, argument, line_of, unsafe_or_advice
from shapefix.checks.support.wording import listed
from shapefix.diagnostics import Diagnostic, Edit, Evidence, ExpectedError, Role
from shapefix.domains.batches import ColumnsChosen, RemovedColumnRead
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.values import LibraryObject, Reference, Value, is_text

_OF_TOKENIZERS = frozenset(
    f"transformers.DataCollator{name}"
    for name in ("WithPadding", "ForLanguageModeling", "ForSeq2Seq", "ForTokenClassification")
)
_DEFAULT = "transformers.DefaultDataCollator"
_LABELS = ("label", "label_ids")
"""The columns that a Trainer always keeps."""


@rule("SF404", on=(ColumnsChosen, RemovedColumnRead))
def trainer_columns(
    event: ColumnsChosen | RemovedColumnRead, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, RemovedColumnRead):
        yield _read_after_removal(event, rule)
    elif event.removes:
        yield from _removed_all(event, rule)
    else:
        yield from _left_text(event, rule)


def _read_after_removal(event: RemovedColumnRead, rule: Rule) -> Diagnostic:
    removed, module = event.removed, event.place.module
    trainer = removed.consumer.rpartition(".")[2]
    forward = removed.signature.name if removed.signature is not None else "forward"
    made = removed.settings.place if removed.settings is not None else None
    edit = None
    if made is not None and made.module is module and isinstance(made.node, cst.Call):
        stated = argument(made.node, 99, "remove_unused_columns")
        if stated is not None:
            edit = Edit(module.span(stated), "False")
        elif not any(each.star for each in made.node.args):
            edit = appended(module, made.node, "remove_unused_columns=False")
    evidence = [*call_trace(event)]
    if removed.made is not None:
        text = f"`{trainer}` removes the columns that `{forward}` does not name"
        evidence.append(Evidence(removed.made.span, text, Role.CAUSE))
    return rule.diagnostic(
        event.place.span,
        f"`{trainer}` removes column `{event.key}` before the collator reads it: "
        f"`{forward}` does not name it",
        error=ExpectedError("KeyError", f"'{event.key}'"),
        evidence=[*evidence, Evidence(event.place.span, "the column is gone", Role.FAILURE)],
        fixes=[unsafe_or_advice("keep all columns: `remove_unused_columns=False`", edit)],
    )


def _left_text(event: ColumnsChosen, rule: Rule) -> Iterator[Diagnostic]:
    place = _setting(event)
    if place is None:
        return
    skips = _skips_texts(event.collator)
    left = [str(key) for key, value in event.sample.fields.items() if _is_refused(value, skips)]
    collator = _name(event.collator, place.module)
    if not left or skips is None or collator is None:
        return
    words = "too many dimensions 'str'" if skips else "Unable to create tensor"
    yield rule.diagnostic(
        place.span,
        f"`remove_unused_columns=False` keeps {listed(left)}, but {collator} cannot create tensors from text",
        error=ExpectedError("ValueError", words),
        evidence=[
            *call_trace(event),
            *(
                Evidence(event.sample.written[key].span, f"`{key}` added here")
                for key in left
                if key in event.sample.written
            ),
            Evidence(event.place.span, "batches of this dataset created here", Role.FAILURE),
        ],
    )


def _setting(event: ColumnsChosen) -> Place | None:
    """Return the argument for `remove_unused_columns`."""
    made = event.settings.place if event.settings is not None else None
    stated = (
        argument(made.node, 99, "remove_unused_columns") if made and isinstance(made.node, cst.Call) else None
    )
    return Place(made.module, stated) if made is not None and stated is not None else None


def _skips_texts(collator: Value) -> bool | None:
    """Whether a collator drops text columns; None for a collator of the user."""
    if isinstance(collator, Reference) or (isinstance(collator, LibraryObject) and collator.kind == _DEFAULT):
        return True
    return False if isinstance(collator, LibraryObject) and collator.kind in _OF_TOKENIZERS else None


def _is_refused(value: Value | None, skips: bool | None) -> bool:
    """Whether a collator cannot create a tensor from this column: texts, or lists of texts."""
    if is_text(value):
        return not skips
    while isinstance(value, ListValue):
        items = elements(value)
        value = items[0] if items else value.element
        if is_text(value):
            return True
    return False


def _name(collator: Value, module: Module) -> str | None:
    if isinstance(collator, Reference):
        return f"`{collator.name.rpartition('.')[2]}`"
    if not isinstance(collator, LibraryObject):
        return None
    where = f" ({line_of(collator.place, module)})" if collator.place is not None else ""
    return f"`{collator.kind.rpartition('.')[2]}`{where}"


def _removed_all(event: ColumnsChosen, rule: Rule) -> Iterator[Diagnostic]:
    forward, columns = event.signature, event.sample
    if (
        forward is None
        or forward.place is None
        or not event.is_table
        or not columns.closed
        or not columns.fields
    ):
        return
    if any(key in (*forward.named, *_LABELS) for key in columns.fields):
        return
    named = f"names only {listed(forward.named)}" if forward.named else "names none of them"
    yield rule.diagnostic(
        event.place.span,
        f"`{event.consumer.rpartition('.')[2]}` removes all columns: `{forward.name}` "
        f"({line_of(forward.place, event.place.module)}) {named}",
        error=ExpectedError("ValueError", "No columns in the dataset match"),
        evidence=[
            *call_trace(event),
            Evidence(forward.place.span, "takes the columns in `**kwargs`; the trainer matches names only"),
            Evidence(event.place.span, f"the dataset has {listed([str(key) for key in columns.fields])}"),
        ],
    )
