"""Listings: the source of a function with the values of its names."""

from __future__ import annotations

from dataclasses import dataclass

from shapefix.checks.support.describe import DisplayedValue


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
    """One run of one function; path is absolute, and basis names the origin of the sizes."""

    name: str
    path: str
    rows: tuple[ListingRow, ...]
    basis: str
