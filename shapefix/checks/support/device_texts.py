"""Devices in messages: their names, their origins and their conditions."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.checks.support.device_placement import is_local
from shapefix.checks.support.syntax import enclosing_class, enclosing_function
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Condition, Evidence
from shapefix.interpreter.modules import Place, dotted_name
from shapefix.interpreter.tensor_values import Device, DeviceKind


def on_a_gpu(device: Device) -> Condition | None:
    if device.kind is not DeviceKind.CHOSEN:
        return None
    where = device_text(device)
    text = "a GPU is available" if where == _AVAILABLE else f"{where} is a GPU"
    return Condition(text, constant=True)


def came_from(device: Device, text: str) -> Iterator[Evidence]:
    if device.place is not None:
        yield Evidence(device.place.span, text)


def device_code(device: Device) -> cst.BaseExpression | None:
    """Return the device expression of a move, or None."""
    node = device.place.node if device.place is not None else None
    if not isinstance(node, cst.Call):
        return None
    for given in node.args:
        if given.keyword is not None and given.keyword.value == "device":
            return given.value
    is_move = isinstance(node.func, cst.Attribute) and node.func.attr.value == "to"
    first = node.args[0] if is_move and node.args else None
    return first.value if first is not None and first.keyword is None and not first.star else None


_AVAILABLE = "the GPU"


def moved_or_created(device: Device) -> str:
    """Return whether the code moves to a device, or creates there."""
    node = device.place.node if device.place is not None else None
    method = node.func if isinstance(node, cst.Call) else None
    moves = isinstance(method, cst.Attribute) and method.attr.value in ("to", "cuda")
    return "moved to" if moves else "created on"


def device_text(device: Device, seen_from: Place | None = None) -> str:
    """Return the code of a device, with its place if its names are those of another function or file."""
    node = device_code(device)
    if node is None or device.place is None:
        return f"`{device.name}`" if device.name else "a GPU"
    if isinstance(node, cst.IfExp) and isinstance(node.test, cst.Call):
        if dotted_name(node.test.func) == "torch.cuda.is_available":
            return _AVAILABLE
    text = f"`{abbreviate(device.place.module.code(node))}`"
    if seen_from is None or isinstance(node, cst.SimpleString) or _is_visible(node, device.place, seen_from):
        return text
    return f"{text} ({rewrites.line_of(device.place, seen_from.module)})"


def _is_visible(node: cst.BaseExpression, there: Place, here: Place) -> bool:
    """Whether an expression means the same at another place of the file."""
    if there.module is not here.module:
        return False
    if enclosing_function(there) is enclosing_function(here):
        return True
    root = dotted_name(node).partition(".")[0]
    if root == "self":
        return enclosing_class(there) is enclosing_class(here)
    return bool(root) and not is_local_name(there, root)


def is_local_name(place: Place, name: str) -> bool:
    function = enclosing_function(place)
    return function is not None and is_local(function, name)
