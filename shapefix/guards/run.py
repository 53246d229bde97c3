"""Guard one file: analyze its functions, and write or remove the asserts."""

from __future__ import annotations

import ast
import os
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from shapefix.diagnostics import Failure
from shapefix.engine.interpretation import ProjectModules, deep_recursion, parse_failure
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.repairs import FileRepair
from shapefix.engine.source_overlay import real_path
from shapefix.engine.watchdog import FILE_SECONDS, Watchdog
from shapefix.guards.find import FunctionGuards, GuardFinder
from shapefix.guards.fixed_layers import ProjectTexts
from shapefix.guards.lines import first_row, guard_rows, inserted, same_code, without
from shapefix.guards.needs import Need
from shapefix.interpreter.budget import OutOfBudget
from shapefix.interpreter.modules import Module
from shapefix.shapes.run import READING
from shapefix.shapes.targets import Target, UnknownTarget
from shapefix.sources.project import Project, project_root
from shapefix.sources.text import SourceText, Unreadable, read_source


class GuardFailed(Exception):
    """The file cannot be read, parsed or guarded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class PlacedGuard:
    """A guard of the new text: its function, and the row of the function's `def` in the old text."""

    function: str
    row: int
    need: Need


@dataclass(frozen=True)
class GuardedFile:
    """The guards of a file, its change, and notes on omitted ones."""

    repair: FileRepair
    guards: tuple[PlacedGuard, ...]
    removed: int
    notes: tuple[str, ...] = ()


def guarded(path: str, name: str, remove: bool) -> GuardedFile:
    """Return the file with guards for the function or class called name, or for all; with remove, without.

    Raises GuardFailed and UnknownTarget.
    """
    if os.path.isdir(path):  # noqa: PTH112
        raise UnknownTarget(f"{path} is a folder; pass a file, or a class in a file: model.py:UNet")
    try:
        source = read_source(real_path(path))
        check_parse_limits(source)
    except Unreadable as error:
        raise GuardFailed(Failure(path, error.message, error.row, error.column)) from None
    try:
        with deep_recursion(), Watchdog().stopping_after(FILE_SECONDS):
            return _guarded(source, name, remove)
    except OutOfBudget as stop:
        message = f"takes too much {stop.resource.value} to be analyzed"
        raise GuardFailed(Failure(source.path, message)) from None
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise GuardFailed(parse_failure(source, error)) from None
    except (SyntaxError, tokenize.TokenError) as error:
        raise GuardFailed(Failure(source.path, f"cannot be parsed: {error.args[0]}")) from None


def _guarded(source: SourceText, name: str, remove: bool) -> GuardedFile:
    old = source.text
    own = _own(old, name)
    base = without(old, own)
    if remove:
        if not name or _is_defined(old, name):
            _require_parsable(source, base)
            return _made(source, base, (), len(own))
        raise UnknownTarget(f"no class or function named {name!r}")
    _require_parsable(source, base)
    finder_texts = ProjectTexts.around(source.path)
    found = _found(replace(source, text=base), name, finder_texts)
    guards: dict[int, tuple[Need, ...]] = {}
    placed: list[PlacedGuard] = []
    for module, function in found:
        row = module.span(function.node.name).row
        at = first_row(base, row) if function.needs else None
        if at is not None:
            guards[at] = function.needs
            placed += (PlacedGuard(function.name, row, need) for need in function.needs)
    new = inserted(base, guards)
    notes = [] if finder_texts.obstacle is None else [f"no asserts: {finder_texts.obstacle}"]
    if not notes and finder_texts.layer_obstacle is not None:
        notes.append(f"no asserts on layers: {finder_texts.layer_obstacle}")
    if same_code(old, new):
        new = old
    return _made(source, new, tuple(placed), len(own), notes)


def _made(
    source: SourceText, new: str, guards: tuple[PlacedGuard, ...], removed: int, notes: Sequence[str] = ()
) -> GuardedFile:
    return GuardedFile(FileRepair(source, replace(source, text=new), (), ()), guards, removed, tuple(notes))


def _found(source: SourceText, name: str, texts: ProjectTexts) -> list[tuple[Module, FunctionGuards]]:
    """Return the guards of the functions of a text, and the modules of these functions."""
    modules = ProjectModules(Project(project_root(source.path)), read_source, None, lines=1_000_000)
    module = modules.module(source)
    files = modules.files(READING)
    files.add(module)
    finder = GuardFinder(modules, module, files, texts)
    try:
        targets = finder.targets(name)
        return [(module, finder.find(target)) for target in targets if _is_here(target, module)]
    finally:
        finder.close()


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
