"""Places in the failing call: its arguments, and its result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile, search_for
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnosis.value_search import ValueSearch
from shapefix.diagnostics import Evidence, Role, Span

_CONVERSIONS = frozenset({"numpy", "array", "asarray"})


@search_for("unexpected-keyword")
def _unexpected_keyword(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the keyword in the failing call, or the key of a dictionary in `**settings`."""
    name = failure.fields["name"]
    calls = [(parsed, node) for parsed, node in failure.line() if isinstance(node, ast.Call)]
    owner = _owner(failure.fields["function"])
    named = [(parsed, call) for parsed, call in calls if last_name(call.func) == owner] or calls
    for parsed, call in named:
        for keyword in call.keywords:
            if keyword.arg == name:
                yield parsed.place(keyword.value, f"`{name}` is passed here")
    yield from _keys_of_splats(failure, named, name)


def _keys_of_splats(
    failure: ExplainedFailure, calls: list[tuple[ParsedFile, ast.Call]], name: str
) -> Iterator[Evidence]:
    splats = [keyword for _, call in calls for keyword in call.keywords if keyword.arg is None]
    if not splats:
        return
    for parsed in failure.files(name):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    if isinstance(key, ast.Constant) and key.value == name:
                        yield parsed.place(key, f"`{name}` is a key here")


def _owner(function: str) -> str:
    """Return `Linear` for `Linear.__init__`, `step` for `Scheduler.step`."""
    first, _, last = function.rpartition(".")
    return first.rpartition(".")[2] if last in ("__init__", "__new__") else last


@search_for("missing-arguments")
def _missing_arguments(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the call of the failing line without the arguments."""
    owner = _owner(failure.fields["function"])
    is_of_class = failure.fields["name"].strip("'") == "self"
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) == owner:
            if is_of_class and isinstance(node.func, ast.Attribute):
                yield from _classes_passed(failure, node.func.value)
            yield parsed.place(node, f"`{failure.fields['name']}` is not passed here")


def _classes_passed(failure: ExplainedFailure, receiver: ast.expr) -> Iterator[Evidence]:
    """Yield the places of a class in the place of an instance."""
    search = ValueSearch(failure.frames, failure.folder)
    search.follow(len(failure.frames) - 1, receiver)
    for step in search.steps:
        text = f"`{step.name}` is a class here: an instance is missing, as `Net()`"
        yield Evidence(Span(step.path, step.row, 1, step.row, 10_000), text, Role.CAUSE, text)


@search_for("not-enough-values", "too-many-values")
def _saved_tensors(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the calls of `save_for_backward` for a failing line with `ctx.saved_tensors`."""
    reads = [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.Attribute) and node.attr == "saved_tensors"
    ]
    for parsed, node in reads[:1]:
        for cls in ast.walk(parsed.tree):
            if isinstance(cls, ast.ClassDef) and cls.lineno < node.lineno <= (cls.end_lineno or 0):
                for call in ast.walk(cls):
                    if isinstance(call, ast.Call) and last_name(call.func) == "save_for_backward":
                        count = len(call.args)
                        what = "1 tensor is" if count == 1 else f"{count} tensors are"
                        yield parsed.place(call, f"{what} saved here")


@search_for("numpy-of-gpu")
def _numpy_of_gpu(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the conversions to NumPy in the failing line."""
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) in _CONVERSIONS:
            yield parsed.place(node, "`.cpu()` is missing here")


@search_for("result-tuple-written")
def _tuple_results(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the calls with the name of a tuple's type in the failing line."""
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) == failure.fields["name"]:
            yield parsed.place(node, "this returns values and indices")


@search_for("sklearn-lengths", "sklearn-score-types")
def _assigned_arguments(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the arguments of the failing call, and their assignments."""
    search = ValueSearch(failure.frames, failure.folder)
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            yield parsed.place(node, "both are compared here")
            for each in node.args:
                search.follow(len(failure.frames) - 1, each)
            break
    for step in search.steps:
        text = f"`{step.name}` is set here"
        yield Evidence(Span(step.path, step.row, 1, step.row, 10_000), text, Role.CAUSE, text)
