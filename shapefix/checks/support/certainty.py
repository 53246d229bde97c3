"""Reservations: assumptions of a finding about the way of the run to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.lessons import reason_of_lesson
from shapefix.checks.support.sequential_layers import is_stated_by_code
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.operations import Discarded, Viewed
from shapefix.interpreter.evaluator import Guard, Way
from shapefix.interpreter.events import Event, OperationEvent, OpRejected
from shapefix.interpreter.modules import Place, children, counts_passes, dotted_name, nodes
from shapefix.interpreter.refinement import sizes_in
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import FunctionValue, LibraryObject
from shapefix.tensors.errors import IndexOutOfRange, TooManyIndices, WrongDtype
from shapefix.tensors.ops import Op


def reservation(event: Event, found: Diagnostic, context: CheckContext) -> str:
    """Return the reason to report a finding on request only, in words; "" if the code says all of it."""
    if _is_without_dimensions(event):
        return ""
    if _is_tried_out(event):
        return "the line may only show a result: the script makes its tensor, too"
    if reason := reason_of_lesson(event, found):
        return reason
    if isinstance(event, Viewed) and found.condition is not None and _is_window(event.tensor):
        return f"it is assumed that a run has {found.condition.text}"
    if not event.is_of_values:
        return ""
    way = context.way(event)
    guard = next(_deciding(way), None)
    if guard is not None:
        return f"it is assumed that `{abbreviate(guard.test.code)}` lets these values pass"
    if isinstance(event, OpRejected) and is_stated_by_code(event):
        # The code chose both numbers when it created the layers: no argument reconciles them.
        return ""
    if isinstance(event, DeviceMismatch) and event.cpu.within is not None:
        # A module makes this tensor itself, for each caller.
        return ""
    if way.uncalled is not None and _takes_arguments(way.uncalled) and not _is_stated(event):
        return f"no known code calls `{way.uncalled.qualified}`, so its arguments are assumed"
    is_conditional = found.condition is not None and not found.condition.constant
    if isinstance(event, OperationEvent) and found.condition is not None and is_conditional:
        if isinstance(event, OpRejected) and isinstance(event.error, IndexOutOfRange):
            # The code states the range of the ids: sooner or later, a batch has each of them.
            return ""
        return f"it is assumed that a run has {found.condition.text}"
    if way.unfollowed and _is_of_objects(event) and not _is_out_of_reach(event, way):
        return "it is assumed that no unknown code called before changes these objects"
    return ""


def _is_without_dimensions(event: Event) -> bool:
    """Whether a tensor without dimensions is indexed: `loss[0]` fails for all values."""
    return isinstance(event, OpRejected) and isinstance(event.error, TooManyIndices) and event.error.rank == 0


def _takes_arguments(function: FunctionValue) -> bool:
    """Whether a function gets values from its callers, a method from its object."""
    params = function.node.params
    return function.owner is not None or any((*params.posonly_params, *params.params, *params.kwonly_params))


def _is_window(tensor: TensorValue) -> bool:
    """Whether a tensor is a slice between bounds of a loop, of a tensor with nothing else known of it.

    A text cut into windows has one row, where a batch has several.
    """
    step = tensor.origin
    while step is not None and step.before is not None:
        step = step.before
    if step is None or step.op is not Op.SLICE or step.source is not None:
        return False
    around = enclosing(step.place.module, step.place.node)
    targets = {
        node.target.value
        for node in around
        if isinstance(node, cst.For) and isinstance(node.target, cst.Name)
    }
    bounds = (part for part in nodes(step.place.node) if isinstance(part, cst.SubscriptElement))
    return any(
        isinstance(node, cst.Name) and node.value in targets for each in bounds for node in nodes(each)
    )


def _is_out_of_reach(event: Event, way: Way) -> bool:
    """Whether the layer of an operation is out of the reach of unknown code."""
    layer = event.layer if isinstance(event, OperationEvent) else None
    return isinstance(layer, LibraryObject) and not way.escapes.reach(layer)


_MADE = frozenset({Op.CREATION, Op.NUMPY_CREATION, Op.RANDOM_SAMPLING})


def _is_stated(event: Event) -> bool:
    """Whether the code around an operation states all of its sizes, and makes its tensors."""
    if not isinstance(event, OpRejected) or any(size.value is None for size in sizes_in(event.error)):
        return False
    return all(_first_op(operand.tensor) in _MADE for operand in event.operands)


def _first_op(tensor: TensorValue) -> Op | None:
    step = tensor.origin
    while step is not None and (before := step.source or step.before) is not None:
        step = before
    return None if step is None else step.op


def _is_of_objects(event: Event) -> bool:
    """Whether a finding is about a layer, a model or a list, unlike the sizes and dtype of a tensor.

    Unknown code that gets such an object may change it.
    """
    if isinstance(event, OpRejected) and isinstance(event.error, WrongDtype):
        return False
    if not isinstance(event, OperationEvent) or event.layer is not None:
        return True
    is_parameter = any(operand.tensor.own for operand in event.operands)
    return is_parameter or (isinstance(event, DeviceMismatch) and event.cpu.of_weights)


def _deciding(way: Way) -> Iterator[Guard]:
    """Yield the conditions with a possible influence on the values of the finding.

    Those of the same function may. One around a call only may if it reads what the call passes on, and so
    does one on a setting: others choose what the program does, such as `if args.train:`.
    """
    for guard in way.guards:
        if counts_passes(guard.test.node) or _asks_for_hardware(guard.test):
            continue
        names = set(_names(guard.test.node))
        if (guard.is_own and not all(map(_is_setting, names))) or not names.isdisjoint(_names(guard.at.node)):
            yield guard


_OF_HARDWARE = frozenset({"is_available", "is_cuda", "is_xpu", "is_mps", "device_count"})


def _asks_for_hardware(test: Place) -> bool:
    """Whether a condition is about the machine: `torch.cuda.is_available()`, `x.is_cuda`."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in _OF_HARDWARE for node in nodes(test.node)
    )


