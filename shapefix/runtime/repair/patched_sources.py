"""Repaired copies of the user's files; the files themselves do not change."""

# Paths are plain strings here, as in sources.

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from shapefix.diagnostics import Fix, Span, cell_of
from shapefix.repair.edits import EditPlan, InvalidEdit, RowOffsets, plan
from shapefix.sources.notebook_text import NotebookText
from shapefix.sources.text import SourceText, Unreadable, read_source


class OriginalSources:
    """The files as they were when they were first read, by real path; a cell of a notebook is a file, too."""

    def __init__(self) -> None:
        self._known: dict[str, SourceText] = {}

    def source(self, path: str) -> SourceText:
        """The text of the file or cell at path. Raises Unreadable."""
        key = os.path.realpath(path)
        if key not in self._known:
            cell = cell_of(key)
            self._known[key] = read_source(key) if cell is None else self._cell(key, *cell)
        return self._known[key]

    def _cell(self, key: str, notebook: str, number: int) -> SourceText:
        source = self.source(notebook)
        text = source.cell(number) if isinstance(source, NotebookText) else None
        if text is None:
            raise Unreadable("has no such cell")
        return SourceText(key, text)


@dataclass(frozen=True)
class AppliedRepair:
    """The changes of one repair: a plan for each file, by real path."""

    before: PatchedSources
    plans: Mapping[str, EditPlan]

    def rows(self, span: Span) -> range:
        """The possible rows of a place after the repair."""
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
class PatchedSources:
    """The texts of the repaired files, by real path, over the originals."""

    originals: OriginalSources
    texts: Mapping[str, str]

    def text(self, path: str) -> str:
        """The text of a file in this copy. Raises Unreadable."""
        key = os.path.realpath(path)
        changed = self.texts.get(key)
        return self.originals.source(key).text if changed is None else changed

    def read(self, path: str) -> str | None:
        """The text of a file in this copy, if it can be read."""
        try:
            return self.text(path)
        except Unreadable:
            return None

    def with_fixes(self, fixes: Sequence[Fix]) -> tuple[PatchedSources, AppliedRepair]:
        """Apply the edits of fixes, all of them or none.

        Raises Unfit if an edit does not fit the texts or conflicts with another one, and Unreadable. The
        imports of a fix must be among its edits.
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
        patched = PatchedSources(self.originals, texts)
        if any(cell_of(key) for key in plans):
            try:
                for _, new in patched.file_changes():
                    new.encode()
            except Unreadable as error:
                # The edit is in a row with IPython's own syntax.
                raise InvalidEdit(error.message) from None
        return patched, AppliedRepair(self, plans)

    def origin(self, span: Span) -> Span:
        """The place in the user's file of a place in this copy.

        A row that only the copy has is mapped to the row before it.
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
        """Each changed file or cell before and after, by path."""
        for key, text in sorted(self.texts.items()):
            old = self.originals.source(key)
            if text != old.text:
                yield old, replace(old, text=text)

    def file_changes(self) -> Iterator[tuple[SourceText, SourceText]]:
        """Each changed file before and after, by path; the changed cells of a notebook are one change."""
        notebooks: dict[str, dict[int, str]] = {}
        for old, new in self.changes():
            cell = cell_of(old.path)
            if cell is None:
                yield old, new
            else:
                notebooks.setdefault(cell[0], {})[cell[1]] = new.text
        for path, texts in notebooks.items():
            whole = self.originals.source(path)
            assert isinstance(whole, NotebookText)
            yield whole, whole.with_cells(texts)

    def write_overlay(self, folder: Path) -> Path | None:
        """Write the changed texts to a folder for the agent; None if nothing is changed.

        Raises Unreadable for a text that cannot be encoded in the encoding of its file.
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
        """The changed texts, as the identity of this copy."""
        return tuple((new.path, new.text) for _, new in self.changes())


def _row(rows: RowOffsets, offset: int) -> int:
    for number, (_, end) in enumerate(rows.bounds, 1):
        if offset <= end:
            return number
    return len(rows.bounds)
