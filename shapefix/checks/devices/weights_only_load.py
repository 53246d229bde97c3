"""SF611: `torch.load` of a file with a whole model, rejected since torch 2.6."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing_function, enclosing_line
from shapefix.checks.support.version_guards import is_guarded
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.checkpoints import ObjectsLoaded
from shapefix.interpreter.modules import Place, nodes, target_names

_ENVIRONMENT = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""Variable with which torch reads all files, as it did before."""


@rule("SF611", on=ObjectsLoaded)
def weights_only_load(event: ObjectsLoaded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if is_guarded(event.place, "UnpicklingError", "RuntimeError") or _ENVIRONMENT in event.place.module.text:
        return
    if event.saved is None and (_is_tested(event.place) or not _is_first(event, context)):
        return
    node = event.place.node
    fixes = []
    if isinstance(node, cst.Call) and node.args:
        edit = rewrites.appended(event.place.module, node, "weights_only=False")
        text = "allow all classes in this file: `weights_only=False`"
        fixes = [Fix(Applicability.UNSAFE, text, (edit,), remark="if no one else can write the file")]
    if event.saved is None:
        message = (
            f"`torch.load` only reads tensors since torch 2.6, but its result is used as an object: "
            f"`.{event.used}`"
        )
        evidence = [Evidence(event.place.span, "loaded here, without weights_only=False")]
    else:
        where = rewrites.line_of(event.saved, event.place.module)
        message = (
            f"`torch.load` only reads tensors since torch 2.6, but the file has an object of "
            f"`{event.what}` ({where})"
        )
        evidence = [
            Evidence(event.saved.span, f"saved here, with an object of `{event.what}`"),
            Evidence(event.place.span, "loaded here, without weights_only=False"),
        ]
    yield rule.diagnostic(
        event.place.span,
        message,
        evidence=[*call_trace(event), *evidence],
        error=ExpectedError("UnpicklingError", "Weights only load failed"),
        fixes=fixes,
        habit="files with objects",
    )


def _is_first(event: ObjectsLoaded, context: CheckContext) -> bool:
    """Whether no earlier use of the same file was reported."""
    return not already_reported(
        event, context, lambda each: each.place.node if isinstance(each, ObjectsLoaded) else None
    )


def _is_tested(place: Place) -> bool:
    """Whether a condition in the function around a place asks for the contents of the file."""
    function = enclosing_function(place) or place.module.tree
    line = enclosing_line(place)
    names = {
        name
        for small in (line.body if line is not None else ())
        if isinstance(small, cst.Assign)
        for target in small.targets
        for name in target_names(target.target)
    }
    return any(
        isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert))
        and any(isinstance(each, cst.Name) and each.value in names for each in nodes(node.test))
        for node in nodes(function)
    )
