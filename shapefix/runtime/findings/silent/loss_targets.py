"""Losses with wrong operands: unintended broadcasts, dtypes, and targets out of range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from shapefix.diagnostics import Evidence, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.operand_fixes import converted, squeezed
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import DescribedValue, Float64PromotionLine, LossCallLine
from shapefix.runtime.report.formatting import dtype_and_size

_BROADCAST = (
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss",
)  # fmt: skip
_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_PROBABILITIES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@silent_fault
def _losses(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(LossCallLine):
        given, at = operands(line), span(line["called_at"])
        if given is None or at is None:
            continue
        prediction, target = given
        gets = f"`{line['name']}` gets {dtype_and_size(prediction)} and {dtype_and_size(target)}"
        promoted = prediction["dtype"] == "float64" and observed.first(Float64PromotionLine) is not None
        for name, fault in _FAULTS.items():
            message = fault(line, prediction, target)
            # An operand that made the prediction float64 is reported itself.
            if message is not None and not (promoted and name == "silent-float64"):
                pairs = ": every pair of their elements" if name == "silent-broadcast" else ""
                fixes = partial(_fixes, name, at, prediction, target)
                yield RuntimeFinding(name, message, at, (Evidence(at, gets + pairs),), fixes=fixes)


def _fixes(
    name: str, at: Span, prediction: DescribedValue, target: DescribedValue, read: ReadText
) -> tuple[Fix, ...]:
    """The fix for the operands of a loss at a place."""
    if name == "silent-broadcast":
        return squeezed(at, read, prediction, target)
    if name == "silent-float64":
        number = 0 if prediction["dtype"] == "float64" else 1
        narrow = (prediction, target)[1 - number]["dtype"]
        call = "float()" if narrow == "float32" else f"to(torch.{narrow})"
        return converted(at, read, number, call, f"compute the loss in {narrow}")
    return ()


@silent_fault
def _padding(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(LossCallLine):
        padding, at = line["padding"], span(line["called_at"])
        if padding is None or at is None:
            continue
        value, made = f"{padding['value']:g}", span(padding["made_at"])
        message = (
            f"{padding['count']} of {padding['total']} targets of `{line['name']}` are padding; "
            f"it has no `ignore_index={value}`, so the loss includes them"
        )
        padded = (
            () if made is None else (Evidence(made, f"rows of different lengths are padded with {value}"),)
        )
        yield RuntimeFinding(
            "padding-in-loss", message, at, (*padded, Evidence(at, "padding counts as a class"))
        )


def operands(line: LossCallLine) -> tuple[DescribedValue, DescribedValue] | None:
    """The prediction and the target of a loss, if both are tensors."""
    args, kwargs = line["input"]["args"], line["input"]["kwargs"]
    prediction = args[0] if args else kwargs.get("input")
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not prediction or not target or not prediction["kind"] == target["kind"] == "tensor":
        return None
    return prediction, target


def _broadcast(line: LossCallLine, prediction: DescribedValue, target: DescribedValue) -> str | None:
    if line["name"] not in _BROADCAST:
        return None
    result = outer_broadcast(prediction["size"], target["size"])
    if result is None:
        return None
    return (
        f"`{line['name']}` compares {dtype_and_size(prediction)} with {dtype_and_size(target)}: "
        f"both are broadcast to ({', '.join(map(str, result))})"
    )


def outer_broadcast(left: list[int], right: list[int]) -> list[int] | None:
    """The result size of two operands, one with an extra last dimension of 1; None for all others.

    `[16, 1]` with `[16]` is an accident; `[16, 1]` with `[1, 16]`, or with `[8]`, may be intended.
    """
    shorter, longer = sorted((left, right), key=len)
    if not shorter or longer != [*shorter, 1] or max(shorter) == 1:
        return None
    padded = [1, *shorter]
    result = [max(pair) for pair in zip(padded, longer, strict=True)]
    return None if result == longer else result


def _float64(line: LossCallLine, prediction: DescribedValue, target: DescribedValue) -> str | None:
    kinds = {prediction["dtype"], target["dtype"]}
    which, wide = ("prediction", prediction) if prediction["dtype"] == "float64" else ("target", target)
    mixed = kinds in ({"float64", name} for name in ("float32", "float16", "bfloat16"))
    if not mixed or not line["grad_enabled"] or not wide["size"]:
        return None
    return f"the {which} of `{line['name']}` is {dtype_and_size(wide)}: the loss is computed in float64"


def _one_class(line: LossCallLine, prediction: DescribedValue, target: DescribedValue) -> str | None:
    size = prediction["size"]
    if line["name"] != "cross_entropy" or not line["grad_enabled"] or not size:
        return None
    if size[1 if len(size) > 1 else 0] != 1:
        return None
    return f"`cross_entropy` with one class is always 0: it gets {dtype_and_size(prediction)}"


def _all_ignored(line: LossCallLine, prediction: DescribedValue, target: DescribedValue) -> str | None:
    known = line["targets"]
    if not known or line["name"] not in _OF_CLASSES:
        return None
    if known["ignored"] != known["count"] or known["reduction"] != "mean":
        return None
    return (
        f"all {known['count']} targets of `{line['name']}` are its `ignore_index` "
        f"{known['ignore_index']}: the mean is nan"
    )


def _out_of_range(line: LossCallLine, prediction: DescribedValue, target: DescribedValue) -> str | None:
    known = line["targets"]
    if not known or line["name"] not in _OF_PROBABILITIES:
        return None
    if known["least"] >= 0 and known["greatest"] <= 1:
        return None
    return (
        f"the targets of `{line['name']}` range from {known['least']:g} to {known['greatest']:g}, "
        "but it expects values from 0 to 1"
    )


_FAULTS: dict[str, Callable[[LossCallLine, DescribedValue, DescribedValue], str | None]] = {
    "silent-broadcast": _broadcast,
    "silent-float64": _float64,
    "one-class": _one_class,
    "ignored-targets": _all_ignored,
    "target-range": _out_of_range,
}
"""Checks of one loss call by the name of their finding; each returns its message."""
