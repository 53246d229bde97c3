"""Guard one file: analyze its functions, and write or remove asserts, annotations or comments."""

from __future__ import annotations

import ast
import os
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from shapefix.diagnostics import Failure
from shapefix.engine.interpretation import ProjectModules, deep_recursion, parse_failure
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.repairs import FileRepair
from shapefix.engine.source_overlay import real_path
from shapefix.engine.watchdog import FILE_SECONDS, Watchdog
from shapefix.guards.annotations import Annotation, annotations_of, with_annotations, without_annotations
from shapefix.guards.dependencies import depends_on
from shapefix.guards.find import FunctionGuards, GuardFinder
from shapefix.guards.fixed_layers import ProjectTexts
from shapefix.guards.formatting import CodeStyle, code_style
from shapefix.guards.lines import first_row, guard_rows, inserted, rows_of, same_code, without
from shapefix.guards.memory.handlers import with_handlers
from shapefix.guards.memory.retries import fitting_rows
from shapefix.guards.memory.rows import without_handlers
from shapefix.guards.needs import Need
from shapefix.guards.shape_comments import (
    ShapeComment,
    comments_for,
    fitting,
    own_comments,
    with_comments,
    without_comments,
)
from shapefix.interpreter.budget import OutOfBudget
from shapefix.interpreter.modules import Module
from shapefix.light_dataclasses import dataclass
from shapefix.sizes.general import SizeFinder
from shapefix.sizes.run import READING
from shapefix.sizes.targets import Target, UnknownTarget
from shapefix.sources.project import Project, project_root
from shapefix.sources.text import SourceText, Unreadable, read_source


class GuardFailed(Exception):
    """The file cannot be read, parsed or guarded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


STYLES = ("asserts", "jaxtyping", "comments", "oom")
"""What guards are: asserts, annotations of jaxtyping, comments, or handlers of exhausted memory."""


@dataclass(frozen=True)
class PlacedGuard:
    """A guard of the new text: its function, the row of the function's `def`, and the fields of its entry."""

    function: str
    row: int
    entry: Mapping[str, str]


@dataclass(frozen=True)
class GuardedFile:
    """The guards of a file, its change, and notes on omitted ones."""

    repair: FileRepair
    guards: tuple[PlacedGuard, ...]
    removed: int
    notes: tuple[str, ...] = ()


def guarded(path: str, name: str, remove: bool, style: str | None = None) -> GuardedFile:
    """Return the file with guards for the function or class called name, or for all; with remove, without.

    Without style, asserts are written, and guards of every style removed. Raises GuardFailed and
    UnknownTarget.
    """
    if os.path.isdir(path):  # noqa: PTH112
        raise UnknownTarget(f"{path} is a folder; pass a file, or a class in a file: model.py:UNet")
    try:
        source = read_source(real_path(path))
        check_parse_limits(source)
    except Unreadable as error:
        raise GuardFailed(Failure(path, error.message, error.row, error.column)) from None
    return guarded_text(source, name, remove, style)


def guarded_text(source: SourceText, name: str, remove: bool, style: str | None = None) -> GuardedFile:
    """Return a text with guards as guarded() does for a file. Raises GuardFailed and UnknownTarget."""
    try:
        with deep_recursion(), Watchdog().stopping_after(FILE_SECONDS):
            return _guarded(source, name, remove, style)
    except OutOfBudget as stop:
        message = f"takes too much {stop.resource.value} to be analyzed"
        raise GuardFailed(Failure(source.path, message)) from None
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise GuardFailed(parse_failure(source, error)) from None
    except (SyntaxError, tokenize.TokenError) as error:
        raise GuardFailed(Failure(source.path, f"cannot be parsed: {error.args[0]}")) from None


def _guarded(source: SourceText, name: str, remove: bool, style: str | None) -> GuardedFile:
    if remove:
        return _removed(source, name, STYLES if style is None else (style,))
    if style == "comments":
        return _commented(source, name)
    if style == "jaxtyping":
        return _annotated(source, name)
    if style == "oom":
        return _handled(source, name)
    return _asserted(source, name)


