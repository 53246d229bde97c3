"""SF511: inputs of a normalization with wrong features or a wrong number of dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.layer_number_edits import layer_trace, number_fixes
from shapefix.checks.support.layer_settings import NORMS, called, renamed_class, taken_by
from shapefix.checks.support.operands import code_of, is_unlikely, named, shown
from shapefix.checks.support.sequential_layers import edited_place, neighbor
from shapefix.checks.support.torch_errors import torch_error
from shapefix.checks.support.wording import counted
from shapefix.diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Evidence,
    ExpectedError,
    Fix,
    Moment,
    Role,
)
from shapefix.domains.batches import OpRejectedForLastBatch
from shapefix.interpreter.containers import elements
from shapefix.interpreter.events import OperationCalled, OpRejected
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import as_size
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, OneValuePerChannel, SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout

_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in ("batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm")
)
_ON_LAST = ("torch.nn.LayerNorm", "torch.nn.RMSNorm")
_THERE_AND_BACK = {
    3: ("transpose(1, 2)", "transpose(1, 2)"),
    4: ("permute(0, 3, 1, 2)", "permute(0, 2, 3, 1)"),
    5: ("permute(0, 4, 1, 2, 3)", "permute(0, 2, 3, 4, 1)"),
}
"""By rank: methods that move the last dimension to the second place, and back."""


_ONE_VALUE = ExpectedError("ValueError", "Expected more than 1 value per channel when training")


@rule("SF511", on=(OpRejected, OpRejectedForLastBatch), reads=(OperationCalled,))
def norm_features(
    event: OpRejected | OpRejectedForLastBatch, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, OpRejectedForLastBatch):
        yield from _last_sample(event, context, rule)
        return
    if event.function not in NORMS and event.function not in _FUNCTIONS:
        return
    if is_unlikely(event):
        return
    if isinstance(event.error, OneValuePerChannel):
        yield from _one_value(event, context, rule)
        return
    if neighbor(event) is not None:
        return
    message = _message(event, context)
    if message is None:
        return
    yield rule.diagnostic(
        edited_place(event).span,
        message,
        error=torch_error(event, context),
        evidence=[*layer_trace(event, context), Evidence(event.place.span, str(event.error), Role.FAILURE)],
        fixes=_fixes(event, context),
    )


def _one_value(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    subject, operand = named(event, 0), shown(event.operands[0], context)
    yield rule.diagnostic(
        event.place.span,
        f"{_called_norm(event)} in training mode needs more than 1 value per channel, but {subject} is "
        f"{operand}",
        error=_ONE_VALUE,
        evidence=[
            *layer_trace(event, context),
            Evidence(event.place.span, "no variance of a single value", Role.FAILURE),
        ],
        fixes=[Fix(Applicability.DISPLAY, "call `.eval()` to predict, or train on 2 samples", ())],
    )


def _called_norm(event: OpRejected) -> str:
    """Return the code of a layer, or of a function."""
    return f"`{called(event)}`" if event.layer is not None else "batch norm"


def _last_sample(event: OpRejectedForLastBatch, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a batch norm with a last batch of a single sample."""
    refused, batch = event.refused, event.batch
    if not isinstance(refused.error, OneValuePerChannel) or is_unlikely(refused) or batch.length is None:
        return
    count, full = context.text(batch.length), context.text(batch.full)
    loader = batch.loader if isinstance(batch.loader, Place) else None
    left = f"{count} samples in batches of {full} leave 1 for the last one"
    yield rule.diagnostic(
        event.place.span,
        f"{_called_norm(refused)} in training mode needs more than 1 value per channel: {left}",
        error=replace(_ONE_VALUE, moment=Moment.LAST_BATCH),
        evidence=[
            *layer_trace(refused, context),
            *([Evidence(loader.span, left)] if loader is not None else []),
            Evidence(event.place.span, "no variance of a single value", Role.FAILURE),
        ],
        fixes=rewrites.without_short_batch(loader),
    )


