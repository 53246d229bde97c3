"""The values of all names in a file at their assignments, and the results of its functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.describe import MOST_PARTS, parts
from shapefix.checks.support.describe import shown as shown_value
from shapefix.displayed_values import CallsOfForward, DisplayedValue, HeldName, SizedCall
from shapefix.engine.frame_memory import with_memory_for_frames
from shapefix.engine.interpretation import ProjectFiles, ProjectModules, deep_recursion
from shapefix.engine.watchdog import Watchdog
from shapefix.interpreter.budget import OutOfBudget, cause_of
from shapefix.interpreter.modules import Module, nodes
from shapefix.interpreter.program import run_program
from shapefix.interpreter.values import Value
from shapefix.interpreter.watching import (
    Named,
    WatchedRun,
    Watcher,
    known_now,
    parameters_of,
    statements_of,
)
from shapefix.light_dataclasses import dataclass
from shapefix.sizes.run import is_real_call, letters
from shapefix.sources.text import SourceText

STEPS = 200_000
"""The number of steps per part of a run, as for a listing."""
_SECONDS = 2.5
"""CPU time for the run of one file; what is known by then is shown."""
_TOP_LEVEL = "<module>"
Callers = Mapping[str, frozenset[str] | None]
"""Paths of programs with the qualified names of the functions that they call; None if not known."""


@dataclass(frozen=True)
class ProgramValues:
    """The values in a file and the calls of its modules, both by row."""

    names: tuple[HeldName, ...]
    calls: tuple[CallsOfForward, ...]


@dataclass(frozen=True)
class _Watched:
    """A function of the file, or one around its top level, and its qualified name."""

    node: cst.FunctionDef
    name: str
    first_row: int
    last_row: int


def program_values(
    modules: ProjectModules, source: SourceText, callers: Callers = MappingProxyType({})
) -> ProgramValues:
    """Run a file, then each of its callers, and return the values in the file, by row.

    The values of a function are those of its first call with tensors of known sizes. callers are run for
    functions without such a call, if they call any of them. Raises libcst.ParserSyntaxError and
    RecursionError.
    """
    with deep_recursion():
        found: ProgramValues = with_memory_for_frames(_program_values, modules, source, callers)
    return found


def _program_values(modules: ProjectModules, source: SourceText, callers: Callers) -> ProgramValues:
    module = modules.module(source)
    missing = list(_functions(module))
    found: list[HeldName] = []
    forwards: list[CallsOfForward] = []
    second_best: dict[cst.CSTNode, list[HeldName]] = {}
    for program in itertools.chain((module,), _programs(modules, callers, missing)):
        ev = _watched_run(modules, module, program, missing)
        try:
            context = CheckContext(ev.events, {**ev.symbol_names, **letters(ev.passes)})
            for function in list(missing):
                best = _best(ev, function.node)
                if best is None:
                    continue
                values = list(_values(best, function, module, context))
                if function.name == _TOP_LEVEL or is_real_call(best):
                    missing.remove(function)
                    second_best.pop(function.node, None)
                    found += values
                    if function.name.endswith(".forward"):
                        row = module.span(function.node.name).row
                        calls = tuple(dict.fromkeys(_calls(ev, function.node, context)))
                        forwards.append(CallsOfForward(row, calls))
                else:
                    second_best.setdefault(function.node, values)
        finally:
            ev.close()
        if not missing:
            break
    found += (value for values in second_best.values() for value in values)
    names = sorted(found, key=lambda each: (each.row, each.end_row))
    return ProgramValues(tuple(names), tuple(sorted(forwards, key=lambda each: each.row)))


def _calls(ev: Watcher, function: cst.FunctionDef, context: CheckContext) -> Iterator[SizedCall]:
    """Yield the calls of a function with tensors of known sizes."""
    for seen in ev.passes:
        if seen.function is function and is_real_call(seen):
            arguments = (each for each in seen.parameters.items() if each[1] is not seen.receiver)
            shown = ((name, shown_value(known_now(value), context)) for name, value in arguments)
            yield SizedCall(seen.calls[-1].span, tuple(each for each in shown if each[1].sizes is not None))


def _programs(modules: ProjectModules, callers: Callers, missing: Sequence[_Watched]) -> Iterator[Module]:
    """Yield the callers of the functions still missing at their turn."""
    files = modules.files()
    for path, called in callers.items():
        if called is None or any(_is_called(function, called) for function in missing):
            program = files.module(path)
            if program is not None:
                yield program


def _is_called(function: _Watched, called: frozenset[str]) -> bool:
    """Whether a function, or one around it, is among those called; they are named after one class at most."""
    parts = function.name.split(".")
    pairs = map(".".join, itertools.pairwise(parts))
    return not called.isdisjoint((*parts, *pairs))


def _functions(module: Module) -> Iterator[_Watched]:
    """Yield the functions of a file, and one for its top level."""
    last_row = module.text.count("\n") + 1
    top = cst.FunctionDef(cst.Name("top_level"), cst.Parameters(), cst.IndentedBlock(module.tree.body))
    yield _Watched(top, _TOP_LEVEL, 1, last_row)
    for node in nodes(module.tree):
        if isinstance(node, cst.FunctionDef):
            around = module.path_to(node)
            names = [each.name.value for each in around if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
            span = module.span(node)
            yield _Watched(node, ".".join(names), span.row, span.end_row)


def _watched_run(
    modules: ProjectModules, module: Module, program: Module, functions: Sequence[_Watched]
) -> Watcher:
    """Run a program, up to a limit of time, with functions of a module watched."""
    files: ProjectFiles = modules.files_with(program)
    files.add(module)
    wanted = [each.node for each in functions if program is module or each.name != _TOP_LEVEL]
    ev = Watcher(modules.library, files, STEPS, modules.versions, wanted, {})
    try:
        with Watchdog().stopping_after(_SECONDS):
            run_program(ev, program, STEPS)
    except (OutOfBudget, Exception) as error:
        if cause_of(error) is None:
            ev.close()
            raise
    return ev


def _best(ev: Watcher, function: cst.FunctionDef) -> WatchedRun | None:
    """Return the first run with known sizes, else the first call, else any run."""
    runs = [seen for seen in ev.passes if seen.function is function]
    ranked = sorted(runs, key=lambda seen: (not is_real_call(seen), not seen.calls))
    return ranked[0] if ranked else None


def _values(
    seen: WatchedRun, function: _Watched, module: Module, context: CheckContext
) -> Iterator[HeldName]:
    name = "" if function.name == _TOP_LEVEL else function.name
    for param in parameters_of(function.node):
        value = seen.parameters.get(param.name.value)
        if value is not None and value is not seen.receiver:
            span = module.span(param)
            rows = span.row, span.end_row
            yield from _named([((param.name.value, known_now(value)),)], rows, name, function, context)
    for statement in statements_of(function.node):
        if statement in seen.held and not _is_write(statement):
            yield from _named(seen.held[statement], _head(module, statement), name, function, context)


def _is_write(statement: cst.CSTNode) -> bool:
    """Whether a statement writes into parts of values, and assigns no name: `x[0] = 1`."""
    return isinstance(statement, cst.Assign) and all(
        isinstance(target.target, cst.Subscript) for target in statement.targets
    )


def _head(module: Module, statement: cst.CSTNode) -> tuple[int, int]:
    """Return the first and last row of a statement, of a compound one those of its head."""
    last: cst.CSTNode = statement
    if isinstance(statement, cst.For):
        last = statement.iter
    elif isinstance(statement, cst.With):
        last = statement.items[-1]
    elif isinstance(statement, (cst.If, cst.While)):
        last = statement.test
    return module.span(statement).row, module.span(last).end_row


def _named(
    times: Iterable[Named], rows: tuple[int, int], function: str, watched: _Watched, context: CheckContext
) -> Iterator[HeldName]:
    """Yield each name with its different values over several passes, in their order."""
    found: dict[tuple[str, str], dict[DisplayedValue, None]] = {}
    for names in times:
        for name, value in names:
            for part, shown in _parts(name, value, context):
                found.setdefault((part, name), {})[shown] = None
    for (part, name), values in found.items():
        yield HeldName(part, name, tuple(values), *rows, function, watched.first_row, watched.last_row)


def _parts(name: str, value: Value, context: CheckContext) -> list[tuple[str, DisplayedValue]]:
    return [] if set(name) == {"_"} else list(parts(name, value, context))[:MOST_PARTS]
