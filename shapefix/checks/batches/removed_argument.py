"""SF407: an argument removed from torch, transformers, Lightning or another library."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.library_names import older, title
from shapefix.checks.support.renamed_arguments import OBSOLETE, READ_OTHERWISE, RENAMED, REPLACED, replacement
from shapefix.checks.support.rewrites import dropped, replaced
from shapefix.checks.support.version_guards import is_guarded
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, ExpectedError, Fix
from shapefix.domains.versions import RemovedArgument
from shapefix.interpreter.modules import dotted_name, nodes

_KEPT_AS_ATTRIBUTES = frozenset({"transformers", "trl"})
"""Libraries whose objects have each argument as an attribute of the same name."""


@rule("SF407", on=RemovedArgument)
def removed_argument(event: RemovedArgument, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if is_guarded(event.place, "TypeError"):
        return
    key = (event.package, event.function)
    renamed = RENAMED.get(key, {}).get(event.keyword)
    now = f"`{renamed}`" if renamed else REPLACED.get(key, {}).get(event.keyword)
    verb = "it is now" if renamed else "use"
    yield rule.diagnostic(
        event.place.module.span(event.given),
        f"`{event.function}` has no argument `{event.keyword}` since {title(event.package)} {event.version}"
        + (f"; {verb} {now}" if now else ""),
        error=ExpectedError("TypeError", f"got an unexpected keyword argument '{event.keyword}'"),
        evidence=call_trace(event),
        fixes=_fixes(event, renamed),
        follows=Cause(rule.code, event.place.module.span(event.place.node)),
        habit=f"argument `{event.keyword}`",
    )


def _reads(event: RemovedArgument) -> Iterator[cst.Name]:
    """Yield the reads of the argument as an attribute: `trainer.tokenizer`, `self.tokenizer` of its class."""
    module, call = event.place.module, event.place.node
    created = dotted_name(call.func) if isinstance(call, cst.Call) else ""
    for owner in nodes(module.tree):
        if isinstance(owner, cst.ClassDef) and owner.name.value == created:
            yield from _own_reads(owner, event.keyword)
    targets = {
        module.code(target.target)
        for node in nodes(module.tree)
        if isinstance(node, cst.Assign) and node.value is call
        for target in node.targets
    }
    for node in nodes(module.tree) if targets else ():
        if isinstance(node, cst.Attribute) and node.attr.value == event.keyword:
            if module.code(node.value) in targets:
                yield node.attr


def _own_reads(owner: cst.ClassDef, name: str) -> list[cst.Name]:
    """Return the reads of `self.name` in a class; none if it sets the attribute itself."""
    found: list[cst.Name] = []
    for node in nodes(owner):
        if isinstance(node, cst.AssignTarget) and dotted_name(node.target) == f"self.{name}":
            return []
        if isinstance(node, cst.FunctionDef) and node.name.value == name:
            return []
        if isinstance(node, cst.Attribute) and dotted_name(node) == f"self.{name}":
            found.append(node.attr)
    return found


def _fixes(event: RemovedArgument, renamed: str | None) -> Iterator[Fix]:
    call, given, module = event.place.node, event.given, event.place.module
    if given.star:
        # A dictionary has it.
        return
    if renamed is not None:
        if given.keyword is not None and renamed not in event.others:
            reads = _reads(event) if event.package in _KEPT_AS_ATTRIBUTES else ()
            edits = (Edit(module.span(each), renamed) for each in (given.keyword, *reads))
            yield Fix(Applicability.SAFE, f"rename it to `{renamed}`", tuple(edits))
        return
    code = module.code(given.value)
    if code in OBSOLETE.get(event.keyword, ()):
        if isinstance(call, cst.Call) and call.args[0] is not given:
            why = (
                ""
                if event.keyword in REPLACED.get((event.package, event.function), {})
                else ": this is the default now"
            )
            yield Fix(Applicability.SAFE, f"remove it{why}", (dropped(module, call, given),))
        return
    instead = replacement((event.package, event.function), event.keyword, given.value, code)
    if instead is None:
        if event.keyword not in REPLACED.get((event.package, event.function), {}):
            required = older(event.package, event.version, module)
            yield Fix(Applicability.DISPLAY, f"remove it, or require `{required}`", ())
        return
    names = {part.partition("=")[0].strip() for part in instead.split(", ")}
    if names.isdisjoint(event.others):
        safety = Applicability.UNSAFE if event.keyword in READ_OTHERWISE else Applicability.SAFE
        yield Fix(safety, f"write `{instead}`", (replaced(module, given, instead),))
