"""Annotations of jaxtyping for parameters: write, recognize and remove them."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence

from shapefix.guards.formatting import CodeStyle
from shapefix.guards.lines import MARKER, rows_of, tokens_of
from shapefix.guards.needs import Need
from shapefix.light_dataclasses import dataclass
from shapefix.repair.edits import newline_of

_OWN = re.compile(re.escape(MARKER) + r" (?P<names>\w+(?:: [\w.]+)?(?:, \w+(?:: [\w.]+)?)*)$")
"""The parameters with an annotation of shapefix, each with its earlier annotation."""
_IMPORT = re.compile(r"from jaxtyping import [\w, ]+  " + re.escape(MARKER) + r"\s*$")
_TENSORS = frozenset({"Tensor", "torch.Tensor"})

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Annotation:
    """The annotation of a parameter: a type of jaxtyping for its dtype, and the names of its axes."""

    parameter: str
    kind: str
    axes: str


@dataclass(frozen=True)
class AnnotatedText:
    """A text with annotations, those of each function by the row of its `def`, and notes on others."""

    text: str
    written: Mapping[int, tuple[Annotation, ...]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Edit:
    """A replacement of a part of a row; columns count characters."""

    row: int
    start: int
    end: int
    text: str


def annotations_of(needs: Sequence[Need]) -> tuple[Annotation, ...]:
    """Return annotations for some needs: one for a parameter, and no axis has two meanings."""
    found: dict[str, Annotation] = {}
    taken: set[str] = set()
    for need in needs:
        if not need.axes or any(name in found for name in need.axes):
            continue
        names = {word.strip("*") for axes in need.axes.values() for word in axes.split() if "{" not in word}
        for name, axes in need.axes.items():
            renamed = axes if names.isdisjoint(taken) else _anonymous(axes)
            found[name] = Annotation(name, "Float" if need.is_float else "Shaped", renamed)
        if len(need.axes) > 1 and not names.isdisjoint(taken):
            # Shared axes need their names.
            for name in need.axes:
                del found[name]
        taken |= names
    return tuple(found.values())


def _anonymous(axes: str) -> str:
    return " ".join("..." if word[0] == "*" else word if "{" in word else "_" for word in axes.split())


def has_annotations(text: str) -> bool:
    """Check for annotations of shapefix in a text."""
    return bool(_own_headers(text))


def without_annotations(text: str, rows: Collection[int] | None = None) -> tuple[str, int]:
    """Return a text without the annotations of shapefix, in the given rows or in all, and their number."""
    headers = _own_headers(text)
    if not headers and MARKER not in text:
        return text, 0
    lines = rows_of(text)
    edits: list[_Edit] = []
    number = kept = 0
    for function in _functions(text):
        comment = headers.get(_header_end(function, lines))
        if comment is None:
            continue
        match = _OWN.match(comment.string)
        if match is None or (rows is not None and function.lineno not in rows):
            kept += 1
            continue
        before = dict(part.partition(": ")[::2] for part in match["names"].split(", "))
        for arg in _arguments(function):
            if arg.arg in before and isinstance(arg.annotation, ast.Subscript):
                edits.append(_restored(arg, before[arg.arg], lines))
                number += 1
        row, column = comment.start
        code = lines[row - 1][:column].rstrip(" ")
        edits.append(_Edit(row, len(code), column + len(comment.string), ""))
    made = rows_of(_edited(lines, edits))
    if not kept:
        made = [row for row in made if not _IMPORT.match(row)]
    return "".join(made), number


def _restored(arg: ast.arg, before: str, lines: Sequence[str]) -> _Edit:
    annotation = arg.annotation
    assert annotation is not None
    end = _column(lines, annotation.end_lineno or 0, annotation.end_col_offset or 0)
    if before:
        start = _column(lines, annotation.lineno, annotation.col_offset)
        return _Edit(annotation.lineno, start, end, before)
    start = _column(lines, arg.lineno, arg.col_offset) + len(arg.arg)
    return _Edit(arg.lineno, start, end, "")


def with_annotations(
    text: str, wanted: Mapping[int, tuple[str, tuple[Annotation, ...]]], style: CodeStyle
) -> AnnotatedText:
    """Return a text with annotations for the functions with a `def` in some rows; text has none."""
    lines = rows_of(text)
    tree = ast.parse(text)
    tensor = _tensor_name(tree)
    edits: list[_Edit] = []
    written: dict[int, tuple[Annotation, ...]] = {}
    notes: list[str] = []
    kinds: set[str] = set()
    comments = {token.start[0] for token in tokens_of(rows_of(text)) if token.type == tokenize.COMMENT}
    for function in _functions(text):
        name, several = wanted.get(function.lineno, ("", ()))
        end = _header_end(function, lines)
        last = lines[end - 1].rstrip("\r\n") if end else ""
        if not several or not last.endswith(":") or end in comments:
            continue
        new: list[_Edit] = []
        marks: list[str] = []
        for annotation in several:
            edit, mark = _added(function, annotation, lines, tree, tensor)
            if edit is not None:
                new.append(edit)
                marks.append(mark)
        if not new:
            continue
        widest = max(style.width(row) for row in rows_of(_edited(lines, new))[function.lineno - 1 : end])
        if widest - 1 > style.line_length:
            notes.append(
                f"{name} gets no annotations: its header would be longer than {style.line_length} columns"
            )
            continue
        edits += [*new, _Edit(end, len(last), len(last), f"  {MARKER} {', '.join(marks)}")]
        named = [mark.partition(":")[0] for mark in marks]
        written[function.lineno] = tuple(each for each in several if each.parameter in named)
        kinds |= {each.kind for each in written[function.lineno]}
    missing = sorted(kind for kind in kinds if _bound(tree, "jaxtyping", kind) is None)
    if missing:
        row = _import_row(tree)
        end_of_row = newline_of(text)
        edits.append(_Edit(row, 0, 0, f"from jaxtyping import {', '.join(missing)}  {MARKER}{end_of_row}"))
    return AnnotatedText(_edited(lines, edits), written, tuple(notes))


def _added(
    function: FunctionNode, annotation: Annotation, lines: Sequence[str], tree: ast.Module, tensor: str | None
) -> tuple[_Edit | None, str]:
    """Return the edit for a parameter, and its part of the comment."""
    arg = next((each for each in _arguments(function) if each.arg == annotation.parameter), None)
    if arg is None or arg.arg in _with_default(function):
        return None, ""
    kind = _bound(tree, "jaxtyping", annotation.kind) or annotation.kind
    if arg.annotation is None:
        if tensor is None:
            return None, ""
        end = _column(lines, arg.lineno, arg.col_offset) + len(arg.arg)
        return _Edit(arg.lineno, end, end, f': {kind}[{tensor}, "{annotation.axes}"]'), arg.arg
    before = ast.unparse(arg.annotation)
    if before not in _TENSORS:
        return None, ""
    start = _column(lines, arg.annotation.lineno, arg.annotation.col_offset)
    return (
        _Edit(arg.annotation.lineno, start, start + len(before), f'{kind}[{before}, "{annotation.axes}"]'),
        f"{arg.arg}: {before}",
    )


def _with_default(function: FunctionNode) -> set[str]:
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    found = {each.arg for each in positional[len(positional) - len(args.defaults) :]}
    named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return found | {each.arg for each, default in named if default is not None}


def _tensor_name(tree: ast.Module) -> str | None:
    """Return the name of the class Tensor at the top level of a file."""
    return _bound(tree, "torch", "Tensor")


def _bound(tree: ast.Module, module: str, name: str) -> str | None:
    """Return the expression of a member of a module, by the imports at the top level."""
    found: str | None = None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
            for alias in node.names:
                if alias.name == name:
                    return alias.asname or name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == module:
                    found = f"{alias.asname or module}.{name}"
    return found


def _import_row(tree: ast.Module) -> int:
    """Return the row of the first `from torch import …`, else the one below `import torch`."""
    below = 1
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            return node.lineno
        if isinstance(node, ast.Import) and any(
            each.name.partition(".")[0] == "torch" for each in node.names
        ):
            below = (node.end_lineno or node.lineno) + 1
    return below


def _own_headers(text: str) -> dict[int, tokenize.TokenInfo]:
    if MARKER not in text:
        return {}
    return {
        token.start[0]: token
        for token in tokens_of(rows_of(text))
        if token.type == tokenize.COMMENT and _OWN.match(token.string)
    }


def _functions(text: str) -> Iterator[FunctionNode]:
    return (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def _arguments(function: FunctionNode) -> list[ast.arg]:
    args = function.args
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def _header_end(function: FunctionNode, lines: Sequence[str]) -> int:
    """Return the last row of a header, 0 if the body begins in it."""
    parts = [*ast.walk(function.args), *([] if function.returns is None else [function.returns])]
    row = max([function.lineno, *(getattr(each, "end_lineno", None) or 0 for each in parts)])
    first = function.body[0].lineno
    while row < first:
        code = lines[row - 1].partition(MARKER)[0].rstrip()
        if code.endswith(":"):
            return row
        row += 1
    return 0


def _column(lines: Sequence[str], row: int, offset: int) -> int:
    """Return the character of an offset in bytes."""
    return len(lines[row - 1].encode("utf-8")[:offset].decode("utf-8", "ignore"))


def _edited(lines: Sequence[str], edits: Sequence[_Edit]) -> str:
    made = list(lines)
    for edit in sorted(edits, key=lambda each: (each.row, each.start), reverse=True):
        row = made[edit.row - 1]
        made[edit.row - 1] = row[: edit.start] + edit.text + row[edit.end :]
    return "".join(made)
