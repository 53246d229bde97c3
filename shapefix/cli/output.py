"""Write findings, failures and diffs: results to stdout, messages to stderr."""

# ruff: noqa: PTH100, PTH103, PTH120, PTH123

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from shapefix.cli.terminal import UnusableFile, echo_err
from shapefix.diagnostics import Diagnostic, Failure, Unchecked
from shapefix.report.view import View, failure_line, is_visible, one_line, unchecked_line, visible
from shapefix.sources.text import reason


def write(pieces: Iterable[str]) -> None:
    """Write pieces of text as they are."""
    sys.stdout.writelines(pieces)


@contextmanager
def output_to(name: str | None) -> Iterator[None]:
    """Redirect stdout to a file, and create its folders, as ruff does. Raises UnusableFile."""
    if name is None:
        yield
        return
    try:
        os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)
        file = open(name, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    except OSError as error:
        raise UnusableFile(name, f"cannot be written: {reason(error)}") from None
    with file, redirect_stdout(file):
        yield


def write_diff(view: View, path: str, old: str, new: str) -> None:
    """Write the unified diff between two texts of the file at path."""
    from shapefix.repair.difference import unified

    lines = list(unified(view.relative(path), old, new))
    if not view.color:
        # In a file or a pipe the diff is for `git apply`: every byte counts.
        keep = "\n\t" if sys.stdout.isatty() else "\n\t\r\f"
        write(visible(line, keep) for line in lines)
        if not sys.stdout.isatty() and not is_visible("".join(lines), keep):
            echo_err(
                f"note: {one_line(view.relative(path))}: control characters are replaced in this diff, so it"
                " cannot be applied; use `shapefix fix --apply`"
            )
        return
    from rich.console import Console

    from shapefix.report.difference import colored

    console = Console(file=sys.stdout, force_terminal=True, color_system="standard", highlight=False)
    console.print(colored(lines), soft_wrap=True, end="")


MOST_ALIKE = 5
"""The largest number of lines for failures with one message, without --verbose."""


def report_failures(failures: Iterable[Failure], view: View) -> None:
    """Report each unchecked file in one line; many files of Python 2 have one message, and few lines."""
    by_message: dict[str, list[Failure]] = {}
    for failure in failures:
        alike = by_message.setdefault(failure.message, [])
        alike.append(failure)
        if view.verbose or len(alike) <= MOST_ALIKE:
            echo_err(failure_line(failure, view))
    for message, alike in by_message.items():
        if not view.verbose and len(alike) > MOST_ALIKE:
            left = counted(len(alike) - MOST_ALIKE, "more file")
            echo_err(f"error: {left} (--verbose lists them): {one_line(message)}")


def report_rejected(rejected: Iterable[tuple[Diagnostic, str]], view: View) -> None:
    """Report each rejected repair, and the reason, in one line."""
    for finding, why in rejected:
        place = f"{one_line(view.relative(finding.span.path))}:{finding.span.row}:{finding.span.column}"
        echo_err(f"not repaired: {place}: {finding.code}: {one_line(why)}")


def report_skipped_links(paths: Sequence[str], view: View, verbose: bool) -> None:
    """Say that symbolic links out of the given folders were skipped; verbose names each of them."""
    if len(paths) > 1 and not verbose:
        echo_err(
            f"skipped {len(paths)} symbolic links to files outside the given folders (--verbose lists them)"
        )
        return
    for path in paths:
        target = one_line(os.path.realpath(view.absolute(path)))
        echo_err(
            f"skipped {one_line(view.relative(path))}: symbolic link to {target}, outside the given folders"
        )


def report_library_copies(copies: Sequence[tuple[str, str]], view: View) -> None:
    """Say that the repositories of libraries in the given folders were skipped."""
    for path, library in copies:
        shown = one_line(view.relative(path))
        echo_err(f"skipped {shown}: a copy of {library} (`shapefix check {shown}` checks it)")


MOST_NOTES = 5
"""The largest number of notes about unchecked places, without --verbose."""


def report_unchecked(unchecked: Iterable[Unchecked], view: View, verbose: bool) -> None:
    """Report unchecked places, one per line.

    Without verbose these are at most five lines, one for each reason in a file.
    """
    groups: dict[object, list[Unchecked]] = {}
    for each in unchecked:
        groups.setdefault(each if verbose else (each.path, each.kind), []).append(each)
    shown = list(groups.values()) if verbose else list(groups.values())[:MOST_NOTES]
    for first, *others in shown:
        echo_err(unchecked_line(first, view, len(others)))
    if len(groups) > len(shown):
        left = sum(len(group) for group in list(groups.values())[len(shown) :])
        echo_err(f"note: {counted(left, 'more place')} could not be checked (--verbose shows all)")


def report_unchanged(paths: Sequence[str], view: View) -> None:
    """Report files with findings to repair outside the given paths."""
    outside = [one_line(view.relative(path)) for path in paths]
    if outside:
        listed = ", ".join(outside[:5]) + (f" and {len(outside) - 5} more" if len(outside) > 5 else "")
        echo_err(f"not changed, because outside the given paths: {listed}")


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
