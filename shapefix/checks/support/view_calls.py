"""Calls of `.view`: their parts, and the edit to call `.reshape` instead."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.domains.operations import Viewed
from shapefix.interpreter.modules import dotted_name

RESHAPES = {"view": "reshape", "view_as": "reshape_as"}


def reshape_instead(event: Viewed, context: CheckContext) -> list[Fix]:
    """Return the fix to call `.reshape`; unsafe if the code writes to the result or the tensor."""
    name = method_name(event.call)
    if name is None:
        return []
    instead = RESHAPES[event.method]
    edit = Edit(event.place.module.span(name), instead)
    if event.call in context.written_views or _is_written_at_once(event) or _is_written_later(event, context):
        remark = "later writes may reach only one of the two tensors"
        return [Fix(Applicability.UNSAFE, f"use `.{instead}`; {remark}", (edit,), remark=remark)]
    return [Fix(Applicability.SAFE, f"use `.{instead}`, which copies if needed", (edit,))]


def _is_written_at_once(event: Viewed) -> bool:
    """Whether a function writes into the passed view: `F.relu_(x.view(-1))`, `out=x.view(-1)`."""
    around = enclosing(event.place.module, event.call)
    given, call = (around[-2], around[-3]) if len(around) > 2 else (None, None)
    if not isinstance(given, cst.Arg) or not isinstance(call, cst.Call):
        return False
    name = dotted_name(call.func).rpartition(".")[2]
    is_out = given.keyword is not None and given.keyword.value == "out"
    return is_out or (name.endswith("_") and not name.endswith("__"))


def _is_written_later(event: Viewed, context: CheckContext) -> bool:
    """Whether the code writes into the viewed tensor after the view."""
    return context.last_writes.get(event.tensor.storage, -1) > context.moments[event]


def method_name(call: cst.CSTNode) -> cst.Name | None:
    """Return the name of the method in `x.view(...)`."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr
    return None


def viewed_code(event: Viewed) -> str:
    """Return the code of the viewed tensor."""
    call = event.call
    if event.free and isinstance(call, cst.Call) and call.args:
        return abbreviate(event.place.module.code(call.args[0].value))
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return abbreviate(event.place.module.code(call.func.value))
    return "the tensor"