def _removed(source: SourceText, name: str, styles: Collection[str]) -> GuardedFile:
    old = source.text
    if name and not _is_defined(old, name):
        raise UnknownTarget(f"no class or function named {name!r}")
    number, new = 0, old
    if "comments" in styles:
        comments = _own_comments(new, name)
        number, new = number + len(comments), without_comments(new, comments)
    if "asserts" in styles:
        own = _own(new, name)
        number, new = number + len(own), without(new, own)
    if "jaxtyping" in styles:
        rows = {row for rows in _rows_named(new, name) for row in rows} if name else None
        new, own_annotations = without_annotations(new, rows)
        number += own_annotations
    if "oom" in styles and not name:
        new, own_handlers = without_handlers(new)
        number += own_handlers
    _require_parsable(source, new)
    return _made(source, new, (), number)


def _asserted(source: SourceText, name: str) -> GuardedFile:
    old = source.text
    own = _own(old, name)
    base = without(old, own)
    _require_parsable(source, base)
    finder_texts = ProjectTexts.around(source.path)
    length = _style(source).line_length
    guards: dict[int, tuple[Need, ...]] = {}
    placed: list[PlacedGuard] = []
    for module, function in _found(replace(source, text=base), name, finder_texts):
        row = module.span(function.node.name).row
        at = first_row(base, row) if function.needs else None
        if at is not None:
            guards[at] = function.needs
            placed += (
                PlacedGuard(function.name, row, {"condition": need.condition, "message": need.message})
                for need in function.needs
            )
    new = inserted(base, guards, length)
    if same_code(old, new):
        new = old
    return _made(source, new, tuple(placed), len(own), _notes(finder_texts, "asserts"))


def _handled(source: SourceText, name: str) -> GuardedFile:
    """Return a file with handlers of exhausted memory; those of other functions are kept up to date, too."""
    base, own = without_handlers(source.text)
    _require_parsable(source, base)
    if name and not _is_defined(base, name):
        raise UnknownTarget(f"no class or function named {name!r}")
    made = with_handlers(base, name, fitting_rows(source.text))
    new = made.text
    if own and ast.dump(ast.parse(new)) == ast.dump(ast.parse(source.text)):
        # A formatter has changed the layout.
        new = source.text
    placed = tuple(
        PlacedGuard(each.function, each.row, {"handler": each.kind, "row": str(each.row)})
        for each in made.handlers
    )
    return _made(source, new, placed, own, made.notes)


def _annotated(source: SourceText, name: str) -> GuardedFile:
    old = source.text
    if not depends_on(source.path, project_root(source.path), "jaxtyping"):
        message = "the project does not depend on jaxtyping; add it, or use --style asserts or comments"
        raise GuardFailed(Failure(source.path, message))
    rows = {row for rows in _rows_named(old, name) for row in rows} if name else None
    base, own = without_annotations(old, rows)
    texts = ProjectTexts.around(source.path)
    wanted: dict[int, tuple[str, tuple[Annotation, ...]]] = {}
    for module, function in _found(replace(source, text=base), name, texts):
        wanted[module.span(function.node.name).row] = (function.name, annotations_of(function.needs))
    made = with_annotations(base, wanted, _style(source))
    placed = [
        PlacedGuard(wanted[row][0], row, {"parameter": each.parameter, "type": each.kind, "axes": each.axes})
        for row, several in made.written.items()
        for each in several
    ]
    return _made(source, made.text, tuple(placed), own, [*_notes(texts, "annotations"), *made.notes])


def _notes(texts: ProjectTexts, what: str) -> list[str]:
    if texts.obstacle is not None:
        return [f"no {what}: {texts.obstacle}"]
    if texts.layer_obstacle is not None:
        return [f"no {what} on layers: {texts.layer_obstacle}"]
    return []


