"""Parameters that no optimizer holds, and optimizers that hold those of no module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.report.formatting import words

_NAMES = 3


@detector
def _held(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("held"):
        missed, orphans, made = line["missed"], line["orphans"], span(line["made"])
        if orphans is not None and missed is not None and made is not None:
            yield _orphaned(orphans, missed, made)
        elif missed is not None:
            yield from _missed(missed)


def _orphaned(orphans: Mapping[str, Any], missed: Mapping[str, Any], made: Span) -> Seen:
    parameters = missed["parameters"]
    sizes = ", ".join(words(each) for each in orphans["parameters"][:_NAMES])
    evidence = [Evidence(made, f"the optimizer is made here, of parameters that no module has: {sizes}")]
    return Seen(
        "orphaned-parameters",
        f"the optimizer holds {_number(orphans['count'])} that no module has any more, "
        f"and not {_names(parameters)}",
        made,
        (*evidence, *_born(parameters)),
    )


def _missed(missed: Mapping[str, Any]) -> Iterator[Seen]:
    late = [each for each in missed["parameters"] if each["late"] and not each["loaded"]]
    fresh = [each for each in missed["parameters"] if not each["loaded"]]
    made = next((each for each in map(span, missed["optimizers"]) if each is not None), None)
    if made is None:
        return
    optimizers = tuple(
        Evidence(each, "an optimizer is made here, without them")
        for each in map(span, missed["optimizers"])
        if each is not None
    )
    # What is frozen by leaving it out is the larger part, and has come with its numbers.
    forgotten = late or (fresh if sum(each["numel"] for each in fresh) < missed["held"] else [])
    if forgotten:
        when = ", which was constructed after the optimizer" if late else ""
        yield Seen(
            "missed-parameters",
            f"no optimizer holds {_names(forgotten)}{when}; {_they(forgotten)} a gradient, and never change",
            made,
            (*_born(forgotten), *optimizers),
        )
    elif missed["count"] == len(missed["parameters"]) or missed["parameters"]:
        yield Seen(
            "untrained-parameters",
            f"{_number(missed['count'])} get a gradient that no optimizer uses, like "
            f"`{missed['parameters'][0]['name']}`; `requires_grad_(False)` saves computing it",
            made,
            optimizers,
        )


def _names(parameters: list[Mapping[str, Any]]) -> str:
    names = [f"`{each['name']}`" for each in parameters]
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _they(parameters: list[Mapping[str, Any]]) -> str:
    return "they get" if len(parameters) > 1 else "it gets"


def _number(count: int) -> str:
    return f"{count} parameter{'' if count == 1 else 's'}"


def _born(parameters: list[Mapping[str, Any]]) -> Iterator[Evidence]:
    """Where the modules of some parameters were constructed, the first two."""
    places = dict.fromkeys(each for each in (span(one["born"]) for one in parameters) if each is not None)
    for place in list(places)[:2]:
        names = [one["name"] for one in parameters if span(one["born"]) == place]
        yield Evidence(place, f"`{names[0]}` comes of what is constructed here")
