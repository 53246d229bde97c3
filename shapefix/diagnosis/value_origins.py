"""Origins of the values of a failing line: layers, computed tensors, samples of a dataset, named settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.diagnosis.failing_runs import LOADER, FailingRun, SeenValue
from shapefix.diagnosis.number_origins import (
    Origin,
    assigned,
    first_step,
    made_here,
    nodes,
    settings_of,
    statements,
    to_evidence,
)
from shapefix.diagnostics import Evidence
from shapefix.interpreter.classes import member
from shapefix.interpreter.modules import Place, children, dotted_name
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import (
    Constant,
    FunctionValue,
    InstanceValue,
    IntegerLiteral,
    LibraryObject,
    Value,
)
from shapefix.tensors.ops import Op

_SAMPLE = "a sample is returned here"
_OF_SAMPLES = frozenset(
    {"stacked-sizes", "uncollatable-type", "unequal-lists", "none-in-batch", "resized-batch"}
    | {"too-many-values", "not-enough-values"}
)
"""The error pages about the samples of a batch."""
_OF_VALUES = frozenset(
    {"target-out-of-bounds", "embedding-range", "probability-range", "unexpected-device", "two-devices"}
    | {"no-cuda", "target-dtype", "matrix-dtypes", "found-dtype", "mixed-dtypes", "scalar-type"}
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
    | {"distribution-values", "top-k-range", "integer-gradient"}
)
"""The error pages about the values of tensors, their dtypes and devices."""
_ATTRIBUTE = re.compile(r"`(self\.\w+)`")
_SHAPE = re.compile(r"Tensor \[([\d, ]*)\]")
_NUMBERS = re.compile(r"\d+")
_NAME = re.compile(r"`(\w+)`")
_CAPACITIES = (
    *("num_embeddings", "vocab_size", "num_labels", "max_position_embeddings", "out_features"),
    *("num_attention_heads", "num_heads"),
)
"""Settings with the number of ids of a layer or model."""
_DEEPEST = 3
_MOST_STEPS = 40


def value_origins(run: FailingRun, page: str, message: str) -> tuple[Evidence, ...]:
    """Return the origins of the values of a failing line, for the error of a page."""
    if page in _OF_SAMPLES:
        return to_evidence(_of_samples(run))
    if page == "index-bounds":
        return to_evidence((*_of_length(run), *_of_counters(run)))
    if page == "in-place-modified":
        return to_evidence(_of_writes(run, message))
    if page in _OF_VALUES:
        return to_evidence(_of_values(run))
    return ()


def tensor_origins(run: FailingRun) -> tuple[Evidence, ...]:
    """Return the origins of the tensors and layers of a failing line, for any error."""
    return to_evidence(_of_values(run))


def sample_origins(run: FailingRun) -> tuple[Evidence, ...]:
    """Return the origins of batches in a failing line, in the dataset."""
    return to_evidence(_of_tensors(run))


def _of_tensors(run: FailingRun) -> Iterator[Origin]:
    for each in run.values:
        yield from _before_batch(run, each.origin)
        if isinstance(each.value, LibraryObject):
            yield from _of_loader(each.value)
            data = each.value.arguments.get("train_dataset")
            if isinstance(data, LibraryObject) and data.place is not None:
                yield data.place.span, "the dataset"
            if each.value.kind == "torch.nn.Embedding":
                yield from settings_of(each.value, _CAPACITIES, run.folder)


def attribute_origins(run: FailingRun, message: str) -> tuple[Evidence, ...]:
    """Return the assignments of the attributes named by a finding, `self.members`, in its class."""
    names = frozenset(_ATTRIBUTE.findall(message))
    classes = frozenset(_NAME.findall(message))
    module = run.frame.module
    return to_evidence(
        (module.span(node), f"`{target}` is set here")
        for cls in children(module.tree)
        if names and isinstance(cls, cst.ClassDef) and cls.name.value in classes
        for node in _inner_statements(cls)
        if isinstance(node, cst.Assign)
        for target in names & {dotted_name(each.target) for each in node.targets}
    )


def _inner_statements(cls: cst.ClassDef) -> Iterator[cst.CSTNode]:
    for node in cls.body.body:
        if isinstance(node, cst.FunctionDef):
            yield from statements(node.body)


def _before_batch(run: FailingRun, origin: LayoutStep | None) -> Iterator[Origin]:
    left = _MOST_STEPS
    while origin is not None and left:
        if origin.op is Op.COLLATE and origin.source is not None:
            place = origin.source.place
            yield place.span, f"the samples come from `{_short(place.code)}`"
            first = first_step(origin.source)
            if first is not origin.source:
                yield first.place.span, f"their data is `{_short(first.place.code)}`"
        if origin.op is Op.COLLATE:
            yield from _of_loader(run.objects.get(origin.place.node))
        origin, left = origin.source, left - 1


def _of_samples(run: FailingRun) -> Iterator[Origin]:
    """Yield the results of the datasets of the loaders and trainers in a failing line."""
    for each in run.values:
        if isinstance(each.value, LibraryObject):
            yield from _of_loader(each.value)
            yield from _results(each.value.arguments.get("train_dataset"), "__getitem__", _SAMPLE)


def _of_loader(loader: LibraryObject | None) -> Iterator[Origin]:
    if loader is not None and loader.kind == LOADER:
        data = loader.arguments.get("dataset")
        if isinstance(data, LibraryObject) and data.place is not None:
            yield data.place.span, "the dataset"
        yield from _results(loader.arguments.get("dataset"), "__getitem__", _SAMPLE)


def _of_length(run: FailingRun) -> Iterator[Origin]:
    """Yield the length of the dataset of a sample with an index out of range."""
    function = run.frame.function
    if not isinstance(function, cst.FunctionDef) or function.name.value != "__getitem__":
        return
    receivers = [each.value for each in run.values if each.place.code == "self"]
    for receiver in receivers[:1]:
        yield from _results(receiver, "__len__", "the length of the dataset is stated here")


def _of_writes(run: FailingRun, message: str) -> Iterator[Origin]:
    """Yield the writes in place, to tensors of the size in the message; the last ones first."""
    stated = _SHAPE.search(message)
    wanted = [int(size) for size in _NUMBERS.findall(stated[1])] if stated is not None else None
    for event in reversed(run.writes):
        known = [size.value for size in event.layout.sizes] if event.layout is not None else None
        if wanted is None or known is None or known == wanted:
            yield event.place.span, f"`{_short(event.place.code)}` writes in place"


def _of_counters(run: FailingRun) -> Iterator[Origin]:
    """Yield the loops with a counter used as an index in a failing line."""
    names = {each.place.node.value for each in run.values if isinstance(each.place.node, cst.Name)}
    for node in run.loops:
        if isinstance(node, cst.For) and isinstance(node.target, cst.Name) and node.target.value in names:
            code = _short(run.frame.module.code(node.iter))
            yield run.frame.module.span(node.iter), f"`{node.target.value}` counts over `{code}` here"
    for each in run.values:
        if each.place.code.startswith("range("):
            yield each.place.span, f"the index counts over `{_short(each.place.code)}`"


def _results(owner: Value | None, name: str, text: str) -> Iterator[Origin]:
    if not isinstance(owner, InstanceValue):
        return
    method = member(owner.cls, name)
    if isinstance(method, FunctionValue) and isinstance(method.node, cst.FunctionDef):
        for node in statements(method.node.body):
            if isinstance(node, cst.Return):
                yield Place(method.module, node).span, text


def _of_values(run: FailingRun) -> Iterator[Origin]:
    """Yield the layers of a failing line, and the origins of its tensors."""
    for each in run.values:
        if isinstance(each.value, LibraryObject):
            yield from _results(each.value.arguments.get("train_dataset"), "__getitem__", _SAMPLE)
            yield from _made(each.value, run.folder, 0)
    for each in run.values:
        yield from _computed(run, each)
        yield from _of_steps(each.value)
    for each in run.values:
        if isinstance(each.value, Constant) and isinstance(each.value.value, (str, int)):
            yield from assigned(each.place, repr(each.value.value))


def _of_steps(module: Value) -> Iterator[Origin]:
    """Yield the loss of a Lightning module, and the assignments before it."""
    method = member(module.cls, "training_step") if isinstance(module, InstanceValue) else None
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    yield from _results(module, "training_step", "the loss is returned here")
    found = list(statements(method.node.body))
    names = {name for node in found if isinstance(node, cst.Return) for name in _names_in(node)}
    for node in reversed(found):
        if isinstance(node, cst.Assign) and names & {dotted_name(each.target) for each in node.targets}:
            names |= _names_in(node.value)
            place = Place(method.module, node)
            yield place.span, f"`{_short(place.code)}` leads to it"


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
        yield step.place.span, f"`{_short(seen.place.code)}` is `{_short(step.place.code)}`"
        yield from _collected(step.place)
        yield from _before_batch(run, step)


def _collected(joined: Place) -> Iterator[Origin]:
    """Yield the additions to a list of `self` in a joined tensor, `torch.cat(self.targets)`."""
    lists = {
        f"{name}.append"
        for node in nodes(joined.node)
        if isinstance(node, cst.Attribute) and (name := dotted_name(node)) and name.startswith("self.")
    }
    classes = [each for each in enclosing(joined.module, joined.node) if isinstance(each, cst.ClassDef)]
    for statement in _inner_statements(classes[-1]) if lists and classes else ():
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            if dotted_name(statement.value.func) in lists:
                place = Place(joined.module, statement)
                yield place.span, f"`{_short(place.code)}` adds to the list"


def _short(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= 40 else f"{code[:39]}…"
