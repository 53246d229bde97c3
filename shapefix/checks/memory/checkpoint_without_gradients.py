"""SF703: reentrant checkpoints without any input requiring gradients."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix
from shapefix.domains.training import CheckpointDetached
from shapefix.interpreter.values import LibraryObject


@rule("SF703", on=CheckpointDetached)
def checkpoint_without_gradients(
    event: CheckpointDetached, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    module, node = event.place.module, event.place.node
    if not isinstance(node, cst.Call) or not node.args:
        return
    called = abbreviate(module.code(node.args[0].value))
    layer = event.function if isinstance(event.function, LibraryObject) else None
    made = (
        [Evidence(layer.place.span, "created here, with trainable parameters")]
        if layer and layer.place
        else []
    )
    yield rule.diagnostic(
        event.place.span,
        f"`{called}` gets no gradients: none of the checkpoint's inputs have requires_grad=True, and it is "
        "reentrant",
        evidence=[
            *call_trace(event),
            *made,
            Evidence(event.place.span, "the output does not require grad: the graph ends here"),
        ],
        fixes=_not_reentrant(event, node),
    )


def _not_reentrant(event: CheckpointDetached, node: cst.Call) -> Iterator[Fix]:
    """Suggest `use_reentrant=False`: torch then records the graph without reentrant autograd."""
    if any(argument.star for argument in node.args):
        return
    module, text = event.place.module, "use_reentrant=False"
    stated = rewrites.argument(node, -1, "use_reentrant")
    edit = rewrites.appended(module, node, text)
    if stated is not None:
        edit = rewrites.replaced(module, stated, text)
    yield Fix(Applicability.SAFE, f"pass `{text}`", (edit,))
