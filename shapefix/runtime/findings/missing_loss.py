"""A loss equal to None: the model was called without `labels` or with another name for them."""

from __future__ import annotations

from shapefix.checks.support.near_keys import near
from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.exception_report import Explanation, exception_text
from shapefix.runtime.observations import Observations, RaisedException, span
from shapefix.runtime.protocol import DescribedValue, ForwardSignatureLine, ModuleEnterLine, ModuleExitLine

MESSAGE = r"'NoneType' object has no attribute '(backward|item|detach|mean|cpu)'|operand.* /.*'NoneType'"
_LABELS = "labels"


def explain(failure: RaisedException, observed: Observations) -> Explanation | None:
    """Find the missing key for a script with a None loss from a model."""
    entered = {line["id"]: line for line in observed.of(ModuleEnterLine)}
    outputs = {line["id"]: line["out"] for line in observed.of(ModuleExitLine)}
    for line in reversed(list(observed.of(ForwardSignatureLine))):
        model, signature = entered[line["id"]], line["signature"]
        called = span(model["called_at"])
        if called is None or _LABELS not in signature["parameters"] or _LABELS in signature["passed"]:
            continue
        if _has_loss(outputs.get(line["id"])):
            continue
        key = next(
            (each for each in signature["extra"] if near(each, signature["parameters"]) == _LABELS), None
        )
        passed = ", ".join(f"`{each}`" for each in (*signature["passed"], *signature["extra"]))
        evidence = (
            Evidence(called, f"called here with {passed}"),
            Evidence(failure.stack[0], exception_text(failure)),
        )
        if key is None:
            message = f"`{model['type']}` is called without `labels`, so its loss is None"
            return Explanation("SF403", message, called, evidence)
        message = f"`{model['type']}` ignores `{key}`; it reads `labels`, so its loss is None"
        return Explanation("SF402", message, called, evidence)
    return None


def _has_loss(out: DescribedValue | None) -> bool:
    """Whether the output of a model may contain a loss."""
    if out is None or out["kind"] != "mapping":
        return True
    return "loss" in (out.get("items") or {})
