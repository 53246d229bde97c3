"""SF413: a sample, a batch or a result unpacked into another number of names."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.describe import describe
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.torch_errors import unpacking_error
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.events import WrongCountUnpacked
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import LibraryObject, Value


@rule("SF413", on=WrongCountUnpacked)
def unpacked_values(event: WrongCountUnpacked, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.undecided or _is_tried(event.place):
        return
    have, want = len(event.items), event.want
    values = "1 value" if have == 1 else f"{have} values"
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(_code(event.place))}`: {values} for {want} names",
        error=unpacking_error(have, want),
        evidence=[
            *call_trace(event),
            *(
                Evidence(event.place.span, f"value {number}: {_described(item, context)}")
                for number, item in enumerate(event.items, 1)
            ),
        ],
        fixes=[_fix(event)],
    )


def _described(item: Value, context: CheckContext) -> str:
    """Return a value in one line; an object by its class: `DataLoader`."""
    return item.kind.rpartition(".")[2] if isinstance(item, LibraryObject) else describe(item, context)


def _is_tried(place: Place) -> bool:
    """Whether the code is in a `try`, perhaps for this very error."""
    return any(isinstance(node, (cst.Try, cst.TryStar)) for node in enclosing(place.module, place.node))


def _statement(place: Place) -> cst.CSTNode | None:
    around = reversed(enclosing(place.module, place.node))
    return next((node for node in around if isinstance(node, (cst.Assign, cst.For, cst.CompFor))), None)


def _code(place: Place) -> str:
    """Return the code of the names with the value next to them: `x, y in loader`."""
    statement = _statement(place)
    if isinstance(statement, (cst.For, cst.CompFor)):
        return f"{place.module.code(statement.target)} in {place.module.code(statement.iter)}"
    return place.code if statement is None else place.module.code(statement)


def _fix(event: WrongCountUnpacked) -> Fix:
    """Return the fix with names for the other values, or with names in parentheses: `out, (h, c)`."""
    module, target = event.place.module, event.place.node
    advice = "unpack as many names as there are values"
    if not isinstance(target, (cst.Tuple, cst.List)):
        return Fix(Applicability.DISPLAY, advice, ())
    names = [module.code(entry.value) for entry in target.elements]
    missing = len(event.items) - len(names)
    if missing > 0:
        added = f"take the other value{'s' if missing > 1 else ''} as `_`"
        edit = Edit(module.span(target), _like(target, [*names, *["_"] * missing]))
        return Fix(Applicability.UNSAFE, added, (edit,))
    nested: list[str] = []
    waiting = list(names)
    for item in event.items:
        if isinstance(item, TupleValue) and not item.names and len(item.items) <= len(waiting):
            taken, waiting = waiting[: len(item.items)], waiting[len(item.items) :]
            nested.append(f"({', '.join(taken)})")
        elif waiting:
            nested.append(waiting.pop(0))
    if waiting or len(nested) != len(event.items) or nested == names:
        return Fix(Applicability.DISPLAY, advice, ())
    edit = Edit(module.span(target), _like(target, nested))
    return Fix(Applicability.SAFE, "unpack the inner tuple, too", (edit,))


def _like(target: cst.Tuple | cst.List, names: list[str]) -> str:
    """Return names in the brackets of the target."""
    inner = ", ".join(names)
    if isinstance(target, cst.List):
        return f"[{inner}]"
    return f"({inner})" if target.lpar else inner
