"""Parameters without an optimizer, and optimizers of parameters without a module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Evidence, Span
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
