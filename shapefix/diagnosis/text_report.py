"""The text of a diagnosis: the error, the user's own lines, the cause, and the command for a confirmation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from textwrap import wrap

from shapefix.diagnosis.causes import Confidence, ErrorCause
from shapefix.diagnosis.diagnose import Diagnosis
from shapefix.diagnosis.error_reports import StackFrame
from shapefix.diagnosis.live_facts import LiveFacts
from shapefix.diagnosis.project_frames import ProjectFrame, file_of, is_installed
from shapefix.diagnosis.size_origins import SizeOrigin
from shapefix.diagnostics import TRACED_ERROR, Applicability, Diagnostic, Evidence, Role
from shapefix.report.cells import wrapped
from shapefix.report.essentials import essential_steps
from shapefix.report.full import render as render_findings
from shapefix.report.paint import painter
from shapefix.report.view import View, one_line, visible

_MOST_FRAMES = 6
"""The most frames of the user's own code; the middle of a longer stack is left out."""
_MOST_OTHERS = 4
_MOST_ORIGINS = 6
_MOST_EARLIER = 3
_MOST_MESSAGE = 400
_STYLES_OF_PATCH = {"+": "fix", "-": "error", "@": "gutter"}
_PACKAGE = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_OF_VALUES = frozenset({"SF505", "SF512", "SF517", "SF522"})
"""The rules about dtypes and class ids among those about dimensions."""
_WITHOUT_LINE = frozenset({"command-line"})
"""The error pages about no line of the code."""
_RULED = re.compile(r"^[=-]{20,}\n?", re.MULTILINE)
"""Lines of a message that only divide it."""
_STATED_SIZE = re.compile(r"\d+(?: comes|, `| is stated)|`\w+` is \d+")


def render(
    diagnosis: Diagnosis, view: View, patch: Sequence[str] = (), *, is_applied: bool = False
) -> Iterator[str]:
    """Render a diagnosis on one screen.

    patch has the lines of the cause's fix, and is_applied is whether it gets written anyway.
    """
    yield from _error(diagnosis, view)
    yield from _stack(diagnosis, view)
    if diagnosis.live is not None:
        yield from _live(diagnosis.live, view)
    if diagnosis.causes:
        first, *others = diagnosis.causes
        yield _styled(f"\nCause: {confidence_text(first, len(diagnosis.causes))}\n", "name", view)
        shown = "".join(render_findings([first.finding], (), _quiet(view)))
        yield shown.rstrip("\n") + "\n"
        if first.confidence is Confidence.POSSIBLE:
            yield from _hidden(first, view)
        elif first.finding.code == TRACED_ERROR and diagnosis.explanation is not None:
            yield from _hidden(first, view)
            yield "\n"
            yield from _paragraph(diagnosis.explanation.look, view)
        yield from _origins(first, view)
        yield from _others(others, view)
        if patch:
            yield "\n"
            for line in patch:
                shown = visible(line.replace("\r\n", "\n"), "\n\t")
                yield _styled(shown, _STYLES_OF_PATCH.get(shown[:1], ""), view)
        if patch and not is_applied:
            yield from _how_to_apply(diagnosis, first.finding, patch)
    else:
        yield from _unexplained(diagnosis, view)
    if "device-side assert" in diagnosis.error.message:
        yield "\nnote: the GPU reports such an error late; another line may be the failing one\n"
    if diagnosis.is_changed:
        yield "\nnote: sources have changed since this run; lines are matched by their text\n"
    if diagnosis.other_cells:
        named = "cells" if len(diagnosis.other_cells) > 1 else "cell"
        yield f"\nnote: other errors are stored in {named} {', '.join(map(str, diagnosis.other_cells))}\n"
    script = _script(diagnosis, view) if diagnosis.live is None else ""
    if script and diagnosis.causes and diagnosis.causes[0].confidence is not Confidence.PROVED:
        yield f"\nTo confirm it: shapefix probe {script}\n"


def _quiet(view: View) -> View:
    return replace(view, quiet=True, coverage=None)


def _error(diagnosis: Diagnosis, view: View) -> Iterator[str]:
    error = diagnosis.error
    message = _RULED.sub("", visible(error.message, "\n\t")).strip("\n")
    if len(message) > _MOST_MESSAGE:
        message = message[:_MOST_MESSAGE] + "…"
    name = _styled(error.name, "error", view)
    yield ": ".join(part for part in (name, message) if part) + "\n"
    last = diagnosis.report
    if (last.type, last.message) != (error.type, error.message):
        what = "the log ends" if diagnosis.live is None else "the cell ended"
        yield f"({what} with {last.name}: {one_line(last.message)[:100]})\n"
    elif not diagnosis.causes:
        for each in error.earlier[-_MOST_EARLIER:]:
            yield from _paragraph(f"(before it: {each.name}: {one_line(each.message)[:200]})", view)
    explanation = diagnosis.explanation
    is_repeated = explanation is not None and any(
        each.finding.message.startswith(explanation.what.removesuffix(".")) for each in diagnosis.causes[:1]
    )
    if explanation is not None and not is_repeated:
        yield from _paragraph(explanation.what, view)


