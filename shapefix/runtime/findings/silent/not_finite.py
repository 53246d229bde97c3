"""Nan or infinite losses and gradients, with the first module or operation causing them."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.exception_report import module_label
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import GradientsLine, LossNotFiniteLine, NonFiniteSource, TargetFacts

_NAMES = 3


@silent_fault
def _not_finite(observed: Observations) -> Iterator[RuntimeFinding]:
    """The first one only: it causes the later ones."""
    for line in observed.lines:
        if line["kind"] == "loss_call" and _all_ignored(line["targets"]):
            return
        if line["kind"] == "loss_not_finite":
            yield from _loss(line)
            return
        if line["kind"] == "gradients" and line["not_finite"]:
            yield from _gradients(line)
            return


def _all_ignored(targets: TargetFacts | None) -> bool:
    return targets is not None and targets["count"] is not None and targets["ignored"] == targets["count"]


def _loss(line: LossNotFiniteLine) -> Iterator[RuntimeFinding]:
    at, module = span(line["called_at"]), line["module"]
    if at is not None:
        called = Evidence(at, f"backward is called on a loss of {line['value']} here")
        evidence = (*_constructed(module), called)
        yield RuntimeFinding("loss-not-finite", f"the loss is {line['value']}: {_source(line)}", at, evidence)


def _source(line: LossNotFiniteLine) -> str:
    module, operation = line["module"], line["operation"]
    cause = f" ({operation})" if operation else ""
    if module is None:
        return operation or "the outputs of all modules are finite, so it comes from the loss computation"
    if module["what"] == "input":
        return f"the input of `{module['name']}` is already not finite"
    return f"{module_label(module)} is the first module whose output is not finite{cause}"


def _constructed(module: NonFiniteSource | None) -> Iterator[Evidence]:
    at = span(module["constructed_at"]) if module else None
    if module is not None and at is not None:
        yield Evidence(at, f"{module_label(module)} constructed here")


def _gradients(line: GradientsLine) -> Iterator[RuntimeFinding]:
    at: Span | None = span(line["called_at"])
    if at is not None:
        names = [f"`{name}`" if name else "a parameter" for name in line["not_finite"]]
        more = " and more" if len(names) > _NAMES else ""
        yield RuntimeFinding(
            "gradient-not-finite",
            f"the loss is finite, but the gradients of {', '.join(names[:_NAMES])}{more} are not",
            at,
            (Evidence(at, f"{line['optimizer']} steps with them"),),
        )
