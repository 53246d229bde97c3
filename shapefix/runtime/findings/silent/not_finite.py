"""Numbers that are not finite: the first module or operation that gave some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.exception_report import named
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span

_NAMES = 3


@detector
def _not_finite(observed: Observations) -> Iterator[Seen]:
    """The first of all: what comes after it, comes of it."""
    for line in observed.lines:
        if line["kind"] == "loss" and _all_ignored(line["targets"]):
            return
        if line["kind"] == "not finite":
            yield from _loss(line)
            return
        if line["kind"] == "gradients" and line["not_finite"]:
            yield from _gradients(line)
            return


def _all_ignored(known: Mapping[str, Any] | None) -> bool:
    return bool(known) and known is not None and known.get("ignored", -1) == known.get("count")


def _loss(line: Mapping[str, Any]) -> Iterator[Seen]:
    at, module = span(line["called"]), line["module"]
    if at is not None:
        evidence = (*_born(module), Evidence(at, f"backward of a loss of {line['value']} here"))
        yield Seen("loss-not-finite", f"the loss is {line['value']}: {_source(line)}", at, evidence)


def _source(line: Mapping[str, Any]) -> str:
    module, operation = line["module"], line["operation"]
    comes = f"; there is {operation} in it" if operation else ""
    if module is None:
        return operation or "all modules gave finite numbers, so it comes of the loss itself"
    if module["what"] == "input":
        return f"what `{module['name']}` is given is not finite already"
    return f"the first that gives numbers that are not finite is {named(module)}{comes}"


def _born(module: Mapping[str, Any] | None) -> Iterator[Evidence]:
    born = span(module["born"]) if module else None
    if module is not None and born is not None:
        yield Evidence(born, f"{named(module)} constructed here")


def _gradients(line: Mapping[str, Any]) -> Iterator[Seen]:
    at: Span | None = span(line["called"])
    if at is not None:
        names = [f"`{name}`" if name else "a parameter" for name in line["not_finite"]]
        more = " and more" if len(names) > _NAMES else ""
        yield Seen(
            "gradient-not-finite",
            f"gradients are not finite where the loss is: those of {', '.join(names[:_NAMES])}{more}",
            at,
            (Evidence(at, f"{line['optimizer']} makes a step with them"),),
        )
