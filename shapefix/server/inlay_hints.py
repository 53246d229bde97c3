"""Inlay hints: the sizes of tensors at the ends of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lsprotocol import types

from shapefix.displayed_values import RETURNED, DisplayedValue, HeldName
from shapefix.server.open_texts import MovedRows, PositionedText

_MOST_NAMES = 3
_LONGEST = 80
UNKNOWN = "?"
_NAMELESS = re.compile(r"\b(?:max|min)\(|(?<![\w.])size\(")
_MOST_VALUES = 2


def inlay_hints(
    values: Iterable[HeldName], text: PositionedText, moved: MovedRows, rows: range, with_dtype: bool
) -> Iterator[types.InlayHint]:
    """Yield the hints in some rows of a text; moved leads there from the text of the values.

    Values without known sizes have no hint.
    """
    by_row: dict[int, dict[str, str]] = {}
    for held in values:
        row = moved.row(held.end_row)
        label = _sizes(held.values, with_dtype)
        if row is not None and row in rows and label:
            by_row.setdefault(row, {})[held.name] = label
    for row, labels in sorted(by_row.items()):
        label = _label(labels)
        end = text.row_end(row)
        is_long = len(label) > _LONGEST
        hint = types.InlayHint(end, label[:_LONGEST] + "…" if is_long else label, padding_left=True)
        if is_long:
            hint.tooltip = label
        if "#" not in text.row(row):
            hint.text_edits = [types.TextEdit(types.Range(end, end), f"  # {label}")]
        yield hint


def _label(labels: dict[str, str]) -> str:
    """Join the sizes of a row; a single name is not repeated, it is in the row."""
    if len(labels) == 1:
        ((name, label),) = labels.items()
        return label if name.isidentifier() else f"{name.removeprefix(RETURNED)} {label}"
    parts = [f"{name.removeprefix(RETURNED)} {label}".strip() for name, label in labels.items()]
    shown = parts[:_MOST_NAMES]
    return ", ".join([*shown, "…"] if len(parts) > len(shown) else shown)


def _sizes(values: Iterable[DisplayedValue], with_dtype: bool) -> str:
    """Return the sizes of a name, "" for unknown ones; of several passes of a loop the first ones."""
    known = [_in_hint(value, with_dtype) for value in values]
    texts = list(dict.fromkeys(filter(None, known)))
    return " / ".join([*texts[:_MOST_VALUES], "…"] if len(texts) > _MOST_VALUES else texts)


def short(value: DisplayedValue, with_dtype: bool = True) -> str:
    """Return the text of a tensor without an unknown dtype, or without any."""
    dtype, bracket, rest = value.text.partition("[")
    return value.text if with_dtype and dtype != UNKNOWN else bracket + rest


def _in_hint(value: DisplayedValue, with_dtype: bool) -> str:
    """Return a tensor for a hint: a size without a name in the code is a question mark there."""
    if value.sizes is None:
        return ""
    sizes = [UNKNOWN if _is_nameless(size) else str(size) for size in value.sizes]
    if sizes and set(sizes) == {UNKNOWN}:
        return ""
    _, _, rest = short(value).partition("]")
    dtype, _, _ = short(value, with_dtype).partition("[")
    return f"{dtype}[{', '.join(sizes)}]" + ("" if UNKNOWN in sizes else rest)


def _is_nameless(size: int | str) -> bool:
    """Whether a size is one of several possible ones, or of a value without a name."""
    return isinstance(size, str) and _NAMELESS.search(size) is not None
