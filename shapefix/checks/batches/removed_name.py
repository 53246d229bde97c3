"""SF415: a name removed from torch, transformers, numpy or another library."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.library_names import older, title
from shapefix.checks.support.replaced_names import INSTEAD, NOT_THE_SAME, OF_PYTHON, RENAMED_IN_NUMPY
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.version_guards import is_guarded
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, ExpectedError, Fix
from shapefix.domains.versions import RemovedName
from shapefix.interpreter.modules import nodes

_ERRORS = ("ImportError", "ModuleNotFoundError", "AttributeError")


@rule("SF415", on=RemovedName)
def removed_name(event: RemovedName, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    place = event.place
    if is_guarded(place, *_ERRORS) or _is_tried(event):
        return
    instead = _instead(event)
    advice = f"; use {instead}" if instead else ""
    yield rule.diagnostic(
        place.span,
        f"{title(event.package)} has no `{_as_written(event)}` since {event.version}{advice}",
        error=_error(event),
        evidence=call_trace(event),
        fixes=_fixes(event, instead),
        follows=Cause(rule.code, place.module.span(_statement(event))),
        habit=event.known,
    )


def _as_written(event: RemovedName) -> str:
    """Return the removed name under the package of the import: Lightning has two."""
    is_same = event.known.rpartition(".")[2] == event.name.rpartition(".")[2]
    return event.name if is_same and event.package == "lightning" else event.known


def _is_tried(event: RemovedName) -> bool:
    """Whether the name is the second choice of the code: in a handler, or for type checkers only."""
    around = enclosing(event.place.module, event.place.node)
    if any(isinstance(node, cst.ExceptHandler) for node in around):
        return True
    tests = [node.test for node in around if isinstance(node, cst.If)]
    return any(
        isinstance(part, cst.Name) and part.value == "TYPE_CHECKING" for test in tests for part in nodes(test)
    )


def _statement(event: RemovedName) -> cst.CSTNode:
    """Return the import, one cause for all of its names, or the expression."""
    around = enclosing(event.place.module, event.place.node)
    return next((node for node in around if isinstance(node, cst.ImportFrom)), event.place.node)


def _error(event: RemovedName) -> ExpectedError:
    owner, _, name = event.name.rpartition(".")
    if (event.package, event.version) == ("numpy", "2.0"):
        return ExpectedError("AttributeError", f"`np.{name}` was removed in the NumPy 2.0 release")
    if not isinstance(event.place.node, cst.ImportAlias):
        return ExpectedError("AttributeError", f"module '{owner}' has no attribute '{name}'")
    if event.known.rpartition(".")[2] != name or "." not in event.name:
        return ExpectedError("ModuleNotFoundError", f"No module named '{event.known}'")
    return ExpectedError("ImportError", f"cannot import name '{name}' from '{owner}'")


def _instead(event: RemovedName) -> str:
    """Return the code to use instead, quoted, or a description; empty if it is not known."""
    if event.package != "numpy":
        return INSTEAD.get(event.known, "")
    name = event.known.partition(".")[2]
    renamed = RENAMED_IN_NUMPY.get(name)
    if renamed is None:
        return ""
    if name in OF_PYTHON:
        return f"`{renamed}`"
    return f"`-np.{renamed[1:]}`" if renamed.startswith("-") else f"`np.{renamed}`"


def _fixes(event: RemovedName, instead: str) -> Iterator[Fix]:
    node, module = event.place.node, event.place.module
    name = event.known.partition(".")[2]
    renamed = RENAMED_IN_NUMPY.get(name) if event.package == "numpy" else None
    if renamed is not None and name not in NOT_THE_SAME and isinstance(node, cst.Attribute):
        changed = node if name in OF_PYTHON else node.attr
        yield Fix(Applicability.SAFE, f"write {instead}", (Edit(module.span(changed), renamed),))
    elif instead:
        yield Fix(Applicability.DISPLAY, f"use {instead}", ())
    else:
        required = older(event.package, event.version, module)
        yield Fix(Applicability.DISPLAY, f"require `{required}`", ())
