"""Classes of torch.autograd.Function: gradients returned by `backward`, one for each input."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.classes import outside_bases
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place, children, dotted_name, nodes, target_names
from shapefix.interpreter.values import ClassValue, FunctionValue
from shapefix.light_dataclasses import dataclass

_FUNCTION = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_DECORATORS = frozenset({"staticmethod", "once_differentiable", "custom_fwd", "custom_bwd"})
"""Decorators without an effect on the number of parameters and results, by their last names."""
_OF_ONE = frozenset(
    {"clone", "neg", "mul", "div", "view", "reshape", "sum", "float", "contiguous", "clamp", "expand", "t"}
)
"""Methods with one tensor as result."""
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.MatrixMultiply)


@dataclass(frozen=True, eq=False, slots=True)
class GradientsMiscounted(Event):
    """A `return` in the backward of an autograd function with a wrong number of gradients.

    forward is the method with the inputs. wanted is the nearest number of gradients without error, given that
    of the returned ones; has_defaults is whether `apply` decides the number of inputs.
    """

    name: str
    forward: Place
    wanted: int
    given: int
    has_defaults: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class FunctionObjectCalled(Event):
    """Call of an object of an autograd function, instead of `apply` of its class.

    forward is its method in the project.
    """

    function: ClassValue
    forward: FunctionValue


@hooks.define_class
def _note_function(ev: Evaluator, cls: ClassValue) -> None:
    if len(cls.bases) != 1 or set(outside_bases(cls)) - {"builtins.object"} - _FUNCTION:
        return
    if not _FUNCTION.intersection(outside_bases(cls)):
        return
    forward, backward = _method(cls, "forward"), _method(cls, "backward")
    inputs = None if forward is None else _inputs(forward, "setup_context" in cls.fields)
    if forward is None or backward is None or inputs is None:
        return
    least, most = inputs
    gradients = {each.name.value for each in backward.params.params[1:]}
    for statement in _returns(backward.body):
        counted = _count(statement.value, backward, gradients)
        # A function of indices returns no gradient at all, and its backward never runs.
        if counted is None or counted[1] == 0 or (counted[0] >= least and counted[1] <= most):
            continue
        wanted = least if counted[0] < least else most
        place, start = Place(cls.module, statement), Place(cls.module, forward.params)
        ev.emit(GradientsMiscounted(place, ev.calls, cls.name, start, wanted, counted[0], least != most))


def _method(cls: ClassValue, name: str) -> cst.FunctionDef | None:
    method = cls.fields.get(name)
    node = method.node if isinstance(method, FunctionValue) and method.module is cls.module else None
    if not isinstance(node, cst.FunctionDef):
        return None
    names = [
        dotted_name(each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator)
        for each in node.decorators
    ]
    is_static = "staticmethod" in names
    is_known = all(each.rpartition(".")[2] in _DECORATORS for each in names)
    return node if is_static and is_known else None


def _inputs(forward: cst.FunctionDef, has_setup: bool) -> tuple[int, int] | None:
    """Return the least and the largest number of inputs; None if it is not known."""
    params = forward.params
    if isinstance(params.star_arg, cst.Param) or params.star_kwarg or params.kwonly_params:
        return None
    everything = [*params.posonly_params, *params.params]
    own = everything if has_setup else everything[1:]
    return sum(each.default is None for each in own), len(own)


def _returns(node: cst.CSTNode) -> Iterator[cst.Return]:
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child
        elif not isinstance(child, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            yield from _returns(child)


def _count(
    value: cst.BaseExpression | None, backward: cst.FunctionDef, gradients: set[str]
) -> tuple[int, int] | None:
    """Count the gradients, with and without `None` at the end; None if unknown."""
    if isinstance(value, cst.Tuple):
        if any(isinstance(each, cst.StarredElement) for each in value.elements):
            return None
        items = [each.value for each in value.elements]
        used = len(items)
        while used and _is_none(items[used - 1]):
            used -= 1
        return len(items), used
    if value is None or _is_none(value):
        return 1, 0
    return (1, 1) if _is_single(value, backward, gradients) else None


def _is_none(value: cst.CSTNode) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"


def _is_single(value: cst.BaseExpression, backward: cst.FunctionDef, gradients: set[str]) -> bool:
    """Check for an expression with one tensor as value, computed from a gradient."""
    if isinstance(value, cst.UnaryOperation):
        return _is_single(value.expression, backward, gradients)
    if isinstance(value, cst.BinaryOperation):
        is_plain = not any(isinstance(each, cst.Tuple) for each in nodes(value))
        sides = (value.left, value.right)
        is_arithmetic = isinstance(value.operator, _ARITHMETIC)
        return is_plain and is_arithmetic and any(_is_single(each, backward, gradients) for each in sides)
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        return value.func.attr.value in _OF_ONE and _is_single(value.func.value, backward, gradients)
    if not isinstance(value, cst.Name):
        return False
    assigned = list(_assigned(backward.body, value.value))
    if value.value in gradients:
        return not assigned
    return bool(assigned) and all(
        each is not None and not _uses(each, value.value) and _is_single(each, backward, gradients)
        for each in assigned
    )


def _assigned(body: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression | None]:
    """Yield the values assigned to a variable; None for an unknown one."""
    for node in nodes(body):
        if isinstance(node, cst.Assign):
            for target in node.targets:
                if name in target_names(target.target):
                    yield node.value if isinstance(target.target, cst.Name) else None
        elif isinstance(node, (cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)):
            if name in target_names(node.target):
                yield None


def _uses(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(each, cst.Name) and each.value == name for each in nodes(node))
