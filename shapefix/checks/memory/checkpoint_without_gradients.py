"""SF703: reentrant checkpoints without any input requiring gradients."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import after
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing_function
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix
from shapefix.domains.training import Backward, CheckpointDetached
from shapefix.interpreter.modules import nodes
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
        fixes=_not_reentrant(event, node, context),
    )


def _not_reentrant(event: CheckpointDetached, node: cst.Call, context: CheckContext) -> Iterator[Fix]:
    """Suggest `use_reentrant=False`: torch then records the graph without reentrant autograd.

    It is safe if the program calls backward later. One that only evaluates may use the output in ways that a
    tensor with a graph does not allow, such as `.numpy()`.
    """
    if any(argument.star for argument in node.args):
        return
    module, text = event.place.module, "use_reentrant=False"
    stated = rewrites.argument(node, -1, "use_reentrant")
    edit = rewrites.appended(module, node, text)
    if stated is not None:
        edit = rewrites.replaced(module, stated, text)
    safe = any(True for _ in after(event, context, Backward)) and not _reads_array(event)
    yield Fix(Applicability.SAFE if safe else Applicability.UNSAFE, f"pass `{text}`", (edit,))


def _reads_array(event: CheckpointDetached) -> bool:
    """Whether the function around the call, or the file, converts a tensor to an array."""
    body = enclosing_function(event.place) or event.place.module.tree
    return any(isinstance(node, cst.Attribute) and node.attr.value == "numpy" for node in nodes(body))
