"""Places and devices of tensor creation."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.diagnostics import Applicability, Fix
from shapefix.domains.devices import DeviceMismatch
from shapefix.interpreter.modules import Module, Place, children, dotted_name

CREATIONS = frozenset(
    {
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "linspace",
        "logspace",
        "eye",
        "tensor",
        "as_tensor",
    }
)
"""The functions of torch that take `device=`."""


def made_in_module(event: DeviceMismatch) -> bool:
    """Whether the tensor on the CPU was created in a module's code, without a device."""
    return event.here is not None and event.cpu.by_default and event.cpu.within is not None


def is_creation(node: cst.CSTNode) -> bool:
    """Whether a node calls a function of torch with a parameter `device`."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and dotted_name(node.func.value) == "torch"
        and node.func.attr.value in CREATIONS
    )


def with_device(made: Place, code: str) -> Fix:
    """Return the fix to create a tensor on a device."""
    assert isinstance(made.node, cst.Call)
    edit = rewrites.appended(made.module, made.node, f"device={code}")
    return Fix(Applicability.SAFE, f"create it on the same device: `device={code}`", (edit,))


def first_bound(module: Module, function: cst.CSTNode | None, name: str) -> int | None:
    """Return the first row in a function, or on the top level, with a binding of a name, or None."""
    if isinstance(function, cst.FunctionDef):
        params = function.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            if param.name.value == name:
                return module.span(function).row
    rows = [module.span(node).row for node in _bindings(function or module.tree, name)]
    return min(rows, default=None)


def _bindings(block: cst.CSTNode, name: str) -> Iterator[cst.CSTNode]:
    for node in children(block):
        if isinstance(node, cst.AssignTarget) and dotted_name(node.target) == name:
            yield node
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            yield from _bindings(node, name)
