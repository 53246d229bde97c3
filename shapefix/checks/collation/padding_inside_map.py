"""SF306: rows that are padded for each batch of `map`, and put together from several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.batches import Collated, Stacked
from shapefix.domains.raggedness import PADDED_IN_MAP, origins, ragged, row_sizes
from shapefix.domains.tokens import Tokenized
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.values import Constant, LibraryObject, Reference
from shapefix.tensors.polynomials import Size

_LABELS = frozenset({"labels", "label", "label_ids"})
_PAD_INPUTS_ONLY = ("DataCollatorForLanguageModeling", "DataCollatorWithPadding")
_DEFAULT_BATCH = 1000
"""How many rows `map` hands to its function at once."""


@rule("SF306", on=Tokenized)
def padding_inside_map(event: Tokenized, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call = event.place.node
    padding = event.arguments.get("padding")
    if event.mapped is None or not event.batched or not isinstance(call, cst.Call):
        return
    size = _batch_of_map(event.mapped.node)
    if size is None or not isinstance(padding, Constant):
        return
    module = event.place.module
    for meeting in context.events:
        what = _what_fails(meeting, event, module)
        if what is None or not _mixes(meeting, size):
            continue
        given = rewrites.argument(call, 99, "padding")
        place = event.place if given is None else Place(module, given)
        yield rule.diagnostic(
            place.span,
            f"`padding={padding.value!r}` inside `map` pads each map batch of {size} rows to its own length, "
            f"and {what} at the first batch with two lengths",
            evidence=[
                *call_trace(event),
                Evidence(event.mapped.span, f"mapped here, {size} rows at a time"),
                Evidence(place.span, "padded to the longest of these rows"),
                Evidence(meeting.place.span, "rows of several map batches meet here"),
            ],
            condition=f"the dataset has more than {size} rows",
        )
        return


def _batch_of_map(node: cst.CSTNode) -> int | None:
    """How many rows the function gets at once; None where that is not known, or all of them."""
    if not isinstance(node, cst.Call) or any(argument.star for argument in node.args):
        return None
    given = rewrites.argument(node, 5, "batch_size")
    if given is None:
        return _DEFAULT_BATCH
    return int(given.value.value) if isinstance(given.value, cst.Integer) else None


def _what_fails(meeting: Event, event: Tokenized, module: Module) -> str | None:
    """What the rows of this call run into, and with what; None where they do not, or not here."""
    if isinstance(meeting, Stacked):
        found = ragged(meeting.rows)
        if found is None or not _is_padded_by(event, found):
            return None
        function = meeting.function.replace("numpy.", "np.")
        error = "RuntimeError" if meeting.function == "torch.stack" else "ValueError"
        return f"`{function}` ({rewrites.line_of(meeting.place, module)}) stacks rows of several: {error}"
    if not isinstance(meeting, Collated) or not isinstance(meeting.sample, DictValue) or meeting.single:
        return None
    keys = [key for key, row in meeting.sample.fields.items() if _is_padded_by(event, row_sizes(row))]
    labels = [key for key in keys if key in _LABELS]
    collator = meeting.collator
    where = rewrites.line_of(meeting.place, module)
    consumer = meeting.consumer.rpartition(".")[2]
    if isinstance(collator, LibraryObject):
        name = collator.kind.rpartition(".")[2]
        if name in _PAD_INPUTS_ONLY and labels:
            where = rewrites.line_of(collator.place or meeting.place, module)
            return f"`{name}` ({where}) does not pad {labels[0]}: ValueError"
        return f"`{name}` ({where}) stacks rows of several: ValueError" if _is_default(name, keys) else None
    if isinstance(collator, Reference):
        name = collator.name.rpartition(".")[2]
        return f"`{name}` ({where}) stacks rows of several: ValueError" if _is_default(name, keys) else None
    if collator is not None or not keys:
        return None
    if meeting.consumer.startswith("torch."):
        return f"`{consumer}` ({where}) stacks rows of several: RuntimeError"
    if meeting.tokenizer is None:
        return f"`{consumer}` ({where}) stacks rows of several: ValueError"
    return f"`DataCollatorWithPadding` ({where}) does not pad {labels[0]}: ValueError" if labels else None


def _is_default(name: str, keys: list[object]) -> bool:
    return bool(keys) and name in ("default_data_collator", "DefaultDataCollator", "default_collate")


def _is_padded_by(event: Tokenized, sizes: Iterable[Size]) -> bool:
    """Whether one of the sizes is the length of a map batch that this call padded."""
    return any(
        origin.what == PADDED_IN_MAP and origin.place.node is event.place.node
        for size in sizes
        for origin in origins(size)
    )


def _mixes(meeting: Event, size: int) -> bool:
    """Whether batches hold rows of several map batches: they are shuffled, or of a size that does not fit."""
    for place in (meeting.place, *reversed(meeting.calls)):
        node = place.node
        name = node.func if isinstance(node, cst.Call) else None
        last = name.attr if isinstance(name, cst.Attribute) else name
        if not isinstance(node, cst.Call) or not isinstance(last, cst.Name):
            continue
        if last.value.endswith("Trainer"):
            return True
        if last.value == "DataLoader":
            return _mixes_in_loader(node, size)
    return isinstance(meeting, Collated) and meeting.consumer.startswith("transformers.")


def _mixes_in_loader(loader: cst.Call, size: int) -> bool:
    if any(argument.star for argument in loader.args):
        return False
    shuffle = rewrites.argument(loader, 2, "shuffle")
    if shuffle is not None:
        if isinstance(shuffle.value, cst.Name) and shuffle.value.value == "True":
            return True
        if not (isinstance(shuffle.value, cst.Name) and shuffle.value.value == "False"):
            return False
    if any(rewrites.argument(loader, at, name) for at, name in ((3, "sampler"), (4, "batch_sampler"))):
        return False
    given = rewrites.argument(loader, 1, "batch_size")
    return given is not None and isinstance(given.value, cst.Integer) and size % int(given.value.value) != 0
