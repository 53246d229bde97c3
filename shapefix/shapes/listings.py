"""What `shapefix shapes` shows: the source of a function, and beside its rows what its names hold."""

from __future__ import annotations

from dataclasses import dataclass

from shapefix.checks.support.describe import DisplayedValue


@dataclass(frozen=True)
class Held:
    """A name, or a part of what it holds, and its value; one for each pass of a loop where they differ."""

    name: str
    values: tuple[DisplayedValue, ...]


@dataclass(frozen=True)
class Remark:
    """What is to be said of a row: an "error" or a "warning" with the code of its rule, or a "note"."""

    kind: str
    text: str
    code: str = ""


@dataclass(frozen=True)
class Row:
    """One row of the source, numbered as in its file; run is False where it was never reached."""

    number: int
    source: str
    held: tuple[Held, ...] = ()
    remarks: tuple[Remark, ...] = ()
    run: bool = True


@dataclass(frozen=True)
class Listing:
    """One run of one function; path is absolute, and basis says in words what the sizes rest on."""

    name: str
    path: str
    rows: tuple[Row, ...]
    basis: str
