"""Apply the edits of several fixes to a text, and map positions of the old text to the new one."""

from __future__ import annotations

import re
from bisect import bisect_left, insort_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from shapefix.diagnostics import Fix, Span
from shapefix.light_dataclasses import dataclass

_NEWLINE = re.compile(r"\r\n|\r|\n")


class InvalidEdit(ValueError):
    """The fix cannot be applied to this text; the message explains why."""


class Replacement(NamedTuple):
    """Replace code points start to end (exclusive) of a text by content."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class RowOffsets:
    """Offsets of the start and end of each row, in code points, without newlines."""

    bounds: tuple[tuple[int, int], ...]
    length: int

    @classmethod
    @lru_cache(maxsize=4)  # each fix of a round is placed on its own in the same text
    def of(cls, text: str) -> RowOffsets:
        bounds, begin = [], 0
        for newline in _NEWLINE.finditer(text):
            bounds.append((begin, newline.start()))
            begin = newline.end()
        bounds.append((begin, len(text)))
        return cls(tuple(bounds), len(text))

    def offset(self, row: int, column: int) -> int:
        """Return the offset of row and column, both from 1; the row after the last one is the end.

        Raises InvalidEdit for a place that the text does not have.
        """
        if row == len(self.bounds) + 1 and column == 1:
            return self.length
        if 1 <= row <= len(self.bounds):
            begin, end = self.bounds[row - 1]
            if 1 <= column <= end - begin + 1:
                return begin + column - 1
        raise InvalidEdit(f"the repair points at {row}:{column}, which the file does not have")

    def stretch(self, span: Span) -> tuple[int, int]:
        """Return the offsets of a span, end exclusive. Raises InvalidEdit if it is not in the text."""
        start, end = self.offset(span.row, span.column), self.offset(span.end_row, span.end_column)
        if start > end:
            raise InvalidEdit(f"the repair's span at {span.row}:{span.column} ends before it begins")
        return start, end


@dataclass(frozen=True)
class EditPlan:
    """The edits of one round: replacements by position, applied fixes and postponed fixes."""

    replacements: tuple[Replacement, ...]
    applied: tuple[Fix, ...]
    postponed: tuple[Fix, ...]

    def splice(self, text: str) -> str:
        """Return the text with every replacement made."""
        pieces: list[str] = []
        done = 0
        for start, end, content in self.replacements:
            pieces += text[done:start], content
            done = end
        return "".join([*pieces, text[done:]])

    def carry(self, offset: int) -> tuple[int, int]:
        """Return the range of the new text, both ends inclusive, for a position in the old text.

        It is one position unless a replacement touches it.
        """
        first = bisect_left(self.replacements, offset, key=itemgetter(1))
        shift, low, high = self._shifts[first], None, None
        for start, end, content in islice(self.replacements, first, None):
            if start > offset:
                break
            low = start + shift if low is None else low
            high = start + shift + len(content)
            shift += len(content) - (end - start)
        if low is None or high is None:
            return offset + shift, offset + shift
        return low, high

    @cached_property
    def _shifts(self) -> tuple[int, ...]:
        """How far each replacement moves by those before it, and then the end of the text."""
        longer = (len(content) - (end - start) for start, end, content in self.replacements)
        return tuple(accumulate(longer, initial=0))


@lru_cache(maxsize=4)
def newline_of(text: str) -> str:
    r"""Return the most frequent newline of a text, the first one among equals; \n without any."""
    counts = Counter(_NEWLINE.findall(text))
    return counts.most_common(1)[0][0] if counts else "\n"


def plan(text: str, fixes: Sequence[Fix]) -> EditPlan:
    """Choose fixes to apply together, in the given order.

    All edits of a fix are taken or none. A fix with an edit that overlaps or touches an edit of an earlier
    one is postponed, but an edit that both have in common is made once. Content gets the newline of the
    text. Raises InvalidEdit for a fix whose spans lie outside the text or overlap each other.
    """
    rows, newline = RowOffsets.of(text), newline_of(text)
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
    return EditPlan(tuple(taken), tuple(applied), tuple(postponed))


def apply(text: str, fixes: Sequence[Fix]) -> tuple[str, list[Fix], list[Fix]]:
    """Apply one round of fixes; return the text, the applied fixes, and the postponed ones.

    plan chooses the fixes; it raises InvalidEdit. The imports of a fix are not considered.
    """
    chosen = plan(text, fixes)
    return chosen.splice(text), list(chosen.applied), list(chosen.postponed)


def _place(edit: Replacement) -> tuple[int, int]:
    return edit.start, edit.end


def _touches(edit: Replacement, taken: Sequence[Replacement]) -> bool:
    """Check whether an edit touches one of taken; taken edits are sorted and do not overlap."""
    first = bisect_left(taken, edit.start, key=lambda old: old.end)
    return first < len(taken) and taken[first].start <= edit.end


def _placed(rows: RowOffsets, newline: str, fix: Fix) -> list[Replacement]:
    placed = [
        Replacement(*rows.stretch(edit.span), _NEWLINE.sub(newline, edit.content)) for edit in fix.edits
    ]
    placed.sort(key=_place)
    for before, after in pairwise(placed):
        if after.start < before.end:
            raise InvalidEdit("the edits of the repair overlap each other")
    return placed