def _message(event: OpRejected, context: CheckContext) -> str | None:
    error, layer = event.error, called(event)
    if not event.operands:
        if not isinstance(error, NotDivisible):
            return None
        have, by = context.text(error.have), context.text(error.by)
        return f"`{layer}` fails: {have} channels are not divisible by {by} groups"
    subject, operand = named(event, 0), shown(event.operands[0], context)
    if isinstance(error, NotDivisible):
        have, by = context.text(error.have), context.text(error.by)
        return f"`{layer}` has {by} groups, but {subject} is {operand}: {have} channels are not divisible"
    if isinstance(error, WrongRank):
        least = event.function in _ON_LAST or len(error.want) > 2
        ranks = f"at least {error.want[0]}-D" if least else " or ".join(f"{rank}-D" for rank in error.want)
        return f"`{layer}` expects {ranks} tensors, but {subject} is {operand}: {error.have}-D"
    if not isinstance(error, SizeMismatch):
        return None
    have, want = context.text(error.have), counted(context.text(error.want), "feature")
    which = "in the last dimension" if _is_last(event, error) else f"in dimension {error.dim}"
    return f"`{layer}` expects {want} {which}, but {subject} is {operand}: {have}"


def _is_last(event: OpRejected, error: SizeMismatch) -> bool:
    layout = event.operands[0].layout
    return error.dim == -1 or (
        event.function in _ON_LAST and layout is not None and error.dim == layout.rank - 1
    )


def _fixes(event: OpRejected, context: CheckContext) -> Iterator[Fix]:
    error = event.error
    layout = event.operands[0].layout if event.operands else None
    if isinstance(error, WrongRank) and layout is not None:
        yield from _rank_fixes(event, layout)
    if not isinstance(error, SizeMismatch):
        return
    wrapped = None if layout is None else _wrapped(event, error, layout)
    if wrapped is not None:
        there, back, edits = wrapped
        want = context.text(error.want)
        advice = f"move the {want} features to the normalized dimension and back: `.{there}`, `.{back}`"
        yield Fix(Applicability.UNSAFE, advice, edits)
        return
    # BatchNorm1d normalizes T of (B, T, C), and the size cannot show if T was intended.
    is_sequence = event.function.endswith("Norm1d") and layout is not None and layout.rank == 3
    otherwise = "move the features to dimension 1: `.transpose(1, 2)`" if is_sequence else ""
    yield from number_fixes(event, error, context, otherwise)


def _wrapped(
    event: OpRejected, error: SizeMismatch, layout: Layout
) -> tuple[str, str, tuple[Edit, ...]] | None:
    """Return methods, and edits around the call, to move the features and back."""
    ways = _THERE_AND_BACK.get(layout.rank)
    node, call = code_of(event, 0), event.place.node
    if ways is None or node is None or not isinstance(call, cst.Call) or taken_by(event) is None:
        return None
    there, back = ways
    if event.function in _ON_LAST:
        shape = event.settings.get("normalized_shape")
        many = elements(shape)
        if (many is not None and len(many) != 1) or same(layout.sizes[1], error.want) is not True:
            return None
        there, back = back, there
    elif same(layout.sizes[-1], error.want) is not True:
        return None
    module = event.place.module
    span = module.span(call)
    end = span.end()
    return there, back, (rewrites.method_called(module, node, there), Edit(end, f".{back}"))


def _rank_fixes(event: OpRejected, layout: Layout) -> Iterator[Fix]:
    name = event.function.rpartition(".")[2]
    setting = NORMS.get(event.function)
    wanted = None if setting is None else as_size(event.settings.get(setting.name))
    if not name.startswith(("BatchNorm", "InstanceNorm")) or wanted is None:
        return
    node, rank = code_of(event, 0), int(name[-2])
    if layout.rank == rank + 1 and rank > 1 and same(layout.sizes[0], wanted) is True:
        if same(layout.sizes[1], wanted) is not True and node is not None:
            edit = rewrites.method_called(event.place.module, node, "unsqueeze(0)")
            yield Fix(Applicability.UNSAFE, "make it a batch of one: `.unsqueeze(0)`", (edit,))
            return
    other = max(layout.rank - 2, 1)
    if other > 3 or other == rank or layout.rank < 2 or same(layout.sizes[1], wanted) is not True:
        return
    renamed = renamed_class(event.layer, f"{name[:-2]}{other}d")
    if renamed is not None:
        yield Fix(Applicability.UNSAFE, f"use `{renamed.content}`, for {layout.rank}-D tensors", (renamed,))
