"""Tables in a text of the code: `pandas.read_csv(io.StringIO(text))`."""

from __future__ import annotations

import csv

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value
from shapefix.library.registry import declare, function, method

_BUFFER = "io.StringIO"
_TEXT = "<text>"
_LONGEST = 10_000
"""Length of the longest text read."""
_MISSING = frozenset({"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None", "n/a", "<NA>", "-nan", "#N/A"})

declare(_BUFFER, "builtins.object")


@function(_BUFFER)
def buffer(call: Call) -> Value:
    """Text as a file."""
    given = call.value(0, "initial_value")
    text = given.value if isinstance(given, Constant) and isinstance(given.value, str) else None
    return LibraryObject(_BUFFER, {}, call.place, {_TEXT: text})


@method(_BUFFER, "write", "writelines", "truncate", "readline", "readlines", "read", "close", "seek")
def changed(call: Call) -> Value:
    """Forget the text after a change, or after parts were read."""
    if isinstance(call.receiver, LibraryObject):
        call.ev.journal.write(call.receiver.fields, _TEXT, None)
    return Unknown()


def columns_in(call: Call, source: Value | None) -> dict[str, ListValue] | None:
    """Columns of the numbers and texts in a file in memory; None for other files and for unknown options."""
    text = source.fields.get(_TEXT) if isinstance(source, LibraryObject) else None
    keywords = call.arguments.keywords
    if not isinstance(text, str) or len(text) > _LONGEST or len(call.arguments.positional) > 1:
        return None
    if keywords.keys() - {"sep", "delimiter", "filepath_or_buffer"}:
        return None
    separator = call.constant(-1, "sep", call.constant(-1, "delimiter", ","))
    if not isinstance(separator, str) or len(separator) != 1:
        return None
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if row]
    names = rows[0] if rows else []
    if len(rows) < 2 or len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        # Without rows, or with an index in front.
        return None
    columns = zip(*rows[1:], strict=True)
    read = {name: _column(values) for name, values in zip(names, columns, strict=True)}
    return (
        {name: column for name, column in read.items() if column is not None} if all(read.values()) else None
    )


def _column(values: tuple[str, ...]) -> ListValue | None:
    """Whole numbers, floats or texts in the cells of a column; None for other contents."""
    cells = [value.strip() for value in values]
    if any(cell in _MISSING or cell in ("True", "False", "TRUE", "FALSE", "true", "false") for cell in cells):
        return None
    for kind in (int, float):
        try:
            return ListValue(tuple(Constant(kind(cell)) for cell in cells))
        except ValueError:
            continue
    return ListValue(tuple(map(Constant, values)))
