"""Origins of the values of a failing line: layers, computed tensors, samples of a dataset, named settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.diagnosis.batch_origins import (
    SAMPLE,
    abbreviated,
    before_batch,
    inner_statements,
    of_dataset,
    of_loader,
    of_loops,
    of_results,
    of_rows,
    of_samples,
)
from shapefix.diagnosis.failing_runs import FailingRun, SeenValue
from shapefix.diagnosis.number_origins import (
    Origin,
    assigned,
    made_here,
    nodes,
    owner_of,
    settings_of,
    statements,
    to_evidence,
)
from shapefix.diagnostics import Evidence
from shapefix.interpreter.classes import member
from shapefix.interpreter.modules import Place, dotted_name
from shapefix.interpreter.values import (
    Constant,
    FunctionValue,
    InstanceValue,
    IntegerLiteral,
    LibraryObject,
    Value,
)

_OF_SAMPLES = frozenset(
    {"stacked-sizes", "uncollatable-type", "unequal-lists", "none-in-batch", "resized-batch"}
    | {"too-many-values", "not-enough-values"}
)
"""The error pages about the samples of a batch."""
_OF_VALUES = frozenset(
    {"target-out-of-bounds", "embedding-range", "probability-range", "unexpected-device", "two-devices"}
    | {"target-dtype", "matrix-dtypes", "found-dtype", "mixed-dtypes", "scalar-type"}
    | {
        "embedding-dtype",
        "dtype-not-implemented",
        "result-dtype",
        "scalar-of-many",
        "no-loss",
        "not-a-tensor",
    }
    | {"no-gradient", "index-dtype", "meta-tensor", "object-array", "attention-rank", "ignored-probabilities"}
    | {"one-hot-range", "one-hot-dtype", "integer-mean", "mask-dtype", "half-overflow", "scalar-indexed"}
    | {"lightning-log-value", "lightning-step-result", "attention-heads", "invalid-probabilities"}
    | {"distribution-values", "top-k-range", "integer-gradient", "weight-type", "weight-rank", "empty-stack"}
    | {"ids-or-embeddings", "padding-id-range", "packed-lengths", "ctc-lengths", "boolean-subtraction"}
    | {"backward-of-many", "ambiguous-truth", "group-count", "head-mismatch", "generation-length"}
    | {"tensor-as-index", "float-as-size", "graph-indices", "write-into-expanded"}
    | {"batch-of-one", "unpadded-batch", "leaf-in-place", "copied-graph", "class-weights"}
)
"""The error pages about the values of tensors, their dtypes and devices."""
_OF_INDEX = frozenset({"index-bounds", "array-index", "list-index"})
"""The error pages about an index beyond the end."""
_OF_ROWS = frozenset({"missing-key", "missing-column", "lists-by-name", "mixed-column", "dataset-index"})
"""The error pages about the columns of a dataset, or the keys of its samples."""
_SHAPE = re.compile(r"Tensor \[([\d, ]*)\]")
_NUMBERS = re.compile(r"\d+")
_CAPACITIES = (
    *("num_embeddings", "vocab_size", "num_labels", "max_position_embeddings", "out_features"),
    *("num_attention_heads", "num_heads"),
)
"""Settings with the number of ids of a layer or model."""
_DEEPEST = 3
_WITHOUT_IDS = frozenset(f"torch.nn.{name}" for name in ("Linear", "Dropout", "LayerNorm", "LSTM", "GRU"))
"""Layers that take no ids."""


def value_origins(run: FailingRun, page: str, message: str) -> tuple[Evidence, ...]:
    """Return the origins of the values of a failing line, for the error of a page."""
    if page in _OF_SAMPLES:
        return to_evidence(of_samples(run, message))
    if page in _OF_INDEX:
        return to_evidence((*_of_length(run), *_of_counters(run)))
    if page == "in-place-modified":
        return to_evidence(_of_writes(run, message))
    if page in _OF_ROWS:
        return to_evidence((*of_rows(run), *of_loops(run)))
    if page == "no-cuda":
        return to_evidence(_of_constants(run))
    if page == "tensor-of-text":
        return to_evidence((*_of_values(run, with_layers=False), *of_loops(run)))
    if page in _OF_VALUES:
        is_of_ids = page == "embedding-range"
        first = _of_embeddings(run) if is_of_ids else ()
        return to_evidence((*first, *_of_values(run, only_embeddings=is_of_ids), *of_loops(run)))
    return ()


def _of_embeddings(run: FailingRun) -> Iterator[Origin]:
    """Yield the creation of the embeddings of a failing line, and of the modules with them."""
    for each in run.values:
        if isinstance(each.value, LibraryObject) and each.value.kind == "torch.nn.Embedding":
            yield from settings_of(each.value, _CAPACITIES, run.folder)
            yield from owner_of(run, each.value)
            yield from made_here(each.value)


def tensor_origins(run: FailingRun) -> tuple[Evidence, ...]:
    """Return the origins of the tensors and layers of a failing line, for any error."""
    return to_evidence((*_of_values(run), *of_loops(run)))


def batch_places(run: FailingRun) -> tuple[Evidence, ...]:
    """Return the samples of the loop over batches around a failing line, and their data."""
    return to_evidence(of_loops(run))


def sample_origins(run: FailingRun, names: Set[str]) -> tuple[Evidence, ...]:
    """Return the origins of batches in a failing line, in the dataset.

    names are the expressions that a finding names: if some of them have values, only these count.
    """
    named = [each for each in run.values if each.place.code in names and each.tensor is not None]
    return to_evidence(_of_tensors(run, named or run.values))


def _of_tensors(run: FailingRun, values: Sequence[SeenValue]) -> Iterator[Origin]:
    for each in values:
        yield from before_batch(run, each.origin)
        if isinstance(each.value, LibraryObject):
            yield from of_loader(each.value)
            yield from of_dataset(each.value.arguments.get("train_dataset"))
            if each.value.kind == "torch.nn.Embedding":
                yield from settings_of(each.value, _CAPACITIES, run.folder)


def _of_length(run: FailingRun) -> Iterator[Origin]:
    """Yield the length of the dataset of a sample with an index out of range."""
    function = run.frame.function
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__getitem__":
        return
    receivers = [each.value for each in run.values if each.place.code == "self"]
    for receiver in receivers[:1]:
        yield from of_results(receiver, "__len__", "the length of the dataset is stated here")


def _of_writes(run: FailingRun, message: str) -> Iterator[Origin]:
    """Yield the writes in place, to tensors of the size in the message; the last ones first."""
    stated = _SHAPE.search(message)
    wanted = [int(size) for size in _NUMBERS.findall(stated[1])] if stated is not None else None
    for event in reversed(run.writes):
        known = [size.value for size in event.layout.sizes] if event.layout is not None else None
        if wanted is None or known is None or known == wanted:
            yield event.place.span, f"`{abbreviated(event.place.code)}` writes in place"


def _of_counters(run: FailingRun) -> Iterator[Origin]:
    """Yield the loops with a counter used as an index in a failing line."""
    names = {each.place.node.value for each in run.values if isinstance(each.place.node, cst.Name)}
    for node in run.loops:
        if isinstance(node, cst.For) and isinstance(node.target, cst.Name) and node.target.value in names:
            code = abbreviated(run.frame.module.code(node.iter))
            yield run.frame.module.span(node.iter), f"`{node.target.value}` counts over `{code}` here"
    for each in run.values:
        if each.place.code.startswith("range("):
            yield each.place.span, f"the index counts over `{abbreviated(each.place.code)}`"


def _of_values(
    run: FailingRun, *, with_layers: bool = True, only_embeddings: bool = False
) -> Iterator[Origin]:
    """Yield the layers of a failing line, and the origins of its tensors."""
    for each in run.values if with_layers else ():
        is_other = isinstance(each.value, LibraryObject) and each.value.kind in _WITHOUT_IDS
        if isinstance(each.value, LibraryObject) and not (only_embeddings and is_other):
            yield from of_results(each.value.arguments.get("train_dataset"), "__getitem__", SAMPLE)
            yield from _made(each.value, run.folder, 0)
    for each in run.values:
        yield from _computed(run, each)
        yield from _of_steps(each.value)
    yield from _of_constants(run)


def _of_constants(run: FailingRun) -> Iterator[Origin]:
    """Yield the assignments of the texts and numbers of a failing line."""
    for each in run.values:
        if isinstance(each.value, Constant) and isinstance(each.value.value, (str, int)):
            yield from assigned(each.place, repr(each.value.value))


def _of_steps(module: Value) -> Iterator[Origin]:
    """Yield the loss of a Lightning module, and the assignments before it."""
    method = member(module.cls, "training_step") if isinstance(module, InstanceValue) else None
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    yield from of_results(module, "training_step", "the loss is returned here")
    found = list(statements(method.node.body))
    names = {name for node in found if isinstance(node, cst.Return) for name in _names_in(node)}
    for node in reversed(found):
        if isinstance(node, cst.Assign) and names & {dotted_name(each.target) for each in node.targets}:
            names |= _names_in(node.value)
            place = Place(method.module, node)
            yield place.span, f"`{abbreviated(place.code)}` leads to it"


def _names_in(node: cst.CSTNode) -> set[str]:
    return {each.value for each in nodes(node) if isinstance(each, cst.Name)}


def _made(value: Value | None, folder: str, depth: int) -> Iterator[Origin]:
    """Yield the creation of a layer or model, of its arguments, and of their numbers."""
    if not isinstance(value, LibraryObject) or depth > _DEEPEST or value.kind.startswith("torch.Tensor"):
        return
    is_model = value.kind.startswith(("torch.nn.", "transformers.")) and "Output" not in value.kind
    if is_model and not value.kind.endswith(("Trainer", "TrainingArguments")):
        yield from made_here(value)
        yield from settings_of(value, _CAPACITIES, folder)
        for name in _CAPACITIES:
            stated = value.fields.get(name)
            if isinstance(stated, IntegerLiteral):
                yield stated.place.span, f"`{name}` is {stated.value} here"
    for name in ("model", "config"):
        yield from _made(value.arguments.get(name) or value.fields.get(name), folder, depth + 1)


def _computed(run: FailingRun, seen: SeenValue) -> Iterator[Origin]:
    step = seen.origin
    if step is None:
        return
    own, found = seen.place.span, step.place.span
    if (own.path, own.row) != (found.path, found.row):
        yield step.place.span, f"`{abbreviated(seen.place.code)}` is `{abbreviated(step.place.code)}`"
        yield from _collected(step.place)
        yield from before_batch(run, step)


def _collected(joined: Place) -> Iterator[Origin]:
    """Yield the additions to a list of `self` in a joined tensor, `torch.cat(self.targets)`."""
    lists = {
        f"{name}.append"
        for node in nodes(joined.node)
        if isinstance(node, cst.Attribute) and (name := dotted_name(node)) and name.startswith("self.")
    }
    classes = [each for each in enclosing(joined.module, joined.node) if isinstance(each, cst.ClassDef)]
    for statement in inner_statements(classes[-1]) if lists and classes else ():
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            if dotted_name(statement.value.func) in lists:
                place = Place(joined.module, statement)
                yield place.span, f"`{abbreviated(place.code)}` adds to the list"
