"""Render listings as text, with values beside the source, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from shapefix.displayed_values import DisplayedValue
from shapefix.report.cells import glyphs, width_of, wrapped
from shapefix.report.frame import Line, margin, trimmed
from shapefix.report.json import file_of
from shapefix.report.paint import painter
from shapefix.report.view import View, json_text, one_line
from shapefix.sizes.listings import ListingRow, NamedValues, Remark, ShapeListing

MOST_VALUES = 4
"""The number of shown loop passes: the first ones and the last."""
_GAP = 3
_WIDEST_NAME = 12
_SHORT = 24
_INSIDE = re.compile(r"(?<![,\]]) ")
_TIE = "\ue000"
"""A non-breaking space."""


def render(listings: Sequence[ShapeListing], view: View) -> Iterator[str]:
    """Render each listing as text."""
    painted = painter(view.color)
    for position, listing in enumerate(listings):
        lines = list(_listing(listing, view))
        yield painted([*([[]] if position else []), *lines])


def render_json(listings: Sequence[ShapeListing], view: View) -> Iterator[str]:
    """Render a JSON list with an object per listing; sizes are numbers, or strings for symbols."""
    entries = [
        {
            "name": listing.name,
            **file_of(listing.path, view),
            "basis": listing.basis,
            "rows": [_entry(row) for row in listing.rows],
        }
        for listing in listings
    ]
    yield json_text(json.dumps(entries, indent=2)) + "\n"


def _entry(row: ListingRow) -> dict[str, object]:
    return {
        "row": row.number,
        "source": row.source,
        "run": row.run,
        "values": [
            {"name": held.name, "passes": [_value(shown) for shown in held.values]} for held in row.held
        ],
        "remarks": [
            {"kind": remark.kind, "code": remark.code or None, "text": remark.text} for remark in row.remarks
        ],
    }


def _value(shown: DisplayedValue) -> dict[str, object]:
    return {
        "text": shown.text,
        "dtype": shown.dtype,
        "sizes": shown.sizes,
        "strides": shown.strides,
        "device": shown.device,
    }


def _listing(listing: ShapeListing, view: View) -> Iterator[Line]:
    first = listing.rows[0]
    place = f"{one_line(view.relative(listing.path))}:{first.number}"
    head, *rest = wrapped(f"{listing.name} ({place}), {one_line(listing.basis)}", view.width, hang=4)
    yield [(head[: len(listing.name)], "name"), (head[len(listing.name) :], "code")]
    yield from ([(row, "code")] for row in rest)
    gutter = len(str(listing.rows[-1].number))
    room = max(view.width - gutter - 3, 30)
    column = _column(listing, room)
    names = [held.name for row in listing.rows for held in _together(row.held)]
    name_room = min(max(map(width_of, names), default=0), _WIDEST_NAME)
    ran = True
    for row in listing.rows:
        yield from _row(row, gutter, room, column, name_room, ran)
        ran = row.run or not row.source.strip()


def _column(listing: ShapeListing, room: int) -> int:
    """Return the first cell of the values: after the source, unless values need the space."""
    widths = [_widest(row) for row in listing.rows if row.held]
    longest = max(
        (
            width_of(held.name) + 2 + width_of(shown.text)
            for row in listing.rows
            for held in _together(row.held)
            for shown in held.values
        ),
        default=0,
    )
    # The values of a long row are below it.
    most = max(room - longest, room * 11 // 20)
    return max((width + _GAP for width in widths if width + _GAP <= most), default=most // 2)


def _widest(row: ListingRow) -> int:
    return glyphs(row.source)[1][-1]


def _row(row: ListingRow, gutter: int, room: int, column: int, name_room: int, ran: bool) -> Iterator[Line]:
    """Render a row of source with its values and remarks; ran is true if the row above was run."""
    beside = list(_beside(row, room - column, name_room))
    if ran and not row.run:
        beside = [[("not run", "gutter")]]
    style = "code" if row.run else "gutter"
    pieces = _source(row.source, room)
    for position, piece in enumerate(pieces[:-1]):
        yield trimmed([*margin(gutter, row.number if position == 0 else None), (piece, style)])
    last = pieces[-1]
    number = row.number if len(pieces) == 1 else None
    if beside and number is not None and width_of(last) + _GAP <= column:
        gap = " " * (column - width_of(last))
        yield trimmed([*margin(gutter, number), (last, style), (gap, "code"), *beside.pop(0)])
    else:
        yield trimmed([*margin(gutter, number), (last, style)])
    for line in beside:
        yield [*margin(gutter), (" " * column, "code"), *line]
    for remark in row.remarks:
        yield from _remark(remark, gutter, room, len(row.source) - len(row.source.lstrip()))


def _source(source: str, room: int) -> list[str]:
    """Split a row of source into pieces of at most room cells, and expand tabs."""
    shown, starts = glyphs(source)
    if starts[-1] <= room:
        return ["".join(shown)]
    pieces, piece = [], ""
    for character in shown:
        if width_of(piece + character) > room:
            pieces.append(piece)
            piece = ""
        piece += character
    return [*pieces, piece]


def _beside(row: ListingRow, room: int, name_room: int) -> Iterator[Line]:
    """Render the values of the names of a row."""
    for held in _together(row.held):
        name = f"{held.name:<{name_room}}  "
        for position, text in enumerate(_values(held)):
            lead = name if position == 0 else " " * len(name)
            hang = len(lead) + 2 if len(lead) + 2 < room // 2 else 4
            first, *rest = _between_sizes(text, room, room - len(lead), hang)
            if width_of(lead) + width_of(first) > room:
                # A long name, as `outputs['hidden_states'][0]`, has its row to itself.
                yield [(lead.rstrip(), "step")]
                lead, first = " " * hang, first.lstrip()
            yield [(lead, "step"), (first.rstrip(), "fix")]
            yield from ([(line.rstrip(), "fix")] for line in rest)


def _between_sizes(text: str, room: int, first: int, hang: int) -> list[str]:
    """Wrap text to room cells, between sizes rather than inside of one."""
    bound = _INSIDE.sub(_TIE, text)
    if any(width_of(word) > room - hang for word in bound.split()):
        bound = text
    return [row.replace(_TIE, " ") for row in wrapped(bound, room, first=first, hang=hang)]


def _values(held: NamedValues) -> list[str]:
    """Return the first and last values over the passes of a loop; numbers are joined."""
    texts = [shown.text for shown in held.values]
    if len(texts) > MOST_VALUES:
        texts = [*texts[: MOST_VALUES - 2], "...", texts[-1]]
    is_plain = all(shown.is_number and len(shown.text) < _SHORT for shown in held.values)
    return [", ".join(texts)] if is_plain else texts


def _together(several: Sequence[NamedValues]) -> list[NamedValues]:
    """Join adjacent numbers, as in `B, T, C = x.shape`."""
    found: list[NamedValues] = []
    for held in several:
        if found and _is_number(held) and _is_number(found[-1]):
            last = found.pop()
            text = f"{last.values[0].text}, {held.values[0].text}"
            found.append(NamedValues(f"{last.name}, {held.name}", (DisplayedValue(text, is_number=True),)))
        else:
            found.append(held)
    # `B, T, C = x.shape` needs no values for symbols of these names.
    return [held for held in found if held.values[0].text != held.name]


def _is_number(held: NamedValues) -> bool:
    return len(held.values) == 1 and held.values[0].is_number and len(held.values[0].text) < _SHORT


def _remark(remark: Remark, gutter: int, room: int, indent: int) -> Iterator[Line]:
    """Render a remark below its row."""
    indent = min(indent, room // 4)
    label = f"{remark.kind}[{remark.code}]" if remark.code else remark.kind
    first, *rest = wrapped(f"^ {label}: {one_line(remark.text)}", room - indent, hang=4)
    lead = " " * indent + first[: len(label) + 2]
    style = remark.kind if remark.kind in ("error", "warning") else "gutter"
    yield [*margin(gutter), (lead, style), (first[len(label) + 2 :], "code")]
    yield from ([*margin(gutter), (" " * indent + line, "code")] for line in rest)
