"""Calls of `.view`: their parts, and the edit to call `.reshape` instead."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.domains.operations import Viewed

RESHAPES = {"view": "reshape", "view_as": "reshape_as"}


def reshape_instead(event: Viewed, context: CheckContext) -> list[Fix]:
    """Return the fix to call `.reshape`; unsafe if the code writes to the result."""
    name = method_name(event.call)
    if name is None:
        return []
    instead = RESHAPES[event.method]
    edit = Edit(event.place.module.span(name), instead)
    if event.call in context.written_views:
        return [
            Fix(
                Applicability.UNSAFE,
                f"use `.{instead}`; later writes to the result may go to a copy",
                (edit,),
            )
        ]
    return [Fix(Applicability.SAFE, f"use `.{instead}`, which copies if needed", (edit,))]


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
