"""SF515: scores of a loss, normalized over the batch instead of the classes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.score_sources import Source, source_of
from shapefix.diagnostics import Diagnostic, Edit, Evidence, Fix, Role
from shapefix.domains.losses import ClassesRead, LossComputed
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, as_tensor
from shapefix.tensors.ops import SOFTMAXES, Op

_BY_CLASS = frozenset(
    {
        "torch.nn.CrossEntropyLoss",
        "torch.nn.NLLLoss",
        "torch.nn.NLLLoss2d",
        "torch.nn.KLDivLoss",
        "torch.nn.functional.cross_entropy",
        "torch.nn.functional.nll_loss",
        "torch.nn.functional.kl_div",
    }
)
"""Losses of one distribution per sample, samples in dimension 0."""
_THROUGH = frozenset({Op.LOG, Op.TO, Op.TO_DTYPE, Op.CLONE, Op.CONTIGUOUS})
"""Operations that keep every element where it is."""


@rule("SF515", on=LossComputed)
def softmax_over_batch(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    source = softmax_of_batch(event)
    if source is None:
        return
    taken = f"`{_reader(event)}` takes dimension 0 for the batch"
    cause = Evidence(event.place.span, taken, Role.CAUSE, "dimension 0 is the batch")
    yield _over_dimension_0(event, source, 1, cause, rule)


@rule("SF515", on=ClassesRead)
def policy_over_batch(event: ClassesRead, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    source = _over_batch(event.scores)
    if source is None:
        return
    taken = f"`{_reader(event)}` takes dimension {event.dim} for the classes"
    yield _over_dimension_0(event, source, event.dim, Evidence(event.place.span, taken, Role.CAUSE), rule)


def _reader(event: LossComputed | ClassesRead) -> str:
    return event.function.rpartition(".")[2]


def _over_dimension_0(
    event: LossComputed | ClassesRead, source: Source, classes: int, cause: Evidence, rule: Rule
) -> Diagnostic:
    """Return the finding on scores of an event, with the dimension of their classes."""
    line = rewrites.line_of(event.place, source.place.module)
    return rule.diagnostic(
        source.place.span,
        f"`{source.code}` normalizes over dimension 0, the batch; "
        f"the classes of `{_reader(event)}` ({line}) are in dimension {classes}",
        evidence=[
            *call_trace(event),
            cause,
            Evidence(source.place.span, "each class is normalized over the batch"),
        ],
        fixes=_fixes(source) if classes == 1 else (),
    )


def softmax_of_batch(event: LossComputed) -> Source | None:
    """Return the softmax over dimension 0 for the input of a loss by class, None without one."""
    given = as_tensor(event.given.get("input"))
    return None if event.function not in _BY_CLASS or given is None else _over_batch(given)


def _over_batch(given: TensorValue) -> Source | None:
    """Return the softmax over dimension 0 with the scores of a batch as its result."""
    if given.layout is None or given.layout.rank < 2:
        return None
    source = source_of(given, _THROUGH)
    if source is None or source.op not in SOFTMAXES or source.step.dim != 0:
        return None
    return None if given.layout.sizes[0].value == 1 else source


def _fixes(source: Source) -> Iterator[Fix]:
    yield rewrites.unsafe_or_advice("normalize over the classes: dim=1", _with_dim_1(source))


def _with_dim_1(source: Source) -> Edit | None:
    """Return the edit to `dim=1` of a call with `dim=0` or without a dimension, None for any other."""
    layer = source.step.producer
    place = layer.place if isinstance(layer, LibraryObject) else source.place
    if place is None or not isinstance(place.node, cst.Call):
        return None
    call = place.node
    if len(call.args) == (0 if isinstance(layer, LibraryObject) else 1) and _numbers(call) == []:
        return rewrites.appended(place.module, call, "dim=1")
    numbers = _numbers(call)
    if len(numbers) == 1 and numbers[0].evaluated_value == 0:
        return Edit(place.module.span(numbers[0]), "1")
    return None


def _numbers(call: cst.Call) -> list[cst.Integer]:
    """Return the possible numbers of a dimension."""
    return [
        argument.value
        for argument in call.args
        if isinstance(argument.value, cst.Integer)
        and (argument.keyword is None or argument.keyword.value == "dim")
    ]
