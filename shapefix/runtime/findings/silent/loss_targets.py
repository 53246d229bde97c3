"""Losses that compute something else than was meant: operands that broadcast, and what the targets hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, Value, span
from shapefix.runtime.report.formatting import sized

_BROADCAST = ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")
_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_SHARES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@detector
def _losses(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("loss"):
        operands, at = _operands(line), span(line["called"])
        if operands is None or at is None:
            continue
        for judge in (_broadcast, _float64, _one_class, _ignored, _range):
            yield from judge(line, *operands, at)


def _operands(line: Mapping[str, Any]) -> tuple[Value, Value] | None:
    args, kwargs = line["input"]["args"], line["input"]["kwargs"]
    prediction = args[0] if args else kwargs.get("input")
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not prediction or not target or not prediction["is"] == target["is"] == "tensor":
        return None
    return prediction, target


def _given(line: Mapping[str, Any], prediction: Value, target: Value) -> str:
    return f"`{line['name']}` is given {sized(prediction)} and {sized(target)}"


def _broadcast(line: Mapping[str, Any], prediction: Value, target: Value, at: Span) -> Iterator[Seen]:
    if line["name"] not in _BROADCAST:
        return
    result = crossed(prediction["size"], target["size"])
    if result is not None:
        sizes = f"({', '.join(map(str, result))})"
        yield Seen(
            "silent-broadcast",
            f"`{line['name']}` compares {sized(prediction)} with {sized(target)}: "
            f"both are broadcast to {sizes}",
            at,
            (Evidence(at, f"{_given(line, prediction, target)}: each of the one meets each of the other"),),
        )


def crossed(left: list[int], right: list[int]) -> list[int] | None:
    """The sizes that two operands are broadcast to of which one has a last dimension of 1 more; else None.

    `[16, 1]` and `[16]` are an accident; `[16, 1]` and `[1, 16]`, or `[16, 1]` and `[8]`, may be meant.
    """
    shorter, longer = sorted((left, right), key=len)
    if not shorter or longer != [*shorter, 1] or max(shorter) == 1:
        return None
    padded = [1, *shorter]
    result = [max(pair) for pair in zip(padded, longer, strict=True)]
    return None if result == longer else result


def _float64(line: Mapping[str, Any], prediction: Value, target: Value, at: Span) -> Iterator[Seen]:
    kinds = {prediction["dtype"], target["dtype"]}
    wide = prediction if prediction["dtype"] == "float64" else target
    if line["gradient"] and kinds in ({"float64", name} for name in ("float32", "float16", "bfloat16")):
        which = "prediction" if wide is prediction else "target"
        if wide["size"]:
            yield Seen(
                "silent-float64",
                f"the {which} of `{line['name']}` is {sized(wide)}: the loss is computed in float64",
                at,
                (Evidence(at, _given(line, prediction, target)),),
            )


def _one_class(line: Mapping[str, Any], prediction: Value, target: Value, at: Span) -> Iterator[Seen]:
    size = prediction["size"]
    if line["name"] != "cross_entropy" or not line["gradient"] or not size:
        return
    if size[1 if len(size) > 1 else 0] == 1:
        yield Seen(
            "one-class",
            f"`cross_entropy` of one class is 0, whatever the prediction: it is given {sized(prediction)}",
            at,
            (Evidence(at, _given(line, prediction, target)),),
        )


def _ignored(line: Mapping[str, Any], prediction: Value, target: Value, at: Span) -> Iterator[Seen]:
    known = line["targets"]
    if not known or line["name"] not in _OF_CLASSES or known["ignored"] < known["count"]:
        return
    if known["reduction"] == "mean":
        yield Seen(
            "ignored-targets",
            f"all {known['count']} targets of `{line['name']}` are {known['ignore_index']}, "
            "which it ignores: the mean over none of them is nan",
            at,
            (Evidence(at, _given(line, prediction, target)),),
        )


def _range(line: Mapping[str, Any], prediction: Value, target: Value, at: Span) -> Iterator[Seen]:
    known = line["targets"]
    if not known or line["name"] not in _OF_SHARES:
        return
    if known["least"] < 0 or known["greatest"] > 1:
        yield Seen(
            "target-range",
            f"the targets of `{line['name']}` are from {known['least']:g} to {known['greatest']:g}; "
            "it takes numbers from 0 to 1, and does not look",
            at,
            (Evidence(at, _given(line, prediction, target)),),
        )
