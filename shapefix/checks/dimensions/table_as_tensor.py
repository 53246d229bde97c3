"""SF523: a table of pandas in the place of numbers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import (
    Applicability,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    ExpectedError,
    Fix,
    Role,
)
from shapefix.domains.tables import TableMisuse, TableMisused

_FIRST = {
    TableMisuse.TABLE: "it is made here",
    TableMisuse.COLUMN: "it is made here",
    TableMisuse.TEXTS: "the texts come from here",
    TableMisuse.MIXED: "the array of objects is made here",
    TableMisuse.ITEMS: "an array of one object is made here",
    TableMisuse.GAP: "the rows left keep their labels here",
    TableMisuse.LABEL: "the rows keep their labels in another order here",
}
_BY_LABEL = (TableMisuse.LABEL, TableMisuse.GAP)


@rule("SF523", on=TableMisused)
def table_as_tensor(event: TableMisused, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in enclosing(module, event.place.node)):
        return
    code = abbreviate(event.place.code)
    source = event.source
    made = () if source is None else (Evidence(source.span, _FIRST[event.reason], Role.CAUSE),)
    yield rule.diagnostic(
        event.place.span,
        f"`{code}`: {_reason(event)}",
        error=_error(event),
        evidence=[
            *call_trace(event),
            *made,
            Evidence(event.place.span, _reason(event), Role.FAILURE),
        ],
        condition=_condition(event),
        fixes=[_fix(event)],
    )


def _condition(event: TableMisused) -> Condition | None:
    """Return the condition of a missing label: the last rows may be the only ones left out."""
    if event.reason is not TableMisuse.GAP or event.source is None:
        return None
    return Condition(f"`{abbreviate(event.source.code)}` leaves out a row before another one")


def _reason(event: TableMisused) -> str:
    if event.reason is TableMisuse.TABLE:
        return "torch cannot read a DataFrame; pass its `.values`"
    if event.reason is TableMisuse.COLUMN:
        return "`from_numpy` needs an array, not a Series; pass its `.values`"
    if event.reason is TableMisuse.TEXTS:
        return f"column `{event.detail}` holds texts, which are no numbers"
    if event.reason is TableMisuse.MIXED:
        return "the table mixes booleans and numbers in an array of objects; call `.astype(…)` first"
    if event.reason is TableMisuse.ITEMS:
        if event.source is not None:
            array = abbreviate(event.source.code)
            return f"`{array}` holds one object, a {event.detail}, and no numbers; pass a list"
        return f"torch cannot read a {event.detail}; pass a list"
    where = "" if event.source is None else f" ({rewrites.line_of(event.source, event.place.module)})"
    if event.reason is TableMisuse.GAP:
        return f"rows are looked up by label, but some are left out{where}; use `.iloc`"
    return f"rows are looked up by label, but their labels are shuffled{where}; use `.iloc`"


def _error(event: TableMisused) -> ExpectedError | None:
    is_shared = event.function == "torch.from_numpy"
    if event.reason is TableMisuse.TEXTS:
        # A column of texts raises in another way since pandas 3.
        return None
    if event.reason is TableMisuse.MIXED:
        return ExpectedError("TypeError", "can't convert np.ndarray of type numpy.object_")
    if event.reason is TableMisuse.ITEMS:
        if event.source is not None:
            return ExpectedError("TypeError", "can't convert np.ndarray of type numpy.object_")
        if event.function in ("torch.tensor", "torch.as_tensor", "torch.asarray"):
            return ExpectedError("RuntimeError", f"Could not infer dtype of {event.detail}")
        return ExpectedError("TypeError", "")
    if event.reason in _BY_LABEL:
        return ExpectedError("KeyError", "")
    if is_shared:
        kind = "DataFrame" if event.reason is TableMisuse.TABLE else "Series"
        return ExpectedError("TypeError", f"expected np.ndarray (got {kind})")
    return ExpectedError("ValueError", "could not determine the shape of object type 'DataFrame'")


def _fix(event: TableMisused) -> Fix:
    node, module = event.place.node, event.place.module
    if event.reason in _BY_LABEL:
        subject = node.value if isinstance(node, cst.Subscript) else None
        if subject is None or event.function.startswith("pandas.<loc>"):
            return Fix(Applicability.DISPLAY, "call `.reset_index(drop=True)` after the split", ())
        edit = rewrites.method_called(module, subject, "iloc")
        return Fix(Applicability.SAFE, "look up the row by its position: `.iloc`", (edit,))
    if event.reason is TableMisuse.TEXTS:
        return Fix(Applicability.DISPLAY, "encode the texts as numbers, or leave the column out", ())
    if event.reason is TableMisuse.MIXED:
        return Fix(Applicability.DISPLAY, 'convert the table to one dtype: `.astype("float32")`', ())
    if event.reason is TableMisuse.ITEMS:
        return _listed(event)
    given = node.args[0].value if isinstance(node, cst.Call) and node.args else None
    if given is None:
        return Fix(Applicability.DISPLAY, "pass the array of the table: `.values`", ())
    edit = rewrites.method_called(module, given, "values")
    return Fix(Applicability.SAFE, "pass the array of the table: `.values`", (edit,))


def _listed(event: TableMisused) -> Fix:
    """Make a list of the items, in the call of NumPy or of torch."""
    place, text = event.source or event.place, "make a list of them: `list(…)`"
    node, module = place.node, place.module
    if not isinstance(node, cst.Call) or not node.args or module is not event.place.module:
        return Fix(Applicability.DISPLAY, text, ())
    given = node.args[0].value
    edit = Edit(module.span(given), f"list({module.code(given)})")
    return Fix(Applicability.SAFE, text, (edit,))
