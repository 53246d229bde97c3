"""`--baseline` and `--write-baseline` of `shapefix check`."""

# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence

from shapefix.cli.output import counted
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import UnusableFile, echo_err
from shapefix.diagnostics import Diagnostic
from shapefix.engine.baseline import (
    BaselineEntry,
    UnusableBaseline,
    baseline_entry,
    match_baseline,
    read_baseline,
    write_baseline,
)
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import Settings
from shapefix.light_dataclasses import dataclass
from shapefix.report.view import one_line
from shapefix.sources.text import reason

_MOST_STALE = 5
"""The largest number of listed stale entries, without --verbose."""


@dataclass(frozen=True)
class BaselineFile:
    """The baseline of a run: its file, as the user named it, and its entries."""

    name: str
    entries: tuple[BaselineEntry, ...]

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.realpath(self.name))

    def only_new(
        self,
        session: CheckSession,
        settings: Settings,
        reported: Sequence[Diagnostic],
        request: CheckRequest,
    ) -> tuple[Diagnostic, ...]:
        """Drop the findings in the baseline, and report its stale entries."""
        found = [each for each in reported if not each.is_answer]
        matched = match_baseline(self.entries, self._with_entries(session, found))
        if not request.quiet:
            accepted = len(found) - len(matched.new)
            if accepted:
                echo_err(f"note: {counted(accepted, 'finding')} in {one_line(self.name)} not shown")
            held_back = match_baseline(matched.left, self._with_entries(session, session.hidden()))
            stale = [each for each in held_back.left if self._is_checked(each, session, settings)]
            self._report_stale(stale, request.verbose)
        new = set(map(id, matched.new))
        return tuple(each for each in reported if each.is_answer or id(each) in new)

    def _report_stale(self, stale: Sequence[BaselineEntry], verbose: bool) -> None:
        if not stale:
            return
        shown = stale if verbose else stale[:_MOST_STALE]
        listed = ", ".join(f"{each.code} in {one_line(each.path)}" for each in shown)
        more = f" and {len(stale) - len(shown)} more" if len(stale) > len(shown) else ""
        entries = "1 entry is" if len(stale) == 1 else f"{len(stale)} entries are"
        echo_err(
            f"note: {one_line(self.name)}: {entries} stale ({listed}{more});"
            " `--write-baseline` removes what is no longer found"
        )

    def write(self, session: CheckSession, settings: Settings, found: Sequence[Diagnostic]) -> None:
        """Write the findings; entries of files and rules not in this run stay. Raises UnusableFile.

        Findings held back in a folder are accepted, too: a hook that passes file names reports them.
        """
        kept = [each for each in self.entries if not self._is_checked(each, session, settings)]
        written = [entry for _, entry in self._with_entries(session, found)]
        held_back = [entry for _, entry in self._with_entries(session, session.hidden())]
        try:
            write_baseline(self.name, [*kept, *written, *held_back])
        except OSError as error:
            raise UnusableFile(self.name, f"cannot be written: {reason(error)}") from None
        hidden = f" ({len(held_back)} more held back)" if held_back else ""
        others = f", and kept {counted(len(kept), 'other')}" if kept else ""
        echo_err(f"Wrote {counted(len(written), 'finding')}{hidden} to {one_line(self.name)}{others}.")

    def _with_entries(
        self, session: CheckSession, found: Sequence[Diagnostic]
    ) -> list[tuple[Diagnostic, BaselineEntry]]:
        return [
            (each, baseline_entry(each, session.real_path(each.span.path), self.folder, session.source))
            for each in found
        ]

    def _is_checked(self, entry: BaselineEntry, session: CheckSession, settings: Settings) -> bool:
        """Whether the run covers an entry: its file and rule were checked, or its file is gone."""
        path = os.path.normpath(os.path.join(self.folder, entry.path))
        if not session.is_given(path):
            return not os.path.lexists(path)
        failed = {session.real_path(each.path) for each in session.failures()}
        if path in failed:
            return False
        # Errors stored in notebooks have codes without a rule, which are always on.
        is_rule = any(code == entry.code for code, *_ in settings.table)
        return not is_rule or entry.code in settings.rules(path)


def open_baseline(name: str, *, write: bool) -> BaselineFile:
    """Read a baseline; one to write may be missing. Raises UnusableFile.

    A file with another content is not overwritten.
    """
    if write and not os.path.lexists(name):
        return BaselineFile(name, ())
    advice = "remove it, or name another file" if write else "`--write-baseline` writes a baseline"
    try:
        return BaselineFile(name, read_baseline(name))
    except UnusableBaseline as error:
        raise UnusableFile(name, f"{error}; {advice}") from None
