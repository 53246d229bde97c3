"""A copy of the user's files with repairs in it; the files themselves stay as they are."""

# Paths are plain strings here, as in sources.

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from shapefix.diagnostics import Fix, Span
from shapefix.repair.edits import EditPlan, InvalidEdit, RowOffsets, plan
from shapefix.sources.text import SourceText, Unreadable, read_source


class Originals:
    """The files as they were when they were first looked at, by their real paths."""

    def __init__(self) -> None:
        self._known: dict[str, SourceText] = {}

    def source(self, path: str) -> SourceText:
        """The text of the file at path. Raises Unreadable."""
        key = os.path.realpath(path)
        if key not in self._known:
            self._known[key] = read_source(key)
        return self._known[key]


@dataclass(frozen=True)
class Step:
    """What one repair has done to the texts before it: a plan for each file, by its real path."""

    before: Draft
    plans: Mapping[str, EditPlan]

    def rows(self, span: Span) -> range:
        """The rows in which a place of the texts before may lie now."""
        key = os.path.realpath(span.path)
        made = self.plans.get(key)
        if made is None:
            return range(span.row, span.row + 1)
        old = self.before.text(key)
        try:
            start = RowOffsets.of(old).offset(span.row, span.column)
        except InvalidEdit:
            return range(0)
        now = RowOffsets.of(made.splice(old))
        low, high = made.carry(start)
        return range(_row(now, low), _row(now, high) + 1)


@dataclass(frozen=True)
class Draft:
    """The texts of the files that repairs have changed, by their real paths, over the originals."""

    originals: Originals
    texts: Mapping[str, str]

    def text(self, path: str) -> str:
        """The text that the file at path has in this copy. Raises Unreadable."""
        key = os.path.realpath(path)
        changed = self.texts.get(key)
        return self.originals.source(key).text if changed is None else changed

    def read(self, path: str) -> str | None:
        """The same, None where it cannot be had."""
        try:
            return self.text(path)
        except Unreadable:
            return None

    def repaired(self, fixes: Sequence[Fix]) -> tuple[Draft, Step]:
        """The copy with the edits of fixes made, all of them or none.

        Raises Unfit where an edit does not fit the texts or another one, and Unreadable. What a fix imports
        has to be among its edits.
        """
        by_file: dict[str, list[Fix]] = {}
        for fix in fixes:
            for key in {os.path.realpath(edit.span.path) for edit in fix.edits}:
                own = tuple(edit for edit in fix.edits if os.path.realpath(edit.span.path) == key)
                by_file.setdefault(key, []).append(replace(fix, edits=own))
        plans = {key: plan(self.text(key), parts) for key, parts in by_file.items()}
        if any(each.postponed for each in plans.values()):
            raise InvalidEdit("the repairs overlap each other")
        texts = {**self.texts, **{key: each.splice(self.text(key)) for key, each in plans.items()}}
        return Draft(self.originals, texts), Step(self, plans)

    def origin(self, span: Span) -> Span:
        """Where a place of this copy is in the file as it was: the row is the user's own.

        A place that only the copy has is that of the row before it.
        """
        old, new = self.originals.source(span.path).text, self.text(span.path)
        if old == new:
            return span
        match = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
        for _, first, last, begin, end in match.get_opcodes():
            if begin <= span.row - 1 < end:
                row = min(first + span.row - 1 - begin, max(last - 1, 0)) + 1
                return replace(span, row=row, end_row=row + span.end_row - span.row)
        return span

    def changes(self) -> Iterator[tuple[SourceText, SourceText]]:
        """Each file that is another one now, as it was and as it is, by path."""
        for key, text in sorted(self.texts.items()):
            old = self.originals.source(key)
            if text != old.text:
                yield old, replace(old, text=text)

    def laid_out(self, folder: Path) -> Path | None:
        """Write the changed texts into a folder, as the agent takes them; None where nothing is changed.

        Raises Unreadable for a text that the encoding of its file does not have.
        """
        named: dict[str, str] = {}
        for number, (_, new) in enumerate(self.changes()):
            target = folder / f"{number}-{os.path.basename(new.path)}"  # noqa: PTH119
            target.write_bytes(new.encode())
            named[new.path] = str(target)
        if not named:
            return None
        listed = folder / "overlay.json"
        listed.write_text(json.dumps(named), "utf-8")
        return listed

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells this copy from others: the changed texts."""
        return tuple((new.path, new.text) for _, new in self.changes())


def _row(rows: RowOffsets, offset: int) -> int:
    for number, (_, end) in enumerate(rows.bounds, 1):
        if offset <= end:
            return number
    return len(rows.bounds)
