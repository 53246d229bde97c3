"""Uses of a model's output."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.interpreter.modules import Place, nodes


def reads_loss(call: Place) -> bool:
    """Whether the code reads the loss of this call of a model: `.loss`, `["loss"]`, or the first item."""
    around = enclosing(call.module, call.node)
    if len(around) < 2:
        return False
    above = around[-2]
    if _is_loss(above, call.node):
        return True
    target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
    if isinstance(target, (cst.Tuple, cst.List)):
        # `loss, logits = model(**batch)`
        first = target.elements[0].value if target.elements else None
        return isinstance(first, cst.Name) and "loss" in first.value.lower()
    if not isinstance(target, cst.Name):
        return False
    body = next((node for node in reversed(around) if isinstance(node, (cst.FunctionDef, cst.Module))), None)
    return body is not None and any(_reads_loss_of(node, target.value) for node in nodes(body))


def _reads_loss_of(node: cst.CSTNode, name: str) -> bool:
    value = node.value if isinstance(node, (cst.Attribute, cst.Subscript)) else None
    return isinstance(value, cst.Name) and value.value == name and _is_loss(node, value)


def _is_loss(node: cst.CSTNode, output: cst.CSTNode) -> bool:
    """Whether node is `output.loss`, `output["loss"]` or `output[0]`."""
    if isinstance(node, cst.Attribute):
        return node.value is output and node.attr.value == "loss"
    if not isinstance(node, cst.Subscript) or node.value is not output or len(node.slice) != 1:
        return False
    index = node.slice[0].slice
    if not isinstance(index, cst.Index):
        return False
    if isinstance(index.value, cst.SimpleString):
        return index.value.evaluated_value == "loss"
    return isinstance(index.value, cst.Integer) and index.value.value == "0"
