"""Find the function of the project named by an error about its arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.project_frames import ProjectFrame, searched_sources
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.diagnostics import Span
from shapefix.engine.parse_limits import LARGEST
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable

OF_CALLS = frozenset({"missing-arguments", "too-many-arguments", "unexpected-keyword", "repeated-argument"})
"""The error pages about the arguments of a function."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class CalledDefinition:
    """A function of the project: its qualified name, the place of its header, signature and parameters."""

    name: str
    span: Span
    signature: str
    parameters: tuple[str, ...]


def called_definition(
    explanation: MessageExplanation | None, frames: Sequence[ProjectFrame], folder: str
) -> CalledDefinition | None:
    """Return the function with refused arguments, if only one of the project fits the message."""
    if explanation is None or explanation.name not in OF_CALLS or not frames:
        return None
    name = explanation.fields["function"]
    found: dict[Span, CalledDefinition] = {}
    paths = dict.fromkeys(frame.span.path for frame in reversed(frames) if not frame.is_missing)
    for path in (*paths, *searched_sources(folder)):
        for each in _definitions(path, name, explanation):
            found.setdefault(each.span, each)
    return next(iter(found.values())) if len(found) == 1 else None


def _definitions(path: str, name: str, explanation: MessageExplanation) -> Iterator[CalledDefinition]:
    try:
        whole = whole_text(path)
        last = name.rpartition(".")[2]
        is_there = f"def {last}" in whole.text and len(whole.text) <= LARGEST
        tree = ast.parse(whole.text if is_there else "")
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for qualified, node in _functions(tree, ""):
        # Before Python 3.10 messages have the last part of the name only.
        if qualified in (name, f"{name}") or ("." not in name and qualified.rpartition(".")[2] == name):
            if _refuses(node, explanation):
                yield CalledDefinition(
                    qualified, _header(whole, node), ast.unparse(node.args), _parameters(node)
                )


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield the functions with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _refuses(node: _Function, explanation: MessageExplanation) -> bool:
    """Whether the parameters of a function fit the message about its arguments."""
    arguments = node.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    named = {each.arg for each in (*ordered, *arguments.kwonlyargs)}
    name = explanation.fields.get("name", "")
    if explanation.name == "repeated-argument":
        return name in named
    if explanation.name == "unexpected-keyword":
        return name not in named and arguments.kwarg is None
    if explanation.name == "missing-arguments":
        return all(
            part.strip(" '") in named for part in name.replace(" and ", ",").split(",") if part.strip(" '")
        )
    return arguments.vararg is None and explanation.fields["want"].split()[-1] == str(len(ordered))


def _parameters(node: _Function) -> tuple[str, ...]:
    arguments = node.args
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _header(whole: WholeText, node: _Function) -> Span:
    path, row = whole.place(node.lineno)
    last = max(node.lineno, node.body[0].lineno - 1)
    line = whole.text.split("\n")[node.lineno - 1]
    end = row + last - node.lineno if last == node.lineno else row
    return Span(path, row, node.col_offset + 1, end, len(line) + 1)
