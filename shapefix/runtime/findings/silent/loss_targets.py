"""Losses with wrong operands: unintended broadcasts, dtypes, and targets out of range."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import LossCallLine, Value
from shapefix.runtime.report.formatting import dtype_and_size

_BROADCAST = ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")
_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_PROBABILITIES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@silent_fault
def _losses(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(LossCallLine):
        operands, at = _operands(line), span(line["called_at"])
        if operands is None or at is None:
            continue
        for check in (_broadcast, _float64, _one_class, _ignored, _range):
            yield from check(line, *operands, at)


def _operands(line: LossCallLine) -> tuple[Value, Value] | None:
    args, kwargs = line["input"]["args"], line["input"]["kwargs"]
    prediction = args[0] if args else kwargs.get("input")
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not prediction or not target or not prediction["kind"] == target["kind"] == "tensor":
        return None
    return prediction, target


def _operands_text(line: LossCallLine, prediction: Value, target: Value) -> str:
    return f"`{line['name']}` gets {dtype_and_size(prediction)} and {dtype_and_size(target)}"


def _broadcast(line: LossCallLine, prediction: Value, target: Value, at: Span) -> Iterator[RuntimeFinding]:
    if line["name"] not in _BROADCAST:
        return
    result = outer_broadcast(prediction["size"], target["size"])
    if result is not None:
        sizes = f"({', '.join(map(str, result))})"
        yield RuntimeFinding(
            "silent-broadcast",
            f"`{line['name']}` compares {dtype_and_size(prediction)} with {dtype_and_size(target)}: "
            f"both are broadcast to {sizes}",
            at,
            (
                Evidence(
                    at,
                    f"{_operands_text(line, prediction, target)}: every pair of their elements",
                ),
            ),
        )


def outer_broadcast(left: list[int], right: list[int]) -> list[int] | None:
    """The result size of two operands that differ in a last dimension of 1; None for all others.

    `[16, 1]` with `[16]` is an accident; `[16, 1]` with `[1, 16]`, or with `[8]`, may be intended.
    """
    shorter, longer = sorted((left, right), key=len)
    if not shorter or longer != [*shorter, 1] or max(shorter) == 1:
        return None
    padded = [1, *shorter]
    result = [max(pair) for pair in zip(padded, longer, strict=True)]
    return None if result == longer else result


def _float64(line: LossCallLine, prediction: Value, target: Value, at: Span) -> Iterator[RuntimeFinding]:
    kinds = {prediction["dtype"], target["dtype"]}
    wide = prediction if prediction["dtype"] == "float64" else target
    if line["grad_enabled"] and kinds in ({"float64", name} for name in ("float32", "float16", "bfloat16")):
        which = "prediction" if wide is prediction else "target"
        if wide["size"]:
            yield RuntimeFinding(
                "silent-float64",
                f"the {which} of `{line['name']}` is {dtype_and_size(wide)}: the loss is computed in float64",
                at,
                (Evidence(at, _operands_text(line, prediction, target)),),
            )


def _one_class(line: LossCallLine, prediction: Value, target: Value, at: Span) -> Iterator[RuntimeFinding]:
    size = prediction["size"]
    if line["name"] != "cross_entropy" or not line["grad_enabled"] or not size:
        return
    if size[1 if len(size) > 1 else 0] == 1:
        yield RuntimeFinding(
            "one-class",
            f"`cross_entropy` with one class is always 0: it gets {dtype_and_size(prediction)}",
            at,
            (Evidence(at, _operands_text(line, prediction, target)),),
        )


def _ignored(line: LossCallLine, prediction: Value, target: Value, at: Span) -> Iterator[RuntimeFinding]:
    known = line["targets"]
    if not known or line["name"] not in _OF_CLASSES:
        return
    if known["ignored"] == known["count"] and known["reduction"] == "mean":
        yield RuntimeFinding(
            "ignored-targets",
            f"all {known['count']} targets of `{line['name']}` are its `ignore_index` "
            f"{known['ignore_index']}: the mean is nan",
            at,
            (Evidence(at, _operands_text(line, prediction, target)),),
        )


def _range(line: LossCallLine, prediction: Value, target: Value, at: Span) -> Iterator[RuntimeFinding]:
    known = line["targets"]
    if not known or line["name"] not in _OF_PROBABILITIES:
        return
    if known["least"] < 0 or known["greatest"] > 1:
        yield RuntimeFinding(
            "target-range",
            f"the targets of `{line['name']}` range from {known['least']:g} to {known['greatest']:g}, "
            "but it expects values from 0 to 1",
            at,
            (Evidence(at, _operands_text(line, prediction, target)),),
        )
