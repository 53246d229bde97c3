"""Blame a nan loss or gradient on an operation: a second run watches all operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from shapefix.diagnostics import Diagnostic, Evidence, with_failure
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import NanOriginLine, NanSource

OPTION = "--find-nans"
"""The agent's option for the second run."""

_NAMES = {"loss": "loss-not-finite", "gradients": "gradient-not-finite"}


def with_nan_origins(found: ProbeFindings, run_again: Callable[[], Observations]) -> ProbeFindings:
    """The findings, with a nan at its operation; run_again is called only if there is such a finding."""
    if not any(each.name in _NAMES.values() for each in found.diagnostics):
        return found
    line = run_again().first(NanOriginLine)
    if line is None:
        return found
    name = _NAMES[line["of"]]
    return replace(
        found,
        diagnostics=tuple(
            _at_origin(each, line) if each.name == name else each for each in found.diagnostics
        ),
    )


def _at_origin(found: Diagnostic, line: NanOriginLine) -> Diagnostic:
    source = line["sources"][0]
    place = span(source["at"])
    if place is None:
        return found
    value = found.message.partition(":")[0]
    if line["of"] == "gradients":
        message = (
            f"the loss is finite, but backward of `{source['function']}` gives nan or infinite gradients"
        )
    else:
        message = f"{value}: {_made(source)}"
    evidence = (*_later(line["sources"][1:]), *found.evidence)
    evidence = tuple(each for each in evidence if each.span != place)
    return replace(found, message=message, span=place, evidence=with_failure(evidence, place))


def _made(source: NanSource) -> str:
    least, greatest = source["least"], source["greatest"]
    numbers = " of numbers with an infinity" if source["infinite"] else ""
    if least is not None and greatest is not None:
        numbers = (
            f" of {least:.4g}" if least == greatest else f" of numbers from {least:.4g} to {greatest:.4g}"
        )
    inside = f" in `{source['module']}`" if source["module"] else ""
    return f"`{source['function'].strip('_')}`{numbers} gives {source['made']}{inside}"


def _later(sources: list[NanSource]) -> Iterator[Evidence]:
    for each in sources:
        at = span(each["at"])
        if at is not None:
            yield Evidence(at, f"`{each['function']}` makes {each['made']} of it here")
