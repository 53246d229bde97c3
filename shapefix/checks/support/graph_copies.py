"""Copies of tensors without their graph, as `torch.tensor(loss)` makes them."""

from __future__ import annotations

import libcst as cst

from shapefix.diagnostics import Edit
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.tensor_values import GraphCut


def without_copy(cut: GraphCut) -> Edit | None:
    """Return the edit to `x` for `torch.tensor(x)`, and to `torch.stack(xs)` for a list of tensors."""
    node, module = cut.place.node, cut.place.module
    if not isinstance(node, cst.Call) or not cut.operation.endswith(".tensor") or not node.args:
        return None
    given, *others = node.args
    if given.star or given.keyword is not None:
        return None
    if any(each.keyword is None or each.keyword.value != "requires_grad" for each in others):
        return None
    number = _number_of(given.value)
    if number is not None:
        return Edit(module.span(node), module.code(number))
    if not cut.is_known:
        return None
    code = module.code(given.value)
    if cut.is_list:
        return Edit(module.span(node), f"{dotted_name(node.func).removesuffix('tensor')}stack({code})")
    is_plain = isinstance(given.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    return Edit(module.span(node), code if is_plain else f"({code})")


def _number_of(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return `x` of `x.item()` and of `float(x)`."""
    if not isinstance(value, cst.Call):
        return None
    if isinstance(value.func, cst.Attribute):
        is_item = value.func.attr.value == "item" and not value.args
        is_plain = isinstance(value.func.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        return value.func.value if is_item and is_plain else None
    is_float = isinstance(value.func, cst.Name) and value.func.value == "float" and len(value.args) == 1
    given = value.args[0].value if is_float else None
    return given if isinstance(given, (cst.Name, cst.Attribute, cst.Call)) else None
