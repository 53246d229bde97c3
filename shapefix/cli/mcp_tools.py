"""The tools of `shapefix mcp`: terse answers as JSON objects without empty values."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH109

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from shapefix.api import Findings, check, diagnose, shapes
from shapefix.diagnosis.repaired_causes import patch
from shapefix.diagnosis.text_report import confidence_text
from shapefix.diagnostics import Diagnostic, Evidence, Failure, Unchecked
from shapefix.engine.repairs import FileRepair
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.repair import writes
from shapefix.repair.difference import unified
from shapefix.report.agent import fix_patch, steps_elsewhere
from shapefix.report.view import View
from shapefix.rulebook.pages import page_of, pages_under
from shapefix.sizes.inputs import BadInput
from shapefix.sizes.run import ListingFailed
from shapefix.sizes.targets import UnknownTarget
from shapefix.sources.configuration import ConfigurationError

Answer = dict[str, Any]
MOST = 50
"""The most findings in one answer; the others are counted."""


class ToolFailed(Exception):
    """A request without an answer; the message is the reason, for the agent."""


def check_files(paths: list[str], select: list[str] | None = None, ignore: list[str] | None = None) -> Answer:
    """Find crashes and silent errors in PyTorch training code without running it.

    paths are files, folders or notebooks; select and ignore are rules, such as SF501 or SF5. Each finding
    has its place, the reason, the condition under which it fails, and the fix as a patch for `git apply -p0`.
    """
    try:
        found = check(paths, select=select, ignore=ignore or ())
    except ConfigurationError as error:
        raise ToolFailed(str(error)) from None
    view = _view(found.session)
    return _without_empty(
        findings=[_finding(each, view) for each in found[:MOST]],
        more_findings=len(found[MOST:]),
        values=[{"at": _at(each, view), "value": each.message} for each in found.answers],
        not_checked=_not_checked(found, view),
        summary=f"{len(found)} finding{'' if len(found) == 1 else 's'}",
    )


def fix_files(paths: list[str], apply: bool = False, unsafe: bool = False) -> Answer:
    """Repair findings; return the diff. Nothing is written without apply.

    A safe fix changes nothing of what a running program does. unsafe includes the others.
    """
    try:
        session = CheckSession(paths, Settings(CheckOptions(unsafe_fixes=unsafe or None, jobs=1))).run()
    except ConfigurationError as error:
        raise ToolFailed(str(error)) from None
    view = _view(session)
    repairs: list[FileRepair] = list(session.repair(writes.write if apply else None))
    remaining = [each for each in session.findings() if not each.is_answer]
    changed = [each for each in repairs if each.old != each.new]
    return _without_empty(
        diff="".join(
            line
            for repair in changed
            for path, old, new in repair.changes
            for line in unified(view.relative(path), old, new)
        ),
        repaired=[f"{_at(finding, view)} {finding.code}" for each in changed for finding in each.applied],
        not_repaired=[
            f"{_at(each, view)} {each.code}: {why}" for repair in repairs for each, why in repair.rejected
        ],
        remaining=[f"{_at(each, view)} {each.code} {each.text}" for each in remaining[:MOST]],
        errors=[_place_and_message(each, view) for each in session.failures()],
        written=apply and bool(changed),
        summary=f"{sum(len(each.applied) for each in changed)} repaired, {len(remaining)} remain",
    )


def explain_rule(rule: str) -> Answer:
    """Explain a rule by its code or name, with its repair. A prefix such as SF5 lists its rules."""
    page = page_of(rule)
    if page is not None:
        return {"rule": page.code, "page": page.text(examples=False)}
    below = pages_under(rule)
    if not below:
        raise ToolFailed(f"unknown rule {rule!r}; a prefix such as SF5 lists its rules")
    return {"rules": {each.code: each.summary for each in below}}


def show_shapes(target: str, inputs: list[str] | None = None) -> Answer:
    """Show the source of a model with the size of every tensor beside it, without running it.

    target is a file, or a class or function in it: `model.py:UNet`. inputs are values of parameters:
    `x: f32[8, 3, H, W]`.
    """
    try:
        listings = shapes(target, inputs or ())
    except ListingFailed as error:
        raise ToolFailed(_place_and_message(error.failure, _view())) from None
    except (UnknownTarget, BadInput, ConfigurationError) as error:
        raise ToolFailed(str(error)) from None
    return {"listings": {each.name: str(each) for each in listings}}


def diagnose_log(log: str) -> Answer:
    """Explain the last Python error in the text of a log: its cause in the files here, and the repair.

    Give the whole traceback. Nothing is run.
    """
    try:
        found = diagnose(log)
    except ConfigurationError as error:
        raise ToolFailed(str(error)) from None
    if found is None:
        raise ToolFailed("no error found in the log")
    view = _view(found.session)
    answer: Answer = {
        "error": f"{found.error.type}: {found.error.message}" if found.error.message else found.error.type,
        "meaning": "" if found.explanation is None else found.explanation.what,
        "lines": [
            f"{view.relative(each.span.path)}:{each.span.row}" for each in found.frames if not each.is_missing
        ],
    }
    if found.causes:
        first, *others = found.causes
        answer |= {
            "certainty": confidence_text(first, len(found.causes)),
            "cause": {**_finding(first.finding, view), "steps": _steps(first.evidence, first.finding, view)},
            "patch": "".join(patch(found, view)),
            "also_possible": [f"{_at(each.finding, view)} {each.finding.text}" for each in others],
        }
        answer["cause"].pop("fix", None)
    elif found.explanation is not None:
        answer |= {"usual_causes": list(found.explanation.causes), "look_at": found.explanation.look}
    return _without_empty(**answer)


TOOLS: dict[str, tuple[Callable[..., Answer], bool]] = {
    "check": (check_files, True),
    "shapes": (show_shapes, True),
    "explain": (explain_rule, True),
    "diagnose": (diagnose_log, True),
    "fix": (fix_files, False),
}
"""The tools by name, and whether they only read."""


def _finding(finding: Diagnostic, view: View) -> Answer:
    fix = finding.fix
    return _without_empty(
        code=finding.code,
        severity=finding.severity.value,
        at=_at(finding, view),
        message=finding.text,
        when=finding.condition.text if finding.condition else "",
        steps=_steps(finding.evidence, finding, view),
        fix={}
        if fix is None
        else _without_empty(
            kind=fix.applicability.value, what=fix.message, patch="".join(fix_patch(fix, view))
        ),
    )


def _steps(evidence: Sequence[Evidence], finding: Diagnostic, view: View) -> list[str]:
    return [
        f"{view.relative(step.span.path)}:{step.span.row} {step.message}"
        for step in steps_elsewhere(evidence, finding)
    ]


def _not_checked(found: Findings, view: View) -> list[str]:
    places: list[Failure | Unchecked] = [*found.failures, *found.unchecked]
    return [_place_and_message(each, view) for each in places[:MOST]]


def _place_and_message(what: Failure | Unchecked, view: View) -> str:
    place = [view.relative(what.path), *(str(each) for each in (what.row, what.column) if each)]
    return f"{':'.join(place)} {what.message}"


def _at(finding: Diagnostic, view: View) -> str:
    return f"{view.relative(finding.span.path)}:{finding.span.row}:{finding.span.column}"


def _view(session: CheckSession | None = None) -> View:
    return View(os.getcwd()) if session is None else View(os.getcwd(), sources=session.source)


def _without_empty(**values: Any) -> Answer:
    return {name: value for name, value in values.items() if value or name == "findings"}
