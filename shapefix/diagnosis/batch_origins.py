"""Origins of batches: the loader, its dataset, the columns, the parts of a sample."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.diagnosis.failing_runs import LOADER, FailingRun
from shapefix.diagnosis.number_origins import Origin, first_step, nodes, statements
from shapefix.diagnostics import Span
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.modules import Place, dotted_name
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import FunctionValue, InstanceValue, LibraryObject, Value
from shapefix.library.data.datasets.objects import ROWS
from shapefix.tensors.ops import Op

SAMPLE = "a sample is returned here"
_MOST_STEPS = 40
_CODE = 40
_TABLES = frozenset({"DataFrame", "Dataset", "from_dict", "DatasetDict"})
"""Constructors of tables with the keys of a dictionary as columns."""


def of_samples(run: FailingRun, message: str) -> Iterator[Origin]:
    """Yield the results of the datasets of the loaders and trainers in a failing line."""
    for each in run.values:
        if isinstance(each.value, LibraryObject):
            for name in ("dataset", "train_dataset"):
                if "NoneType" in message:
                    yield from _of_none(each.value.arguments.get(name))
            yield from of_loader(each.value)
            yield from of_results(each.value.arguments.get("train_dataset"), "__getitem__", SAMPLE)


def of_rows(run: FailingRun) -> Iterator[Origin]:
    """Yield the columns of the datasets and rows in a failing line."""
    settings = {id(node) for each in run.values for node in _settings(each.place.node)}
    for each in run.values:
        if isinstance(each.value, DictValue):
            if id(each.place.node) not in settings:
                yield from _of_columns(each.value)
        elif isinstance(each.value, LibraryObject) and ROWS in each.value.fields:
            yield from of_dataset(each.value)


def _settings(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the arguments of a call, except those of the constructor of a table."""
    called = (dotted_name(node.func) or "").rpartition(".")[2] if isinstance(node, cst.Call) else ""
    if isinstance(node, cst.Call) and called not in _TABLES:
        yield from (each.value for each in node.args if not each.star)


def of_loops(run: FailingRun) -> Iterator[Origin]:
    """Yield the samples of the innermost loop over a loader, and the data they are taken from."""
    for loop in run.outer_loops:
        if not isinstance(loop, cst.For):
            continue
        loaders = [run.objects[node] for node in nodes(loop.iter) if node in run.objects]
        for loader in loaders:
            data = loader.arguments.get("dataset") if loader.kind == LOADER else None
            yield from of_loader(loader)
            yield from _of_attributes(data)
        if any(loader.kind == LOADER for loader in loaders):
            return


def before_batch(run: FailingRun, origin: LayoutStep | None) -> Iterator[Origin]:
    left = _MOST_STEPS
    while origin is not None and left:
        if origin.op is Op.COLLATE and origin.source is not None:
            place = origin.source.place
            yield place.span, f"the samples come from `{abbreviated(place.code)}`"
            first = first_step(origin.source)
            if first is not origin.source:
                yield first.place.span, f"their data is `{abbreviated(first.place.code)}`"
        if origin.op is Op.COLLATE:
            yield from of_loader(run.objects.get(origin.place.node))
        origin, left = origin.source, left - 1


def of_loader(loader: LibraryObject | None) -> Iterator[Origin]:
    if loader is not None and loader.kind == LOADER:
        yield from _of_collator(loader.arguments.get("collate_fn"))
        data = loader.arguments.get("dataset")
        yield from of_dataset(data)
        yield from of_results(data, "__getitem__", SAMPLE)


def _of_collator(function: Value | None) -> Iterator[Origin]:
    """Yield the results of a function for batches."""
    if isinstance(function, FunctionValue) and isinstance(function.node, cst.FunctionDef):
        for node in statements(function.node.body):
            if isinstance(node, cst.Return):
                yield Place(function.module, node).span, "a batch is returned here"


def of_dataset(data: Value | None) -> Iterator[Origin]:
    """Yield the creation of a library's dataset, and the places of its columns."""
    if not isinstance(data, LibraryObject) or data.place is None:
        return
    rows = data.fields.get(ROWS)
    if isinstance(rows, DictValue):
        yield from _of_columns(rows)
    yield data.place.span, "the dataset"


def _of_columns(rows: DictValue) -> Iterator[Origin]:
    columns: dict[Span, list[str]] = {}
    for name, place in rows.written.items():
        if isinstance(name, str):
            columns.setdefault(place.span, []).append(f"`{name}`")
    for span, names in columns.items():
        yield span, f"{'columns' if len(names) > 1 else 'column'} {', '.join(names)}"


def _of_none(data: Value | None) -> Iterator[Origin]:
    """Yield the returns of `None` in `__getitem__` and the methods it calls."""
    if not isinstance(data, InstanceValue):
        return
    waiting, seen = ["__getitem__"], set[str]()
    while waiting:
        name = waiting.pop(0)
        method = member(data.cls, name)
        if name in seen or not isinstance(method, FunctionValue):
            continue
        seen.add(name)
        if not isinstance(method.node, cst.FunctionDef):
            continue
        for node in statements(method.node.body):
            if isinstance(node, cst.Return) and (node.value is None or dotted_name(node.value) == "None"):
                yield Place(method.module, node).span, f"`{name}` returns `None` here"
            for each in nodes(node):
                called = dotted_name(each.func) if isinstance(each, cst.Call) else ""
                if called and called.startswith("self."):
                    waiting.append(called.removeprefix("self."))


def _of_attributes(data: Value | None) -> Iterator[Origin]:
    """Yield the assignments of the attributes in a dataset's samples."""
    method = member(data.cls, "__getitem__") if isinstance(data, InstanceValue) else None
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    used = {
        name for node in nodes(method.node.body) if (name := dotted_name(node)) and name.startswith("self.")
    }
    classes = [each for each in enclosing(method.module, method.node) if isinstance(each, cst.ClassDef)]
    for statement in inner_statements(classes[-1]) if classes else ():
        if isinstance(statement, cst.Assign) and used & {
            dotted_name(each.target) for each in statement.targets
        }:
            if not isinstance(statement.value, cst.Name):
                place = Place(method.module, statement)
                yield place.span, f"the samples are taken from `{abbreviated(place.code)}`"


def of_results(owner: Value | None, name: str, text: str) -> Iterator[Origin]:
    if not isinstance(owner, InstanceValue):
        return
    method = member(owner.cls, name)
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    names: set[str] = set()
    for node in statements(method.node.body):
        if isinstance(node, cst.Return):
            yield Place(method.module, node).span, text
            names |= {each.value for each in nodes(node) if isinstance(each, cst.Name)}
    for node in statements(method.node.body):
        if isinstance(node, cst.Assign) and names & {dotted_name(each.target) for each in node.targets}:
            place = Place(method.module, node)
            yield place.span, f"`{abbreviated(place.code)}` is a part of it"


def inner_statements(cls: cst.ClassDef) -> Iterator[cst.CSTNode]:
    for node in cls.body.body:
        if isinstance(node, cst.FunctionDef):
            yield from statements(node.body)


def abbreviated(code: str) -> str:
    """Return code in one short row."""
    code = " ".join(code.split())
    return code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