def _commented(source: SourceText, name: str) -> GuardedFile:
    own = _own_comments(source.text, name)
    base = replace(source, text=without_comments(source.text, own))
    modules, module = _parsed(base)
    with _finder(modules, module, ProjectTexts(module.path, ())) as finder:
        targets = _targets(finder, module, name)
    comments: list[ShapeComment] = []
    placed: list[PlacedGuard] = []
    style = _style(source)
    for found in SizeFinder(modules, module).find(targets):
        row = module.span(found.target.node.name).row
        new = fitting(base.text, list(comments_for(base.text, module, found)), style)
        comments += new
        placed += (
            PlacedGuard(found.target.name, row, {"row": str(each.row), "comment": each.text}) for each in new
        )
    text = with_comments(base.text, comments, style)
    if own and _lined_up(text) == _lined_up(source.text):
        # A formatter has moved the comments.
        text = source.text
    return _made(source, text, tuple(placed), len(own))


def _lined_up(text: str) -> list[str]:
    own = own_comments(text)
    return [
        row if number not in own else f"{row[: own[number]]}  {row[own[number] :].strip()}"
        for number, row in enumerate(rows_of(text), 1)
    ]


def _own_comments(text: str, name: str) -> dict[int, int]:
    found = own_comments(text)
    inside = _rows_named(text, name) if name and found else []
    return {row: at for row, at in found.items() if not name or any(row in rows for rows in inside)}


def _style(source: SourceText) -> CodeStyle:
    return code_style(source.path, project_root(source.path))


def _made(
    source: SourceText, new: str, guards: tuple[PlacedGuard, ...], removed: int, notes: Sequence[str] = ()
) -> GuardedFile:
    return GuardedFile(FileRepair(source, replace(source, text=new), (), ()), guards, removed, tuple(notes))


def _parsed(source: SourceText) -> tuple[ProjectModules, Module]:
    modules = ProjectModules(Project(project_root(source.path)), read_source, None, lines=1_000_000)
    return modules, modules.module(source)


def _found(source: SourceText, name: str, texts: ProjectTexts) -> list[tuple[Module, FunctionGuards]]:
    """Return the guards of the functions of a text, and the modules of these functions."""
    modules, module = _parsed(source)
    with _finder(modules, module, texts) as finder:
        return [(module, finder.find(target)) for target in _targets(finder, module, name)]


@contextmanager
def _finder(modules: ProjectModules, module: Module, texts: ProjectTexts) -> Iterator[GuardFinder]:
    finder = GuardFinder(modules, module, modules.files_with(module, READING), texts)
    try:
        yield finder
    finally:
        finder.close()


def _targets(finder: GuardFinder, module: Module, name: str) -> list[Target]:
    return [target for target in finder.targets(name) if _is_here(target, module)]


def _is_here(target: Target, module: Module) -> bool:
    """Check that a function is in the file itself, not a base class's in another."""
    return target.function.module is module


def _own(text: str, name: str) -> list[range]:
    """Return the rows of the guards in a text; with a name, those of this function or class only."""
    found = guard_rows(text)
    if not found or not name:
        return found
    inside = _rows_named(text, name)
    return [guard for guard in found if any(guard[0] in rows for rows in inside)]


def _is_defined(text: str, name: str) -> bool:
    return bool(_rows_named(text, name))


def _rows_named(text: str, name: str) -> list[range]:
    nodes: list[ast.AST] = [ast.parse(text)]
    parts = name.split(".")
    for part in parts:
        nodes = [
            each
            for node in nodes
            for each in getattr(node, "body", ())
            if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and each.name == part
        ]
    if len(parts) == 1:
        # The name of a class means its forward.
        forwards: list[ast.AST] = [
            each
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for each in node.body
            if isinstance(each, ast.FunctionDef) and each.name == "forward"
        ]
        nodes = [node for node in nodes if not isinstance(node, ast.ClassDef)] + forwards
    return [range(node.lineno, (node.end_lineno or 0) + 1) for node in nodes if isinstance(node, ast.stmt)]


def _require_parsable(source: SourceText, text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        if _parses(source.text):
            message = "a function consists of guards only; remove it, or give it a body"
            raise GuardFailed(Failure(source.path, message, error.lineno, error.offset)) from None
        raise


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
