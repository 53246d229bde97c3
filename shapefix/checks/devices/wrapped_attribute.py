"""SF617: an attribute of a model, read from its DataParallel wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.wrapped_models import WrappedAttributeRead

_TELLS_APART = re.compile(r"isinstance|hasattr|parallel|distributed|module|gpu", re.IGNORECASE)
"""Parts of tests for a wrapped model."""


@rule("SF617", on=WrappedAttributeRead)
def wrapped_attribute(event: WrappedAttributeRead, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.undecided or _is_told_apart(event):
        return
    node, module = event.place.node, event.place.module
    owner = node.value if isinstance(node, cst.Attribute) else None
    if owner is None:
        return
    code = abbreviate(module.code(owner))
    fix = Fix(
        Applicability.SAFE,
        f"read it from the model inside: `{code}.module.{event.name}`",
        (Edit(module.span(owner).end(), ".module"),),
    )
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` is a {event.wrapper}, which has no `{event.name}`: it is an attribute of the "
        f"`{event.model}` in `{code}.module`",
        error=ExpectedError("AttributeError", f"'{event.wrapper}' object has no attribute '{event.name}'"),
        evidence=[
            *call_trace(event),
            *([Evidence(event.made.span, "wrapped here")] if event.made is not None else []),
            Evidence(event.place.span, f"`{event.name}` is in the model inside", Role.FAILURE),
        ],
        fixes=[fix],
    )


def _is_told_apart(event: WrappedAttributeRead) -> bool:
    """Whether the code around tests for a wrapper, or catches the error."""
    module = event.place.module
    for node in enclosing(module, event.place.node):
        if isinstance(node, (cst.Try, cst.TryStar)):
            return True
        if isinstance(node, (cst.If, cst.IfExp)) and _TELLS_APART.search(module.code(node.test)):
            return True
    return False
