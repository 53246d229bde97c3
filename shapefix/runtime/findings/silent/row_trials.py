"""Outputs of a model dependent on other samples, on no input, or on untrained parameters."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.exception_report import module_label
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import MixedRows, ModuleName, RowTrialLine

_SEQUENCES = ("GRU", "LSTM", "MultiheadAttention", "RNN", "Transformer")
"""Modules with a parameter `batch_first`, by the beginning of their names."""


@silent_fault
def _mixed(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(RowTrialLine):
        mixed, called = line["mixed"], span(line["called_at"])
        if mixed is None or called is None:
            continue
        at = span(mixed["constructed_at"]) or called
        evidence = [Evidence(called, f"`{line['model']}` called here with {line['rows']} samples")]
        if at != called:
            evidence.append(Evidence(at, f"`{mixed['type'] or line['model']}` constructed here"))
        yield RuntimeFinding(
            "mixed-samples",
            f"the output of `{line['model']}` for a sample changes with the other samples of the batch: "
            f"{_where(mixed, line['rows'])}",
            at,
            tuple(evidence),
        )


def _where(mixed: MixedRows, rows: int) -> str:
    if mixed["module"] or mixed["type"]:
        label = module_label(ModuleName(name=mixed["module"] or mixed["type"], type=mixed["type"]))
        if mixed["type"].startswith(_SEQUENCES):
            size = ", ".join(map(str, mixed["size"]))
            return f"{label} takes dimension 0 of [{size}] for time (`batch_first=True` is missing)"
        return f"{label} mixes them"
    if mixed["after"] and mixed["before"]:
        return f"they are mixed between `{mixed['after']}` and `{mixed['before']}` (a view or a reduction)"
    if mixed["before"]:
        return f"they are mixed before `{mixed['before']}` (a view or a reduction)"
    if mixed["after"]:
        return f"they are mixed after `{mixed['after']}` (a view or a reduction)"
    return "a view or a reduction in `forward` mixes them"


@silent_fault
def _constant(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(RowTrialLine):
        called = span(line["called_at"])
        if line["constant"] and called is not None:
            yield RuntimeFinding(
                "constant-output",
                f"the output of `{line['model']}` is the same for all {line['rows']} samples of the batch: "
                "it does not depend on the input",
                called,
                (Evidence(called, f"`{line['model']}` called here with {line['rows']} different samples"),),
            )


@silent_fault
def _cut(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(RowTrialLine):
        called = span(line["called_at"])
        if not line["cut"] or called is None:
            continue
        names = ", ".join(f"`{each}`" for each in line["cut"])
        made, detached = span(line["cut_at"]) or called, span(line["detached_at"])
        get, them = ("get", "them") if len(line["cut"]) > 1 else ("gets", "it")
        why = "something after it detaches its result" if detached is None else "the result is detached"
        evidence = (
            Evidence(called, f"`{line['model']}` called here"),
            Evidence(made, f"{names} constructed here"),
        )
        yield RuntimeFinding(
            "cut-gradient",
            f"{names} {get} no gradient, although the output of `{line['model']}` depends on {them}: {why}",
            detached or made,
            evidence if detached is None else (*evidence, Evidence(detached, "detached here")),
        )
