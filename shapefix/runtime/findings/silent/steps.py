"""Steps never taken or with old gradients, and graphs kept for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import (
    CarriedGradientsLine,
    KeptGraphLine,
    MissingStepLine,
    RecordedEvaluationLine,
)


@silent_fault
def _carried(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(CarriedGradientsLine):
        at, backward = span(line["called_at"]), span(line["backward_at"])
        if at is None or backward is None:
            continue
        yield RuntimeFinding(
            "carried-gradients",
            f"the second step of {line['optimizer']} uses the gradients of the first batch, too: "
            "nothing cleared them between the steps",
            at,
            (Evidence(backward, "backward adds to the gradients of the step before"),),
        )


@silent_fault
def _missing(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(MissingStepLine):
        at = span(line["called_at"])
        if at is None:
            continue
        made = [each for each in map(span, line["optimizers"]) if each is not None]
        yield RuntimeFinding(
            "missing-step",
            f"no optimizer step after {line['backward_calls']} backward calls: the weights never change",
            at,
            (
                Evidence(at, "backward called here"),
                *(Evidence(each, "optimizer created here; its `step()` was not called") for each in made),
            ),
        )


@silent_fault
def _recorded(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(RecordedEvaluationLine):
        at = span(line["called_at"])
        if at is not None:
            yield RuntimeFinding(
                "recorded-evaluation",
                f"`{line['model']}` is evaluated without `torch.no_grad()`: no backward used its graph",
                at,
                (Evidence(at, "the output requires a gradient"),),
            )


@silent_fault
def _kept(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(KeptGraphLine):
        at = span(line["stored_at"])
        if at is None:
            continue
        what = "the sum" if line["is_sum"] else "the collection"
        yield RuntimeFinding(
            "kept-graph",
            f"`{line['name']}` keeps the autograd graph of each batch in memory after backward",
            at,
            (Evidence(at, f"{what} has the graphs of the first two losses"),),
        )
