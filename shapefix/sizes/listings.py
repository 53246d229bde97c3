"""Listings: the source of a function with the values of its names."""

from __future__ import annotations

import os

from shapefix.displayed_values import DisplayedValue
from shapefix.light_dataclasses import dataclass
from shapefix.report.view import View


@dataclass(frozen=True)
class NamedValues:
    """A name, or a part of its value, and its different values over the passes of a loop."""

    name: str
    values: tuple[DisplayedValue, ...]


@dataclass(frozen=True)
class Remark:
    """A remark on a row: an "error" or "warning" with the code of its rule, or a "note"."""

    kind: str
    text: str
    code: str = ""


@dataclass(frozen=True)
class ListingRow:
    """One row of the source, numbered as in its file; run is False if it was never reached."""

    number: int
    source: str
    held: tuple[NamedValues, ...] = ()
    remarks: tuple[Remark, ...] = ()
    run: bool = True


@dataclass(frozen=True)
class ShapeListing:
    """One run of one function; path is absolute, and basis names the origin of the sizes.

    str() is the text of `shapefix shapes`, 100 columns wide.
    """

    name: str
    path: str
    rows: tuple[ListingRow, ...]
    basis: str

    def __str__(self) -> str:
        from shapefix.sizes.render import render

        return "".join(render([self], View(os.getcwd(), 100)))  # noqa: PTH109