_SETTINGS = frozenset({"args", "opt", "opts", "cfg", "config", "FLAGS", "hparams"})


def _is_setting(name: str) -> bool:
    """Whether a name is usual for a setting of the program: `args.train`, `self.config.mode`."""
    return not _SETTINGS.isdisjoint(name.split(".")[:-1])


_OF_TENSORS = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "requires_grad"})


def _names(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names and chains of attributes read by code: `x` for `x.dim()` and `x.shape`, `self.mode`."""
    if isinstance(node, cst.Call):
        parts: tuple[cst.CSTNode, ...] = tuple(each.value for each in node.args)
        if isinstance(node.func, cst.Attribute):
            parts = (node.func.value, *parts)
    elif isinstance(node, cst.Attribute) and node.attr.value in _OF_TENSORS:
        parts = (node.value,)
    elif name := dotted_name(node):
        yield name
        return
    else:
        parts = tuple(children(node))
    for part in parts:
        yield from _names(part)


def _is_tried_out(event: Event) -> bool:
    """Whether a script computes something to look at: outside of functions and loops, of its own tensors."""
    if event.calls or not isinstance(event, Discarded) or event.function.rpartition(".")[2] in _MOVES:
        # A lost move shows where the tensor meets others.
        return False
    around = enclosing(event.place.module, event.place.node)
    if any(isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.For, cst.While)) for node in around):
        return False
    return _is_made_in_script(event.held)


_MOVES = frozenset({"to", "cuda", "cpu"})


def _is_made_in_script(tensor: TensorValue | None) -> bool:
    """Whether every known step in the life of a tensor is at the top level of a script."""
    if tensor is None or tensor.origin is None:
        return False
    step: LayoutStep | None = tensor.origin
    while step is not None:
        if step.function is not None:
            return False
        step = step.source or step.before
    return True
