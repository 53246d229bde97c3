"""Losses of the wrong kind of scores: normalized twice, not at all, or over the batch."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.loss_targets import operands
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import LossCallLine, ScoreFacts
from shapefix.runtime.report.formatting import dtype_and_size

_OWN = {"cross_entropy": "softmax", "binary_cross_entropy_with_logits": "sigmoid"}
"""The activation that a loss applies itself."""

_MORE_THAN_ONE = 0.01
"""A sum of probabilities above 1 by more than rounding, as a logarithm."""


@silent_fault
def _scores(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(LossCallLine):
        scores, at, given = line["scores"], span(line["called_at"]), operands(line)
        if scores is None or at is None or given is None or not line["grad_enabled"]:
            continue
        found = _over_batch(line, scores) or _normalized(line, scores) or _unnormalized(line, scores)
        if found is not None:
            kind, message = found
            got = f"`{line['name']}` gets {dtype_and_size(given[0])}"
            made = f", the result of a {scores['activation']}" if scores["activation"] else ""
            yield RuntimeFinding(kind, message, at, (Evidence(at, got + made),))


def _over_batch(line: LossCallLine, scores: ScoreFacts) -> tuple[str, str] | None:
    dim, class_dim = scores["dim"], scores["class_dim"]
    if dim is None or class_dim is None or dim == class_dim or "softmax" not in str(scores["activation"]):
        return None
    what = "the batch" if dim == 0 else "not the classes"
    return (
        "softmax-over-batch",
        f"the {scores['activation']} before `{line['name']}` normalizes over dimension {dim}, {what}; "
        f"the classes are dimension {class_dim}",
    )


def _normalized(line: LossCallLine, scores: ScoreFacts) -> tuple[str, str] | None:
    own, activation = _OWN.get(line["name"]), scores["activation"]
    if own is None:
        return None
    if activation in ("softmax", "sigmoid"):
        return (
            "normalized-scores",
            f"`{line['name']}` gets probabilities of a {activation}, but applies {own} itself",
        )
    if scores["sums_to_one"]:
        return (
            "normalized-scores",
            f"`{line['name']}` gets probabilities (each row sums to 1), but applies {own} itself",
        )
    return None


def _unnormalized(line: LossCallLine, scores: ScoreFacts) -> tuple[str, str] | None:
    name, activation = line["name"], scores["activation"]
    if name == "kl_div" and activation == "softmax":
        return (
            "unnormalized-scores",
            "`kl_div` gets probabilities of a softmax, but expects log-probabilities",
        )
    if name == "kl_div" and activation is None and (scores["total"] or 0) > _MORE_THAN_ONE:
        return (
            "unnormalized-scores",
            "`kl_div` gets scores without a log_softmax, but expects log-probabilities: it can fall below 0",
        )
    if name != "nll_loss" or scores["total"] is None or scores["total"] <= _MORE_THAN_ONE:
        return None
    if activation in (None, "softmax", "sigmoid"):
        what = f"the result of a {activation}" if activation else "scores without a log_softmax"
        return (
            "unnormalized-scores",
            f"`nll_loss` gets {what}, but expects log-probabilities: its loss can fall below 0",
        )
    return None
