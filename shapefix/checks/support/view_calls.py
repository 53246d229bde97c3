"""Calls of `.view`: their parts, and the edit that calls `.reshape` instead."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.domains.operations import Viewed

RESHAPES = {"view": "reshape", "view_as": "reshape_as"}


def reshape_instead(event: Viewed, context: CheckContext) -> list[Fix]:
    name = method_name(event.call)
    if name is None:
        return []
    instead = RESHAPES[event.method]
    edit = Edit(event.place.module.span(name), instead)
    if event.call in context.written_views:
        return [
            Fix(
                Applicability.UNSAFE,
                f"use `.{instead}`; the result is written to later, and these writes would go to a copy",
                (edit,),
            )
        ]
    return [Fix(Applicability.SAFE, f"use `.{instead}`, which copies where a view cannot be", (edit,))]


def method_name(call: cst.CSTNode) -> cst.Name | None:
    """The name of the method in `x.view(...)`."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr
    return None


def viewed_code(event: Viewed) -> str:
    """What the user's code calls the tensor that is viewed."""
    call = event.call
    if event.free and isinstance(call, cst.Call) and call.args:
        return abbreviate(event.place.module.code(call.args[0].value))
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return abbreviate(event.place.module.code(call.func.value))
    return "the tensor"
