"""Parameters without an optimizer, and optimizers of parameters without a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Applicability, Edit, Evidence, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.failing_code import code_at, expression, part_of
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import (
    OptimizerCoverageLine,
    OrphanedParameters,
    UncoveredParameter,
    UncoveredParameters,
    UnregisteredParametersLine,
)
from shapefix.runtime.report.formatting import value_text

_NAMES = 3


@silent_fault
def _coverage(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(OptimizerCoverageLine):
        uncovered, orphaned, created_at = line["uncovered"], line["orphaned"], span(line["created_at"])
        if orphaned is not None and uncovered is not None and created_at is not None:
            yield _orphaned(orphaned, uncovered, created_at)
        elif uncovered is not None:
            yield from _uncovered(uncovered)


@silent_fault
def _unregistered(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(UnregisteredParametersLine):
        own = [each for each in line["parameters"] if not each["pretrained"]]
        places = [each for each in map(span, line["optimizers"]) if each is not None]
        if not places or (line["parameters"] and not own):
            continue
        holder = f"{line['holder_type']} `{line['holder']}`"
        held_by = f", such as those in the {holder}," if line["holder"] else ""
        what = _number(line["count"]) + held_by
        are, them = ("is", "it") if line["count"] == 1 else ("are", "them")
        constructed = tuple(_constructed(own))
        yield RuntimeFinding(
            "unregistered-parameters",
            f"{what} {are} not registered in a model, and no optimizer has {them}: never trained",
            constructed[0].span if constructed else places[0],
            (*constructed, *(Evidence(each, "optimizer created here") for each in places)),
        )


def _orphaned(
    orphaned: OrphanedParameters, uncovered: UncoveredParameters, created_at: Span
) -> RuntimeFinding:
    parameters = uncovered["parameters"]
    sizes = ", ".join(value_text(each) for each in orphaned["parameters"][:_NAMES])
    created = Evidence(created_at, f"optimizer created here; no module has its parameters {sizes}")
    return RuntimeFinding(
        "orphaned-parameters",
        f"the optimizer has {_number(orphaned['count'])} that no module has anymore, "
        f"but not {_names(parameters)}",
        created_at,
        (created, *_constructed(parameters)),
    )


def _uncovered(uncovered: UncoveredParameters) -> Iterator[RuntimeFinding]:
    parameters = uncovered["parameters"]
    late = [each for each in parameters if each["late"] and not each["pretrained"]]
    fresh = [each for each in parameters if not each["pretrained"]]
    places = [each for each in map(span, uncovered["optimizers"]) if each is not None]
    if not places:
        return
    optimizers = tuple(Evidence(each, "optimizer created here, without them") for each in places)
    # A part that is left out to freeze it is usually the larger one, with pretrained weights.
    forgotten = late or (fresh if sum(each["numel"] for each in fresh) < uncovered["covered_numel"] else [])
    if forgotten:
        when = " (constructed after the optimizer)" if late else ""
        effect = "they get gradients" if len(forgotten) > 1 else "it gets a gradient"
        change = "change" if len(forgotten) > 1 else "changes"
        yield RuntimeFinding(
            "missed-parameters",
            f"no optimizer has {_names(forgotten)}{when}: {effect} but never {change}",
            places[0],
            (*_constructed(forgotten), *optimizers),
            fixes=lambda read: () if late or len(places) > 1 else _all_parameters(places[0], read),
        )
    elif parameters:
        get = "get" if uncovered["count"] > 1 else "gets"
        yield RuntimeFinding(
            "untrained-parameters",
            f"{_number(uncovered['count'])}, such as `{parameters[0]['name']}`, {get} gradients that no "
            "optimizer uses; `requires_grad_(False)` avoids computing them",
            places[0],
            optimizers,
        )


def _all_parameters(created: Span, read: ReadText) -> tuple[Fix, ...]:
    """The fix to give an optimizer all parameters of a model."""
    code = code_at(created, read)
    node = None if code is None else expression(code)
    if code is None or not isinstance(node, ast.Call):
        return ()
    named = next((each.value for each in node.keywords if each.arg == "params"), None)
    given = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else named
    if given is None or any(isinstance(each, (ast.Dict, ast.comprehension)) for each in ast.walk(given)):
        return ()
    models = {_model_of(each) for each in ast.walk(given) if isinstance(each, ast.Call)} - {""}
    if len(models) != 1:
        return ()
    new = f"{models.pop()}.parameters()"
    if new in map(ast.unparse, ast.walk(given)):
        return ()  # the model has no other ones
    edit = Edit(part_of(created, code, given), new)
    return (Fix(Applicability.UNSAFE, f"give the optimizer all parameters: `{new}`", (edit,)),)


def _model_of(call: ast.Call) -> str:
    """The variable of the model in `model.part.parameters()`; empty for another call."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("parameters", "named_parameters"):
        return ""
    owner: ast.expr = function.value
    within_self = 0
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        within_self += isinstance(owner, ast.Attribute)
        inner = owner.value
        if isinstance(inner, ast.Name) and inner.id == "self" and isinstance(owner, ast.Attribute):
            return f"self.{owner.attr}" if within_self > 1 else "self"
        owner = inner
    return owner.id if isinstance(owner, ast.Name) else ""


def _names(parameters: Sequence[UncoveredParameter]) -> str:
    names = [f"`{each['name']}`" for each in parameters]
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _number(count: int) -> str:
    return f"{count} parameter{'' if count == 1 else 's'}"


def _constructed(parameters: Sequence[UncoveredParameter]) -> Iterator[Evidence]:
    """The first two construction sites of the modules of some parameters."""
    places = dict.fromkeys(
        each for each in (span(one["constructed_at"]) for one in parameters) if each is not None
    )
    for place in list(places)[:2]:
        names = [one["name"] for one in parameters if span(one["constructed_at"]) == place]
        yield Evidence(place, f"module of `{names[0]}` created here")
