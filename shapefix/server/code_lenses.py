"""Code lenses: the calls of a module above its `forward`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from lsprotocol import types

from shapefix.displayed_values import CallsOfForward, SizedCall
from shapefix.server.inlay_hints import short
from shapefix.server.open_texts import MovedRows, PositionedText

_MOST_CALLS = 3


def code_lenses(
    forwards: Iterable[CallsOfForward], text: PositionedText, moved: MovedRows, with_dtype: bool
) -> Iterator[types.CodeLens]:
    """Yield a lens for each called `forward` of a text; moved leads there from the text of the calls."""
    for each in forwards:
        row = moved.row(each.row)
        calls = list(dict.fromkeys(_call(call, with_dtype) for call in each.calls))
        if row is None or not calls:
            continue
        shown = [
            *calls[:_MOST_CALLS],
            *([f"{len(calls) - _MOST_CALLS} more"] if len(calls) > _MOST_CALLS else []),
        ]
        start = text.position(row, 1)
        # Editors show a command without a name as a text.
        title = types.Command("called with " + "; ".join(shown), "")
        yield types.CodeLens(types.Range(start, text.row_end(row)), title)


def _call(call: SizedCall, with_dtype: bool) -> str:
    sizes = ", ".join(f"{name} {short(value, with_dtype)}" for name, value in call.sizes)
    where = f"{PurePath(call.span.path).name}:{call.span.row}"
    return f"{sizes} at {where}" if sizes else where
