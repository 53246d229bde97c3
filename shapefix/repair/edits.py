"""Applies the edits of several fixes to one text, and says where each place of the old text has gone."""

from __future__ import annotations

import re
from bisect import bisect_left, insort_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from shapefix.diagnostics import Fix, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")


class Unfit(ValueError):
    """A fix that this text cannot take; the message says why."""


class Replacement(NamedTuple):
    """Code points start to end (exclusive) of a text give way to content."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class Rows:
    """Where each row of a text begins and ends, in code points, without its newline."""

    bounds: tuple[tuple[int, int], ...]
    length: int

    @classmethod
    @lru_cache(maxsize=4)  # each fix of a round is placed on its own in the same text
    def of(cls, text: str) -> Rows:
        bounds, begin = [], 0
        for newline in _NEWLINE.finditer(text):
            bounds.append((begin, newline.start()))
            begin = newline.end()
        bounds.append((begin, len(text)))
        return cls(tuple(bounds), len(text))

    def offset(self, row: int, column: int) -> int:
        """The code point at row and column, both from 1; the row after the last one is the end of the text.

        Raises Unfit for a place that the text does not have.
        """
        if row == len(self.bounds) + 1 and column == 1:
            return self.length
        if 1 <= row <= len(self.bounds):
            begin, end = self.bounds[row - 1]
            if 1 <= column <= end - begin + 1:
                return begin + column - 1
        raise Unfit(f"the repair points at {row}:{column}, which the file does not have")

    def stretch(self, span: Span) -> tuple[int, int]:
        """The code points of a span, end exclusive. Raises Unfit if the text lacks it or it is reversed."""
        start, end = self.offset(span.row, span.column), self.offset(span.end_row, span.end_column)
        if start > end:
            raise Unfit(f"the repair's span at {span.row}:{span.column} ends before it begins")
        return start, end


@dataclass(frozen=True)
class Plan:
    """What one round does to a text: its replacements in order of place, and the fixes in it and left out."""

    replacements: tuple[Replacement, ...]
    applied: tuple[Fix, ...]
    postponed: tuple[Fix, ...]

    def splice(self, text: str) -> str:
        """The text with every replacement made."""
        pieces: list[str] = []
        done = 0
        for start, end, content in self.replacements:
            pieces += text[done:start], content
            done = end
        return "".join([*pieces, text[done:]])

    def carry(self, offset: int) -> tuple[int, int]:
        """The stretch of the new text, both ends inclusive, in which a place of the old text may now lie.

        It is one place unless a replacement touches it.
        """
        shift, low, high = 0, None, None
        for start, end, content in self.replacements:
            if start > offset:
                break
            if end >= offset:
                low = start + shift if low is None else low
                high = start + shift + len(content)
            shift += len(content) - (end - start)
        if low is None or high is None:
            return offset + shift, offset + shift
        return low, high


@lru_cache(maxsize=4)
def newline_of(text: str) -> str:
    r"""The newline that most rows of a text end with, the first one among equals; \n where there is none."""
    counts = Counter(_NEWLINE.findall(text))
    return counts.most_common(1)[0][0] if counts else "\n"


def plan(text: str, fixes: Sequence[Fix]) -> Plan:
    """Chooses, in the order given, the fixes that can be applied to text together.

    All edits of a fix are taken or none. A fix with an edit that overlaps or touches an edit of an earlier
    one is postponed, except that an edit that both have in common is made once. Content takes the newline of
    the text. Raises Unfit for a fix whose spans lie outside the text or overlap each other.
    """
    rows, newline = Rows.of(text), newline_of(text)
    taken: list[Replacement] = []
    known: set[Replacement] = set()
    applied, postponed = [], []
    for fix in fixes:
        fresh = [edit for edit in _placed(rows, newline, fix) if edit not in known]
        if any(_touches(edit, taken) for edit in fresh):
            postponed.append(fix)
        else:
            for edit in fresh:
                insort_right(taken, edit, key=_place)
            known.update(fresh)
            applied.append(fix)
    return Plan(tuple(taken), tuple(applied), tuple(postponed))


def apply(text: str, fixes: Sequence[Fix]) -> tuple[str, list[Fix], list[Fix]]:
    """The text after one round of fixes, the fixes that were applied, and those postponed to the next round.

    See plan for what is chosen and what is raised. The imports of a fix are not looked at.
    """
    chosen = plan(text, fixes)
    return chosen.splice(text), list(chosen.applied), list(chosen.postponed)


def _place(edit: Replacement) -> tuple[int, int]:
    return edit.start, edit.end


def _touches(edit: Replacement, taken: Sequence[Replacement]) -> bool:
    """Whether edit meets one of taken, which are in order and do not overlap, so that their ends are too."""
    first = bisect_left(taken, edit.start, key=lambda old: old.end)
    return first < len(taken) and taken[first].start <= edit.end


def _placed(rows: Rows, newline: str, fix: Fix) -> list[Replacement]:
    placed = [
        Replacement(*rows.stretch(edit.span), _NEWLINE.sub(newline, edit.content)) for edit in fix.edits
    ]
    placed.sort(key=_place)
    for before, after in pairwise(placed):
        if after.start < before.end:
            raise Unfit("the edits of the repair overlap each other")
    return placed