def _stack(diagnosis: Diagnosis, view: View) -> Iterator[str]:
    """Render the user's own frames, and the number of others between them."""
    frames = diagnosis.error.frames
    if not frames and not diagnosis.report.frames:
        explanation = diagnosis.explanation
        if explanation is None or explanation.name not in _WITHOUT_LINE:
            yield "\nThe log has no traceback: the line that fails is not known.\n"
        for each in diagnosis.frames:
            path, lines = one_line(view.relative(each.span.path)), f"{each.span.row} to {each.span.end_row}"
            yield f"The message was printed by the `except` after lines {lines} of {path}.\n"
        return
    known = {id(each.frame): each for each in diagnosis.frames}
    if not any(id(frame) in known for frame in frames):
        frames = diagnosis.report.frames
    if diagnosis.holder is not None:
        yield f"\nCell {diagnosis.holder} has raised it when it last ran.\n"
    rows: list[tuple[str, str]] = []
    for is_own, group in groupby(frames, key=lambda frame: id(frame) in known):
        members = list(group)
        if not is_own:
            rows.append(("", _folded(members)))
            continue
        for frame in members:
            place = known[id(frame)]
            row = _where(place, view), one_line(frame.text or f"in {frame.function}")
            # A generator expression has a frame of its own, in the same line.
            if rows[-1:] != [row]:
                rows.append(row)
    own = [number for number, (where, _) in enumerate(rows) if where]
    if len(own) > _MOST_FRAMES:
        first, last = own[2], own[-3]
        rows[first:last] = [("", f"… {sum(first <= each < last for each in own)} more lines of yours")]
    if not rows:
        return
    yield "\n"
    size = max(len(where) for where, _ in rows)
    for where, text in rows:
        yield from _row(f"  {where:<{size}}  {text}" if where else f"  {text}", view)


def _live(live: LiveFacts, view: View) -> Iterator[str]:
    """Render the values of the failing line, and the module with the error."""
    if live.values:
        yield _styled("\nValues in the failing line:\n", "name", view)
        size = max(len(value.name) for value in live.values)
        for value in live.values:
            yield from _row(f"  {one_line(value.name):<{size}}  {one_line(value.text)}", view)
    if live.layer is not None and live.layer.name:
        yield _styled("\nThe module that raised:\n", "name", view)
        yield from _row(f"  {one_line(live.layer.name)} = {one_line(live.layer.code)}", view)
        for value in live.layer.arguments:
            yield from _row(f"    {one_line(value.name)}: {one_line(value.text)}", view)


def _styled(text: str, style: str, view: View) -> str:
    """Return a text in a style, if the view has colors."""
    start, end = len(text) - len(text.lstrip("\n")), len(text.rstrip("\n"))
    if not view.color or not style or start >= end:
        return text
    # A painter replaces control characters, and ends its lines.
    shown = painter(True)([[(text[start:end].replace("\t", "    "), style)]]).rstrip("\n")
    return f"{text[:start]}{shown}{text[end:]}"


def _row(line: str, view: View) -> Iterator[str]:
    yield (line if len(line) <= view.width else line[: view.width - 1] + "…") + "\n"


def _how_to_apply(diagnosis: Diagnosis, finding: Diagnostic, patch: Sequence[str]) -> Iterator[str]:
    """Yield the option to write the fix; in a session, a fix of one cell goes into a new one."""
    if diagnosis.live is None:
        unsafe = finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
        yield f"\nTo write this repair: add --apply{' --unsafe-fixes' if unsafe else ''}\n"
    elif sum(line.startswith("+++ ") for line in patch) == 1:
        yield "\nTo put this repair into a new cell: %shapefix why --apply\n"


def _where(place: ProjectFrame, view: View) -> str:
    """Return the place of a frame, as the traceback has it if it is not found here."""
    frame = place.frame
    if not place.is_missing:
        return _shortened(one_line(f"{view.relative(place.span.path)}:{place.row or frame.row}"), view)
    path = f"cell [{frame.cell}]" if frame.cell is not None else frame.path
    return _shortened(one_line(f"{path}:{frame.row}"), view)


def _shortened(place: str, view: View) -> str:
    """Return the end of a long place, from the start of a folder: `…/models/transformer.py:237`."""
    longest = view.width // 2
    if len(place) <= longest:
        return place
    end = place[1 - longest :]
    start = re.search(r"[/\\]", end)
    return f"…{end[start.start() :] if start is not None else end}"


