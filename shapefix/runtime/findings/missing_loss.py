"""A loss that is None: the model was called without its labels, or with labels under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapefix.checks.support.near_keys import near
from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.exception_report import Explanation, said
from shapefix.runtime.observations import Failure, Observations, span

MESSAGE = r"'NoneType' object has no attribute '(backward|item|detach|mean|cpu)'|operand.* /.*'NoneType'"
_LABELS = "labels"


def explain(failure: Failure, observed: Observations) -> Explanation | None:
    """Which key was missed where a script works on the None that a model gives for a loss."""
    entered = {line["id"]: line for line in observed.of("enter")}
    left = {line["id"]: line["out"] for line in observed.of("leave")}
    for line in reversed(list(observed.of("signature"))):
        model = entered[line["id"]]
        called = span(model["called"])
        if called is None or _LABELS not in line["named"] or _LABELS in line["given"]:
            continue
        if _has_loss(left.get(line["id"])):
            continue
        key = next((each for each in line["more"] if near(each, line["named"]) == _LABELS), None)
        passed = ", ".join(f"`{each}`" for each in (*line["given"], *line["more"]))
        evidence = (Evidence(called, f"called here with {passed}"), Evidence(failure.stack[0], said(failure)))
        if key is None:
            message = f"`{model['type']}` is called without `labels`, so that its loss is None"
            return Explanation("SF403", message, called, evidence)
        message = (
            f"`{model['type']}` is given `{key}`, which it ignores; it reads `labels`, and its loss is None"
        )
        return Explanation("SF402", message, called, evidence)
    return None


def _has_loss(out: Mapping[str, Any] | None) -> bool:
    """Whether what a model has returned has a loss, as far as it can be looked into."""
    if out is None or out["is"] != "mapping":
        return True
    return "loss" in (out.get("items") or {})
