"""Layers of a Sequential: the source of a mismatch between two of them."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.layer_settings import GIVES, NORMS, chosen_by, from_end, kind_of, taken_by
from shapefix.checks.support.syntax import enclosing
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import LibraryObject, as_size
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, SizeMismatch, WindowTooLarge, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


def neighbor(event: OpRejected) -> LibraryObject | None:
    """Return the layer of the same Sequential causing the mismatch, or None for an outside tensor.

    Layers in between, such as an activation, keep the mismatched property.
    """
    if not event.operands:
        return None
    step, found = event.operands[0].tensor.origin, None
    while step is not None and step.place.node is event.place.node:
        if isinstance(step.producer, LibraryObject):
            found = step.producer
        if step.source is None or not _is_kept(event, step, step.source):
            return found
        step = step.source
    # The mismatch existed before the first layer.
    return None


def is_stated_by_code(event: OpRejected) -> bool:
    """Whether the code chose both sizes of a mismatch: a layer's setting against that of the layer before.

    The size before the layer may also be the number in a view: `x.view(-1, 20)`. It goes through operations
    that keep the dimension, such as an activation or a pooling.
    """
    error = event.error
    if not isinstance(error, SizeMismatch) or taken_by(event) is None:
        return False
    layout, dim = event.operands[error.operand].layout, from_end(event, error)
    step = event.operands[error.operand].tensor.origin
    while step is not None and dim < 0:
        if step.layout is not None and not _has_size(step, layout, dim, error.have):
            return False
        setting = chosen_by(step.producer, dim)
        if setting is not None and isinstance(step.producer, LibraryObject):
            given = as_size(step.producer.arguments.get(setting.name))
            return layout is not None or (given is not None and same(given, error.have) is True)
        if step.op in _MERGING:
            if step.layout is None or dim != -1:
                return False
            if error.have.value is not None:
                return True
            # The pooled height and width are 1: `x.flatten(1)`.
            step = step.source
            layout = None if step is None else step.layout
            dim = _before_ones(layout, error.have)
            continue
        if step.layout is None and layout is not None:
            return False
        step = step.source or step.before
    return False


_MERGING = frozenset({Op.VIEW, Op.RESHAPE, Op.FLATTEN})


def _before_ones(layout: Layout | None, size: Size) -> int:
    """Return the dimension of a size with only dimensions of size 1 after it, from the end; 0 without it."""
    for dim in range(-1, -1 if layout is None else -layout.rank - 1, -1):
        if layout is not None and layout.sizes[dim].value != 1:
            return dim if same(layout.sizes[dim], size) is True else 0
    return 0


def _has_size(step: LayoutStep, layout: Layout | None, dim: int, size: Size) -> bool:
    """Check whether the layout after a step has the rank of another one, and this size."""
    own = step.layout
    if own is None or layout is None or own.rank != layout.rank:
        return False
    return same(own.sizes[dim], size) is True


def edited_place(event: OpRejected) -> Place:
    """Return the place to edit: the layer's own if it is in a Sequential, else that of the call."""
    layer = event.layer
    if not isinstance(layer, LibraryObject) or layer.place is None or not isinstance(layer.place, Place):
        return event.place
    module = layer.place.module
    around = enclosing(module, layer.place.node)
    calls = (node for node in around if isinstance(node, cst.Call) and node is not layer.place.node)
    is_inside = any(module.code(call.func).rpartition(".")[2] == "Sequential" for call in calls)
    return layer.place if is_inside else event.place


def _is_kept(event: OpRejected, step: LayoutStep, source: LayoutStep) -> bool:
    """Whether a layer keeps the mismatched property of its input."""
    error = event.error
    if isinstance(error, (WindowTooLarge, NotDivisible)) or step.producer is None:
        return step.producer is None
    if step.layout is None or source.layout is None:
        known = kind_of(step.producer)
        return step.layout is source.layout and known not in GIVES and known not in NORMS
    if step.layout.rank != source.layout.rank:
        return False
    if isinstance(error, WrongRank):
        return kind_of(step.producer) not in GIVES
    if not isinstance(error, SizeMismatch):
        return False
    operand, dim = event.operands[0].layout, from_end(event, error)
    if -dim > step.layout.rank or (operand is not None and operand.rank != step.layout.rank):
        return False
    return same(step.layout.sizes[dim], source.layout.sizes[dim]) is True