def _folded(frames: Sequence[StackFrame]) -> str:
    """Return a line for frames of libraries."""
    names = dict.fromkeys(found[1] if (found := _PACKAGE.search(frame.path)) else "" for frame in frames)
    packages = ", ".join(name for name in names if name) or "Python"
    inside = packages if all(is_installed(frame.path) for frame in frames) else "other files"
    return f"… {len(frames)} frame{'s' if len(frames) > 1 else ''} in {inside}"


def confidence_text(cause: ErrorCause, number: int) -> str:
    """Return the certainty of the first cause among some, in words."""
    if cause.confidence is Confidence.LIKELY:
        return f"most likely of {number}" if number > 1 else "most likely"
    return cause.confidence.value


def _hidden(cause: ErrorCause, view: View) -> Iterator[str]:
    """Render the places of a traced cause beyond those of the short form of its finding."""
    shown = {(step.span.path, step.span.row) for step in essential_steps(cause.finding)}
    steps = [step for step in cause.finding.evidence if step.role is Role.CAUSE]
    left = [step for step in steps if (step.span.path, step.span.row) not in shown]
    if not view.verbose:
        yield from _places("\nThese lines have a part in it, too:\n", left, view)


def _origins(cause: ErrorCause, view: View) -> Iterator[str]:
    code = cause.finding.code
    is_about_sizes = code.startswith(("SF1", "SF5")) and code not in _OF_VALUES
    is_of_sizes = is_about_sizes or any(_STATED_SIZE.match(each.message) for each in cause.origins)
    what = "sizes" if is_of_sizes else "values"
    yield from _places(f"\nWhere the {what} come from:\n", cause.origins, view)


def _places(title: str, steps: Sequence[Evidence], view: View) -> Iterator[str]:
    if not steps:
        return
    yield title
    places = [one_line(f"{view.relative(each.span.path)}:{each.span.row}") for each in steps]
    size = max(map(len, places))
    for place, each in zip(places[:_MOST_ORIGINS], steps, strict=False):
        rows = wrapped(one_line(each.message), view.width, view.width - size - 4, hang=4)
        yield f"  {place:<{size}}  " + "\n".join(rows) + "\n"


def _others(others: Sequence[ErrorCause], view: View) -> Iterator[str]:
    if not others:
        return
    yield "\nAlso possible:\n"
    for each in others[:_MOST_OTHERS]:
        span = each.finding.span
        place = f"{one_line(view.relative(span.path))}:{span.row}:{span.column}"
        yield f"  {place}: {each.finding.code} {one_line(each.finding.message)}\n"
    if len(others) > _MOST_OTHERS:
        yield f"  and {len(others) - _MOST_OTHERS} more\n"


def _unexplained(diagnosis: Diagnosis, view: View) -> Iterator[str]:
    found = diagnosis.explanation
    if found is None:
        yield "\nshapefix does not know this message, and `shapefix check` finds no cause for it.\n"
        return
    if diagnosis.layer is not None:
        layer = diagnosis.layer
        place = f"{one_line(view.relative(layer.path))}:{layer.row}"
        yield f"\nYour layer: `{one_line(layer.name)}` = {one_line(layer.code)} at {place}\n"
        yield f"It takes {layer.wanted}, and {layer.arrived} arrived.\n"
        if layer.setting is not None:
            yield f"{layer.wanted} is `{one_line(layer.setting.name)}` at {_at(layer.setting, view)}\n"
        if layer.load is not None:
            yield f"The data with {layer.arrived} is loaded at {_at(layer.load, view)}\n"
    yield "\nUsual causes:\n"
    for cause in found.causes:
        yield from _paragraph(cause, view, "  - ", "    ")
    yield "\n"
    look = found.look
    if not diagnosis.error.frames:
        look = look.replace("this line", "the line that fails")
    yield from _paragraph(look, view)


def _at(origin: SizeOrigin, view: View) -> str:
    return one_line(f"{view.relative(origin.path)}:{origin.row}: {origin.code}")


def _paragraph(text: str, view: View, first: str = "", rest: str = "") -> Iterator[str]:
    lines = wrap(
        visible(text), view.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    yield from (f"{line}\n" for line in lines)


def _script(diagnosis: Diagnosis, view: View) -> str:
    """Return the path of the entry script for a command line, "" if it is unknown."""
    frames = diagnosis.frames
    if not frames or frames[0].is_missing:
        return ""
    if frames[0].frame.function != "<module>" and not frames[0].frame.is_cell:
        return ""
    return shlex.quote(one_line(view.relative(file_of(frames[0].span.path))))
