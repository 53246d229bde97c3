"""Places and devices of tensor creation."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import is_passed
from shapefix.checks.support.syntax import enclosing_function
from shapefix.diagnostics import Applicability, Fix
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.operations import Discarded
from shapefix.interpreter.modules import Module, Place, children, dotted_name, nodes, target_names
from shapefix.interpreter.values import as_tensor

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


def lost_moves(event: DeviceMismatch, context: CheckContext) -> list[Discarded]:
    """Return the first discarded move of the tensor on the CPU: assigning its result mends both."""
    tensor = None if event.here is None else event.operands[event.here].tensor
    if tensor is None:
        return []
    return [
        each
        for each in context.events
        if isinstance(each, Discarded)
        and each.function in ("torch.Tensor.to", "torch.Tensor.cuda")
        and (moved := as_tensor(each.receiver)) is not None
        and (moved is tensor or (moved.device is not None and moved.device is tensor.device))
    ][:1]


_DEVICE_WORDS = ("cuda", "gpu", "device", "cpu", "mps")


def tests_device(test: cst.BaseExpression) -> bool:
    """Whether a condition names a device: `x.is_cuda`, `args.device == "cuda"`, `use_gpu`."""
    names = (
        node.value.lower()
        for node in nodes(test)
        if isinstance(node, (cst.Name, cst.SimpleString)) and isinstance(node.value, str)
    )
    return any(word in name for name in names for word in _DEVICE_WORDS)


def is_creation(node: cst.CSTNode) -> bool:
    """Whether a node calls a function of torch with a parameter `device`."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and dotted_name(node.func.value) == "torch"
        and node.func.attr.value in CREATIONS
    )


def with_device(made: Place, code: str, safety: Applicability = Applicability.SAFE) -> Fix:
    """Return the fix to create a tensor on a device."""
    assert isinstance(made.node, cst.Call)
    edit = rewrites.appended(made.module, made.node, f"device={code}")
    return Fix(safety, f"create it on the same device: `device={code}`", (edit,))


def bound_by(node: cst.CSTNode) -> frozenset[str]:
    """Return the names bound or unbound by one node of the code."""
    if isinstance(
        node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
    ):
        return frozenset(target_names(node.target))
    if isinstance(node, cst.Del):
        return frozenset(target_names(node.target))
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return frozenset({node.name.value})
    if isinstance(node, cst.AsName):
        return frozenset(target_names(node.name))
    if isinstance(node, (cst.Global, cst.Nonlocal)):
        return frozenset(item.name.value for item in node.names)
    if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
        return frozenset({node.name.value})
    return frozenset()


def is_bound_once_before(name: str, here: Place) -> bool:
    """Whether a variable has one value only, and certainly has it at this place.

    It is a parameter, or a single statement binds it before: in the function around here, or else at the top
    level of the file, above that function.
    """
    module, function = here.module, enclosing_function(here)
    if function is not None:
        own = _bindings(function, name)
        if is_local(function, name):
            return not own or (len(own) == 1 and _is_before(module, own[0], here.node))
    top = _bindings(module.tree, name)
    above = here.node if function is None else function
    return len(top) == 1 and _is_before(module, top[0], above)


def is_local(function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is a parameter of a function, or bound in it."""
    parameters = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    return any(param.name.value == name for param in parameters) or bool(_bindings(function, name))


def _is_before(module: Module, binding: cst.CSTNode, node: cst.CSTNode) -> bool:
    return module.span(binding).row < module.span(node).row and is_passed(module, node, binding)


def _bindings(block: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """Return the bindings of a name in a function, or in the file; not those in inner functions."""
    found: list[cst.CSTNode] = []
    for node in children(block):
        if name in bound_by(node):
            found.append(node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            stated = (each for each in nodes(node) if isinstance(each, (cst.Global, cst.Nonlocal)))
            found.extend(each for each in stated if name in bound_by(each))
        else:
            found.extend(_bindings(node, name))
    return found
