"""SF506: inputs of a convolution or pooling with wrong channels or dimensions, or too small."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.layer_number_edits import layer_trace, number_fixes
from shapefix.checks.support.layer_settings import (
    CHANNELS,
    called,
    renamed_class,
)
from shapefix.checks.support.operands import code_of, is_unlikely, named, shown
from shapefix.checks.support.sequential_layers import edited_place, neighbor
from shapefix.checks.support.torch_errors import torch_error
from shapefix.checks.support.wording import counted
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Role
from shapefix.interpreter.events import OperationCalled, OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import as_size
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, SizeMismatch, WindowTooLarge, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchSize

_KINDS = re.compile(
    r"torch\.(nn\.functional\.|nn\.)?"
    r"(Conv|ConvTranspose|MaxPool|AvgPool|LPPool|AdaptiveAvgPool|AdaptiveMaxPool|MaxUnpool|conv|conv_transpose"
    r"|max_pool|avg_pool|lp_pool|adaptive_avg_pool|adaptive_max_pool)([123])d"
    r"|torch\.(nn\.functional\.|nn\.)?(PixelShuffle|PixelUnshuffle|pixel_shuffle|pixel_unshuffle)"
)
_TO_CHANNELS_FIRST = {
    (1, 3): "transpose(1, 2)",
    (1, 2): "transpose(0, 1)",
    (2, 4): "permute(0, 3, 1, 2)",
    (2, 3): "permute(2, 0, 1)",
    (3, 5): "permute(0, 4, 1, 2, 3)",
    (3, 4): "permute(3, 0, 1, 2)",
}
"""By number of spatial dimensions and rank: the method that moves the last dimension to the channels."""


@rule("SF506", on=OpRejected, reads=(OperationCalled,))
def channels(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = _KINDS.fullmatch(event.function)
    if found is None or is_unlikely(event) or neighbor(event) is not None:
        return
    message = _message(event, context)
    if message is None:
        return
    yield rule.diagnostic(
        edited_place(event).span,
        message,
        error=torch_error(event, context),
        evidence=[
            *layer_trace(event, context),
            Evidence(event.place.span, _last_step(event, context), Role.FAILURE),
        ],
        fixes=_fixes(event, int(found[3]), context) if found[3] else (),
    )


def _message(event: OpRejected, context: CheckContext) -> str | None:
    error, layer = event.error, called(event)
    if isinstance(error, NotDivisible) and not event.operands:
        given, groups = f"{error.what}={context.text(error.have)}", f"groups={context.text(error.by)}"
        return f"`{layer}` fails: {given} is not divisible by {groups}"
    if not event.operands or (isinstance(error, (SizeMismatch, WrongRank)) and error.operand):
        return None
    subject, operand = named(event, 0), shown(event.operands[0], context)
    if isinstance(error, SizeMismatch):
        have, want = context.text(error.have), counted(context.text(error.want), "channel")
        return f"`{layer}` expects {want}, but {subject} is {operand}: {have} in dimension {error.dim}"
    if isinstance(error, WrongRank):
        ranks = " or ".join(f"{rank}-D" for rank in error.want)
        return f"`{layer}` expects {ranks} tensors, but {subject} is {operand}: {error.have}-D"
    if isinstance(error, NotDivisible) and "huffle" in event.function:
        have, by = context.text(error.have), context.text(error.by)
        return f"`{layer}` needs a multiple of {by} for {error.what}, but {subject} is {operand}: {have}"
    if isinstance(error, WindowTooLarge):
        return f"the kernel of `{layer}` spans {context.text(error.window)}, but {subject} is {operand}"
    return None


def _last_step(event: OpRejected, context: CheckContext) -> str:
    error = event.error
    if isinstance(error, NotDivisible) and not event.operands:
        return (
            f"each of {context.text(error.by)} groups would get a fraction of {context.text(error.have)} "
            "channels"
        )
    if isinstance(error, SizeMismatch):
        have, want = context.text(error.have), context.text(error.want)
        return f"dimension {error.dim} is that of the channels: {have}, but {want} expected"
    return str(error)


def _fixes(event: OpRejected, rank: int, context: CheckContext) -> Iterator[Fix]:
    error = event.error
    if not event.operands:
        return
    layout, node = event.operands[0].layout, code_of(event, 0)
    if layout is None:
        return
    if isinstance(error, WindowTooLarge):
        ways = "use a larger input, a smaller kernel, or more padding"
        yield Fix(Applicability.DISPLAY, ways, ())
    elif isinstance(error, SizeMismatch):
        moved = moved_channels(layout, rank, error.want)
        if moved is not None and node is not None and not _is_channels_first(event.operands[0].tensor):
            what = f"move the {context.text(error.want)} channels from the last dimension: `.{moved}`"
            edit = rewrites.method_called(event.place.module, node, moved)
            if layout.rank == rank + 1 and not _is_one_image(layout, rank):
                what = f"add a dimension: `.unsqueeze(-1)` for a batch; `.{moved}` if it is one sample"
                yield Fix(Applicability.DISPLAY, what, ())
            else:
                yield Fix(Applicability.UNSAFE, what, (edit,))
            return
        if layout.rank == rank + 1 and error.want.value == 1 and node is not None:
            # Without a batch dimension torch reads the first one as channels.
            edit = rewrites.method_called(event.place.module, node, "unsqueeze(1)")
            sure = error.have.value is None or error.have.value > 4
            what = f"add a channel dimension to each of the {context.text(error.have)}: `.unsqueeze(1)`"
            if not sure:
                what += f", or create `{called(event)}` with in_channels={context.text(error.have)}"
            yield Fix(Applicability.UNSAFE if sure else Applicability.DISPLAY, what, (edit,))
            return
        advice = _doubt(layout, error, rank, context)
        if advice:
            yield Fix(Applicability.DISPLAY, advice, ())
        else:
            yield from number_fixes(event, error, context)
    elif isinstance(error, WrongRank) and not error.operand:
        yield from _rank_fixes(event, error, layout, rank, node)


_OF_IMAGES = frozenset({Op.CONVOLUTION, Op.POOLING, Op.BATCH_NORM})
_MOVING = frozenset({Op.PERMUTE, Op.TRANSPOSE, Op.MOVEDIM, Op.VIEW, Op.RESHAPE, Op.UNFLATTEN})


def _is_channels_first(tensor: TensorValue) -> bool:
    """Whether a tensor is the result of a convolution or pooling, with its channels in dimension 1."""
    for step in lineage(tensor):
        if step.op in _OF_IMAGES or step.op in _MOVING:
            return step.op in _OF_IMAGES
    return False


def moved_channels(layout: Layout, rank: int, want: Size) -> str | None:
    """Return the method to move the last dimension to the channels, if its size matches."""
    if same(layout.sizes[-1], want) is not True:
        return None
    return _TO_CHANNELS_FIRST.get((rank, layout.rank))


def _doubt(layout: Layout, error: SizeMismatch, rank: int, context: CheckContext) -> str:
    """Return advice if another in_channels would hide the mistake, or an empty string."""
    if _is_few(error.have) or layout.sizes[-1].value is None:
        return ""
    last = context.text(layout.sizes[-1])
    moved = _TO_CHANNELS_FIRST.get((rank, layout.rank))
    if _is_few(layout.sizes[-1]) and moved is not None:
        put = f"move the channels from the last dimension: `.{moved}`"
        return f"{put}, and create the layer with in_channels={last}"
    if layout.rank == rank + 1 and rank > 1:
        one = "add a channel dimension: `.unsqueeze(1)`, with in_channels=1"
        return f"{one}, or use in_channels={context.text(error.have)} if this is one image"
    return ""


def _is_one_image(layout: Layout, rank: int) -> bool:
    """Whether a tensor without a batch dimension is one image with its channels last, and not a batch."""
    return rank > 1 and _is_few(layout.sizes[-1]) and not isinstance(layout.sizes[0].only_symbol, BatchSize)


def _is_few(size: Size) -> bool:
    """Whether a size is a common number of image channels: gray, RGB or RGBA."""
    return size.value is not None and size.value <= 4


def _rank_fixes(
    event: OpRejected, error: WrongRank, layout: Layout, rank: int, node: cst.BaseExpression | None
) -> Iterator[Fix]:
    sizes = layout.sizes
    setting = CHANNELS.get(event.function)
    wanted = None if setting is None else as_size(event.settings.get(setting.name))
    module = event.place.module
    renamed = _renamed(event, layout, rank, wanted)
    if renamed is not None:
        yield Fix(Applicability.UNSAFE, f"use `{renamed.content}`, for {layout.rank}-D tensors", (renamed,))
        return
    if node is None:
        return
    if error.have == rank + 3:
        ones = [dim for dim, size in enumerate(sizes) if size.value == 1]
        after = [size for dim, size in enumerate(sizes) if dim not in ones[:1]]
        if len(ones) == 1 and (wanted is None or same(after[1], wanted)):
            edit = rewrites.method_called(module, node, f"squeeze({ones[0]})")
            yield Fix(
                Applicability.UNSAFE, f"remove dimension {ones[0]} of size 1: `.squeeze({ones[0]})`", (edit,)
            )
        elif wanted is None or same(sizes[2], wanted):
            edit = rewrites.method_called(module, node, "flatten(0, 1)")
            advice = "merge the first two dimensions into one batch, and split them again afterwards"
            yield Fix(Applicability.DISPLAY, advice, (edit,))
    elif error.have == rank and wanted is not None:
        side = _side(sizes[-1], wanted, rank) if rank == 2 and same(sizes[0], sizes[-1]) is not True else None
        if side is not None:
            shape = ", ".join(map(str, (wanted.value, *[side] * rank)))
            edit = rewrites.method_called(module, node, f"unflatten(1, ({shape}))")
            advice = f"reshape each row of {sizes[-1].value} to an image: ({shape})"
            yield Fix(Applicability.UNSAFE, advice, (edit,))
        elif wanted.value == 1:
            edit = rewrites.method_called(module, node, "unsqueeze(0)")
            yield Fix(Applicability.DISPLAY, "add the channel dimension, or a batch dimension", (edit,))


def _side(count: Size, wanted: Size, rank: int) -> int | None:
    """Return the side of the square image in a row of count elements, or None."""
    if count.value is None or not wanted.value or count.value % wanted.value:
        return None
    side = math.isqrt(count.value // wanted.value)
    return side if side > 1 and side**rank * wanted.value == count.value else None


def _renamed(event: OpRejected, layout: Layout, rank: int, wanted: Size | None) -> Edit | None:
    """Return the edit to the same layer for the tensor's number of spatial dimensions."""
    other = layout.rank - 2
    if not 1 <= other <= 3 or other == rank or other == rank - 1:
        # One dimension less may also be a missing batch.
        return None
    if wanted is not None and (
        same(layout.sizes[1], wanted) is not True or same(layout.sizes[2], wanted) is True
    ):
        return None
    name = event.function.rpartition(".")[2]
    return renamed_class(event.layer, f"{name[:-2]}{other}d")
