"""`shapefix guard`: show asserts, annotations or comments as a diff, write them, or remove them."""

# ruff: noqa: PTH109

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.output import counted, report_failures, write, write_diff
from shapefix.cli.terminal import echo_err, use_color, width
from shapefix.diagnostics import Failure
from shapefix.guards.run import GuardedFile, GuardFailed, guarded
from shapefix.report.view import View, one_line
from shapefix.sizes.run import split_name
from shapefix.sizes.targets import UnknownTarget
from shapefix.sources.text import Unreadable, reason

_NOUNS = {"": "guard", "asserts": "guard", "jaxtyping": "annotation", "comments": "comment", "oom": "handler"}
_NOTHING = {"comment": "no sizes worth a comment", "handler": "no training step that a handler fits"}


def guard(
    target: str,
    apply: bool,
    remove: bool,
    style: str | None,
    oom: bool,
    output_format: str,
    quiet: bool,
    color: str,
) -> int:
    """Show, write or remove the guards of a file or of a function in it."""
    view = View(os.getcwd(), width(sys.stdout), use_color(color, sys.stdout))
    path, name = split_name(target)
    if oom and style is not None:
        echo_err("error: --oom and --style exclude each other")
        return FAILED
    style = "oom" if oom else style
    try:
        made = guarded(path, name, remove, style)
        if apply and made.repair.changes:
            _write(made)
    except GuardFailed as error:
        report_failures([error.failure], view)
        return FAILED
    except UnknownTarget as error:
        echo_err(f"error: {one_line(str(error))}")
        return FAILED
    if output_format == "json":
        write([json.dumps(_document(made, view, applied=apply), indent=2), "\n"])
    elif not apply:
        for changed, old, new in made.repair.changes:
            write_diff(view, changed, old, new)
    if not quiet:
        for note in made.notes:
            echo_err(f"note: {one_line(note)}")
        echo_err(_summary(made, view, _NOUNS[style or ""], remove=remove, wrote=apply))
    return FOUND if made.repair.changes and not apply else CLEAN


def _write(made: GuardedFile) -> None:
    from shapefix.repair import writes

    old, new = made.repair.old, made.repair.new
    try:
        writes.write(old.path, new.encode(), old.encode())
    except (Unreadable, writes.LeftAlone) as error:
        raise GuardFailed(Failure(old.path, f"cannot be guarded: {error}")) from None
    except OSError as error:
        raise GuardFailed(Failure(old.path, f"cannot be written: {reason(error)}")) from None


def _summary(made: GuardedFile, view: View, noun: str, *, remove: bool, wrote: bool) -> str:
    path = one_line(view.relative(made.repair.old.path))
    if remove:
        what = counted(made.removed, noun)
        if not made.removed:
            return f"{path} has no {noun}s of shapefix."
        return f"Removed {what} from {path}." if wrote else f"{what} would be removed (--apply removes them)."
    number = len(made.guards)
    what = f"{counted(number, noun)} in {counted(len({each.row for each in made.guards}), 'function')}"
    if not made.repair.changes and not number:
        return f"{path}: {_NOTHING.get(noun, 'no certainly needed sizes')}."
    if not made.repair.changes:
        return f"{path} is up to date: {what}."
    return f"Wrote {what} of {path}." if wrote else f"{what} (--apply writes them)."


def _document(made: GuardedFile, view: View, *, applied: bool) -> dict[str, object]:
    """Return the content of the JSON format."""
    from shapefix.repair.difference import unified

    changes: Sequence[tuple[str, str, str]] = made.repair.changes
    return {
        "filename": made.repair.old.path,
        "changed": bool(changes),
        "applied": applied and bool(changes),
        "guards": [{"function": each.function, **each.entry} for each in made.guards],
        "previous": made.removed,
        "diff": "".join(
            line for path, old, new in changes for line in unified(view.relative(path), old, new)
        ),
        "notes": list(made.notes),
    }
