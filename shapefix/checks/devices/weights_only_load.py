"""SF611: `torch.load` of a file with a whole model, rejected since torch 2.6."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.checkpoints import ObjectsLoaded


@rule("SF611", on=ObjectsLoaded)
def weights_only_load(event: ObjectsLoaded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    where = rewrites.line_of(event.saved, event.place.module)
    node = event.place.node
    fixes = []
    if isinstance(node, cst.Call) and node.args:
        edit = rewrites.appended(event.place.module, node, "weights_only=False")
        text = "allow all classes in this file of the program's own: `weights_only=False`"
        fixes = [Fix(Applicability.UNSAFE, text, (edit,), remark="if no one else can write the file")]
    yield rule.diagnostic(
        event.place.span,
        f"`torch.load` only reads tensors since torch 2.6, but the file has an object of "
        f"`{event.what}` ({where})",
        evidence=[
            *call_trace(event),
            Evidence(event.saved.span, f"saved here, with an object of `{event.what}`"),
            Evidence(event.place.span, "loaded here, without weights_only=False"),
        ],
        error=ExpectedError("UnpicklingError", "Weights only load failed"),
        fixes=fixes,
    )
