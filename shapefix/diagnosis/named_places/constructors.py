"""Places of constructors without a call of `Module.__init__`, or with a late one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import (
    ExplainedFailure,
    ParsedFile,
    classes_named,
    parsed_file,
    search_for,
)
from shapefix.diagnostics import Evidence
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class Constructor:
    """The `__init__` of a class, with its calls of other constructors."""

    parsed: ParsedFile
    owner: str
    node: ast.FunctionDef
    calls: tuple[ast.Call, ...]


@search_for("module-not-initialized")
def _uninitialized(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the constructor without a call of the next one, or the calls after the failing line."""
    chain = constructors(failure)
    for each in chain:
        if not each.calls:
            text = f"`{each.owner}.__init__` does not call `super().__init__()`"
            yield each.parsed.place(each.node, text)
            return
    for each in chain[:1]:
        for call in each.calls:
            if each.parsed.whole.place(call.lineno)[1] > failure.frames[-1].span.row:
                yield each.parsed.place(call, "this call comes too late")


def constructors(failure: ExplainedFailure) -> tuple[Constructor, ...]:
    """Return the constructors of the class around the failing line, and of its bases in the project.

    Those after the first one without a call of another are left out.
    """
    frame = failure.frames[-1]
    own = parsed_file(frame.span.path)
    row = frame.span.row + (own.whole.rows_before if own is not None else 0)
    waiting = [
        node.name
        for node in (ast.walk(own.tree) if own is not None else ())
        if isinstance(node, ast.ClassDef) and node.lineno <= row <= (node.end_lineno or 0)
    ]
    found: list[Constructor] = []
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        classes = [] if name in seen else list(classes_named(failure.frames, failure.folder, name))
        seen.add(name)
        if len(classes) != 1:
            continue
        parsed, cls = classes[0]
        for each in cls.body:
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                calls = [node for node in ast.walk(each) if isinstance(node, ast.Call)]
                inner = tuple(call for call in calls if ast.unparse(call.func).endswith(".__init__"))
                found.append(Constructor(parsed, name, each, inner))
        if found and not found[-1].calls:
            break
        waiting += [ast.unparse(base).rpartition(".")[2] for base in cls.bases]
    return tuple(found)
