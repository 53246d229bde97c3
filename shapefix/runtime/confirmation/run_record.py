"""The document of a run, as `shapefix probe --output-format json` has written it, read back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapefix.diagnostics import Span

_VERSION = 1

RecordedValue = int | tuple[int, ...]
"""A whole number, or the sizes of a tensor."""


class UnusableRecord(Exception):
    """The file is not a document of a probe run; the message has the reason and a remedy."""


@dataclass(frozen=True)
class RecordedCall:
    """A call reached by the run; values are those of names at the call, outer is its caller.

    returned says that it has returned at least once.
    """

    at: Span
    returned: bool
    outer: tuple[Span, ...]
    values: Mapping[str, RecordedValue]


@dataclass(frozen=True)
class RecordedException:
    """An exception of the run, with its places in the user's code, innermost first.

    swallowed is the `except` that made nothing of it.
    """

    type: str
    message: str
    stack: tuple[Span, ...]
    swallowed: Span | None

    def __str__(self) -> str:
        rows = self.message.splitlines()
        return f"{self.type}: {rows[0]}" if rows else self.type


@dataclass(frozen=True)
class RecordedFinding:
    """A finding of the run: its own place first, then those of its evidence."""

    code: str
    message: str
    places: tuple[Span, ...]


@dataclass(frozen=True)
class Record:
    """The facts recorded in one run.

    digests are the SHA-256 of the executed files, by path. returned has the first rows of functions that
    returned, loops the places of loops over a loader.
    """

    digests: Mapping[str, str]
    reached: tuple[RecordedCall, ...]
    returned: frozenset[tuple[str, int]]
    raised: tuple[RecordedException, ...]
    found: tuple[RecordedFinding, ...]
    loops: tuple[Span, ...]


def read(name: str) -> Record:
    """Read the record in a file. Raises UnusableRecord."""
    try:
        document = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise UnusableRecord(error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UnusableRecord("is not JSON; `shapefix probe --output-format json` writes it") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version is None:
        raise UnusableRecord("is not of the probe; `shapefix probe --output-format json` writes such a file")
    if version != _VERSION:
        raise UnusableRecord(
            f"has schema_version {version}, and this shapefix reads {_VERSION}; run the probe again"
        )
    try:
        return _record(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnusableRecord("is damaged; run the probe again") from error


def _record(document: Mapping[str, Any]) -> Record:
    executed = document["executed"]
    places = {each["id"]: _span(each["at"]) for each in executed["reached"]}
    return Record(
        {os.path.realpath(each["filename"]): str(each["sha256"]) for each in executed["files"]},
        tuple(
            RecordedCall(
                places[each["id"]],
                each["returned"] is True,
                tuple(places[number] for number in each["outer"] if number in places),
                {name: _held(value) for name, value in each["values"].items()},
            )
            for each in executed["reached"]
        ),
        frozenset((os.path.realpath(each["filename"]), int(each["row"])) for each in executed["returned"]),
        tuple(
            RecordedException(
                each["type"],
                each["message"],
                tuple(map(_span, each["stack"])),
                None if each["swallowed_at"] is None else _span(each["swallowed_at"]),
            )
            for each in document["exceptions"]
        ),
        tuple(
            RecordedFinding(each["code"], each["message"], (_span(each), *map(_span, each["evidence"])))
            for each in document["findings"]
        ),
        tuple(_loops(document)),
    )


def _loops(document: Mapping[str, Any]) -> Iterator[Span]:
    for each in document["batches"]:
        if each["asked"] is not None:
            yield _span(each["asked"])


def _span(place: Mapping[str, Any]) -> Span:
    start, end = place["location"], place["end_location"]
    path = os.path.realpath(place["filename"])
    return Span(path, int(start["row"]), int(start["column"]), int(end["row"]), int(end["column"]))


def _held(value: object) -> RecordedValue:
    if isinstance(value, list):
        return tuple(int(size) for size in value)
    if not isinstance(value, int):
        raise TypeError(value)
    return value
