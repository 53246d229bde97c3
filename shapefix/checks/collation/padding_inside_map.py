"""SF306: rows padded per `map` batch, then collated across map batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from shapefix.checks.collation.tensor_of_ragged_rows import stacking_error
from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Condition, Diagnostic, Evidence, ExpectedError, Role
from shapefix.domains.batches import Collated, Stacked
from shapefix.domains.raggedness import PADDED_IN_MAP, origins, ragged, row_sizes
from shapefix.domains.row_counts import MAP_BATCH, may_exceed
from shapefix.domains.tokens import Tokenized
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.values import Constant, LibraryObject, Reference
from shapefix.tensors.polynomials import Size

_LABELS = frozenset({"labels", "label", "label_ids"})
_PAD_INPUTS_ONLY = ("DataCollatorForLanguageModeling", "DataCollatorWithPadding")
_NOT_CREATED = ExpectedError("ValueError", "Unable to create tensor")
_DIFFERENT = ExpectedError("ValueError", "expected sequence of length ... (got ...)")
_STACKS = "stacks rows of several map batches"


@rule("SF306", on=Tokenized)
def padding_inside_map(event: Tokenized, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call = event.place.node
    padding = event.arguments.get("padding")
    if event.mapped is None or not event.batched or not isinstance(call, cst.Call):
        return
    size = _batch_of_map(event.mapped.node)
    if size is None or not isinstance(padding, Constant) or not may_exceed(event.count, size):
        return
    module = event.place.module
    for combined in context.events:
        fails = _what_fails(combined, event, module)
        if fails is None or not _mixes(combined, size):
            continue
        what, error = fails
        given = rewrites.argument(call, 99, "padding")
        place = event.place if given is None else Place(module, given)
        yield rule.diagnostic(
            place.span,
            f"`padding={padding.value!r}` in `map` pads each {size} rows to their own length, but {what}",
            evidence=[
                *call_trace(event),
                Evidence(event.mapped.span, f"mapped here, {size} rows per map batch"),
                Evidence(place.span, "padded to the longest row of the map batch"),
                Evidence(combined.place.span, "rows of several map batches combined here", Role.FAILURE),
            ],
            error=error,
            condition=Condition(f"the dataset has more than {size} rows"),
        )
        return


def _batch_of_map(node: cst.CSTNode) -> int | None:
    """Return the number of rows per call of the function; None if it is not known, or all rows."""
    if not isinstance(node, cst.Call) or any(argument.star for argument in node.args):
        return None
    given = rewrites.argument(node, 5, "batch_size")
    if given is None:
        return MAP_BATCH
    return int(given.value.value) if isinstance(given.value, cst.Integer) else None


def _what_fails(combined: Event, event: Tokenized, module: Module) -> tuple[str, ExpectedError] | None:
    """Return a failing consumer of the rows, and its error; None without one."""
    if isinstance(combined, Stacked):
        found = ragged(combined.rows)
        if found is None or not _is_padded_by(event, found):
            return None
        function = combined.function.replace("numpy.", "np.")
        where = rewrites.line_of(combined.place, module)
        return f"`{function}` ({where}) {_STACKS}", stacking_error(combined)
    if not isinstance(combined, Collated) or not isinstance(combined.sample, DictValue) or combined.single:
        return None
    keys = [key for key, row in combined.sample.fields.items() if _is_padded_by(event, row_sizes(row))]
    labels = [key for key in keys if key in _LABELS]
    collator = combined.collator
    where = rewrites.line_of(combined.place, module)
    consumer = combined.consumer.rpartition(".")[2]
    if isinstance(collator, LibraryObject):
        name = collator.kind.rpartition(".")[2]
        if name in _PAD_INPUTS_ONLY and labels:
            where = rewrites.line_of(collator.place or combined.place, module)
            return f"`{name}` ({where}) does not pad {labels[0]}", _NOT_CREATED
        return (f"`{name}` ({where}) {_STACKS}", _DIFFERENT) if _is_default(name, keys) else None
    if isinstance(collator, Reference):
        name = collator.name.rpartition(".")[2]
        return (f"`{name}` ({where}) {_STACKS}", _DIFFERENT) if _is_default(name, keys) else None
    if collator is not None or not keys:
        return None
    if combined.consumer.startswith("torch."):
        error = ExpectedError("RuntimeError", "each element in list of batch should be of equal size")
        return f"`{consumer}` ({where}) {_STACKS}", error
    if combined.tokenizer is None:
        return f"`{consumer}` ({where}) {_STACKS}", _DIFFERENT
    return (f"`DataCollatorWithPadding` ({where}) does not pad {labels[0]}", _NOT_CREATED) if labels else None


def _is_default(name: str, keys: list[object]) -> bool:
    return bool(keys) and name in ("default_data_collator", "DefaultDataCollator", "default_collate")


def _is_padded_by(event: Tokenized, sizes: Iterable[Size]) -> bool:
    """Whether one of the sizes is the length of this call's padding of a map batch."""
    return any(
        origin.what == PADDED_IN_MAP and origin.place.node is event.place.node
        for size in sizes
        for origin in origins(size)
    )


def _mixes(combined: Event, size: int) -> bool:
    """Whether batches combine rows of several map batches: by shuffling, or by their size."""
    for place in (combined.place, *reversed(combined.calls)):
        node = place.node
        name = node.func if isinstance(node, cst.Call) else None
        last = name.attr if isinstance(name, cst.Attribute) else name
        if not isinstance(node, cst.Call) or not isinstance(last, cst.Name):
            continue
        if last.value.endswith("Trainer"):
            return True
        if last.value == "DataLoader":
            return _mixes_in_loader(node, size)
    return isinstance(combined, Collated) and combined.consumer.startswith("transformers.")


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
