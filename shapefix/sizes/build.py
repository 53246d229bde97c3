"""Build the listing of one watched run of a function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.rules import findings
from shapefix.checks.support.describe import MOST_PARTS, parts
from shapefix.diagnostics import Severity
from shapefix.displayed_values import DisplayedValue
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.modules import Module
from shapefix.interpreter.values import (
    Value,
)
from shapefix.interpreter.watching import WatchedRun, known_now, parameters_of, statements_of
from shapefix.sizes.listings import ListingRow, NamedValues, Remark, ShapeListing

_NEWLINE = re.compile(r"\r\n|\r|\n")


def listing(
    name: str, module: Module, seen: WatchedRun, run: CheckContext, rules: frozenset[str], basis: str
) -> ShapeListing:
    """Build the listing of one run of a function in module."""
    function = seen.function
    first, last = module.span(function.name).row, module.span(function).end_row
    held: dict[int, list[NamedValues]] = {}
    remarks: dict[int, list[Remark]] = {}
    for param in parameters_of(function):
        value = seen.parameters.get(param.name.value)
        if value is not None and value is not seen.receiver:
            row = module.span(param.name).row
            held.setdefault(row, []).extend(_named_values([((param.name.value, known_now(value)),)], run))
    unrun: set[int] = set()
    for statement in statements_of(function):
        span = module.span(statement)
        if statement not in seen.held:
            unrun.update(range(span.row, span.end_row + 1))
            continue
        # The `else` of a branch that was not taken may end in the same row as the branch.
        held.setdefault(span.row, []).extend(_named_values(seen.held[statement], run))
        if statement in seen.carried:
            remarks.setdefault(span.row, []).append(Remark("note", "first pass; later ones may differ"))
        said = _remarks(seen.events.get(statement, ()), run, rules)
        if said:
            remarks.setdefault(span.row, []).extend(said)
    return ShapeListing(
        name, module.path, tuple(_rows(module, function, first, last, held, remarks, unrun)), basis
    )


def _rows(
    module: Module,
    function: cst.FunctionDef,
    first: int,
    last: int,
    held: dict[int, list[NamedValues]],
    remarks: dict[int, list[Remark]],
    unrun: set[int],
) -> Iterator[ListingRow]:
    source = _NEWLINE.split(module.text)[first - 1 : last]
    while source and not source[-1].strip():
        source.pop()
    documented = _docstring_rows(module, function)
    if len(documented) > 1:
        at = documented[0] - first
        source[at] = source[at].rstrip() + (
            '..."""' if source[at].strip().lstrip("rRuU") == '"""' else " ..."
        )
    for number, line in enumerate(_dedented(source), first):
        if number in documented[1:]:
            continue
        yield ListingRow(
            number,
            line,
            tuple(held.get(number, ())),
            tuple(dict.fromkeys(remarks.get(number, ()))),
            number not in unrun,
        )


def _dedented(source: list[str]) -> list[str]:
    """Remove the indentation of the first row from all rows."""
    indent = source[0][: len(source[0]) - len(source[0].lstrip())]
    return [line.removeprefix(indent).rstrip() for line in source]


def _docstring_rows(module: Module, function: cst.FunctionDef) -> Sequence[int]:
    block = function.body
    if not isinstance(block, cst.IndentedBlock) or not isinstance(block.body[0], cst.SimpleStatementLine):
        return ()
    first = block.body[0].body[0]
    if not isinstance(first, cst.Expr) or not isinstance(
        first.value, (cst.SimpleString, cst.ConcatenatedString)
    ):
        return ()
    span = module.span(first)
    return range(span.row, span.end_row + 1)


def _named_values(times: Iterable[Iterable[tuple[str, Value]]], run: CheckContext) -> list[NamedValues]:
    """Collect each name with its different values."""
    found: dict[str, dict[DisplayedValue, None]] = {}
    for names in times:
        for name, value in names:
            if set(name) == {"_"}:
                continue
            several = list(parts(name, value, run))
            for part, shown in several[:MOST_PARTS]:
                found.setdefault(part, {})[shown] = None
            if len(several) > MOST_PARTS:
                found.setdefault(name, {})[DisplayedValue(f"... and {len(several) - MOST_PARTS} more")] = None
    return [NamedValues(name, tuple(values)) for name, values in found.items()]


def _remarks(events: Iterable[Event], run: CheckContext, rules: frozenset[str]) -> list[Remark]:
    """Collect the findings in a statement, and rejected operations without a finding."""
    said: list[Remark] = []
    for event in events:
        found = list(findings(run, rules, [event]))
        said += [
            Remark(each.severity.value, each.text, each.code)
            for each in found
            if each.severity is not Severity.INFO
        ]
        if isinstance(event, OpRejected) and not found:
            said.append(Remark("error", f"torch raises: {event.error}"))
    return said
