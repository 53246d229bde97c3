"""Find the functions, classes and methods of a file by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.modules import Module
from shapefix.interpreter.names import module_name, scope_of
from shapefix.interpreter.values import ClassValue, FunctionValue, Integer, Value
from shapefix.interpreter.watching import parameter_names
from shapefix.light_dataclasses import dataclass
from shapefix.sources.configuration import suggestion


class UnknownTarget(Exception):
    """There is nothing to show; the message explains why."""


@dataclass(frozen=True)
class Target:
    """A function to watch; owner is the requested class, and top its name in the file."""

    name: str
    top: str
    function: FunctionValue
    node: cst.FunctionDef
    owner: ClassValue | None


def all_targets(ev: Evaluator, module: Module) -> list[Target]:
    """Return the modules of a file, or else its functions."""
    classes, functions = _definitions(ev, module)
    found = [_forward(cls.name, cls) for cls in classes if _own_forward(cls)]
    return found or [Target(each.name, each.name, each, _node(each), None) for each in functions]


def target_named(ev: Evaluator, module: Module, name: str) -> Target:
    first, _, method = name.partition(".")
    value = _look_up(ev, module, first)
    if isinstance(value, FunctionValue) and isinstance(value.node, cst.FunctionDef) and not method:
        return Target(name, first, value, value.node, None)
    if isinstance(value, ClassValue):
        return _forward(first, value, method or "forward")
    classes, functions = _definitions(ev, module)
    known = [*(cls.name for cls in classes), *(each.name for each in functions)]
    listed = (
        f"; the file defines {', '.join(known)}" if known else "; the file defines no class and no function"
    )
    if value is not None and not method:
        raise UnknownTarget(f"{first} is not a class or function of the project{listed}")
    raise UnknownTarget(f"no class or function named {first!r}{suggestion(first, known, listed)}")


def _forward(top: str, cls: ClassValue, method: str = "forward") -> Target:
    """Return the method of a class, its own or a base's. Raises UnknownTarget."""
    function = member(cls, method)
    if isinstance(function, FunctionValue) and isinstance(function.node, cst.FunctionDef):
        return Target(f"{cls.name}.{method}", top, function, function.node, cls)
    methods = [name for name, value in cls.fields.items() if isinstance(value, FunctionValue)]
    hint = f"; its methods are {', '.join(methods)}" if methods else "; it has no methods of its own"
    if method == "forward" and methods:
        hint += f": name one of them, {cls.name}.{methods[-1]}"
    raise UnknownTarget(f"class {cls.name} has no {method}" + hint)


def _look_up(ev: Evaluator, module: Module, name: str) -> Value | None:
    ev.frames.append(Frame(module, scope_of(ev, module)))
    try:
        return module_name(ev, module, name)
    finally:
        ev.frames.pop()


def _definitions(ev: Evaluator, module: Module) -> tuple[list[ClassValue], list[FunctionValue]]:
    """Return the classes and functions at the top level of a file."""
    classes: list[ClassValue] = []
    functions: list[FunctionValue] = []
    for name, statements in module.bindings.items():
        if not any(isinstance(each, (cst.ClassDef, cst.FunctionDef)) for each in statements):
            continue
        value = _look_up(ev, module, name)
        if isinstance(value, ClassValue) and value.module is module:
            classes.append(value)
        elif isinstance(value, FunctionValue) and value.module is module:
            functions.append(value)
    return classes, functions


def _own_forward(cls: ClassValue) -> bool:
    function = cls.fields.get("forward")
    return isinstance(function, FunctionValue) and isinstance(function.node, cst.FunctionDef)


def _node(function: FunctionValue) -> cst.FunctionDef:
    assert isinstance(function.node, cst.FunctionDef)
    return function.node


def check_inputs(targets: Sequence[Target], inputs: Mapping[str, object]) -> None:
    """Check that the inputs name parameters of the target. Raises UnknownTarget."""
    if len(targets) > 1:
        names = ", ".join(target.name.removesuffix(".forward") for target in targets)
        raise UnknownTarget(f"--input is for one function; append one of {names} after a colon")
    (target,) = targets
    known = parameter_names(target.node)[target.owner is not None :]
    for name in inputs:
        if name not in known and name not in _constructor(target.owner):
            listed = f"; its parameters are {', '.join(known)}" if known else "; it has no parameters"
            raise UnknownTarget(f"{target.name} has no parameter {name!r}{listed}")


def _constructor(cls: ClassValue | None) -> dict[str, bool]:
    """Return the parameters of a constructor, and whether each is required."""
    init = None if cls is None else member(cls, "__init__")
    if not isinstance(init, FunctionValue) or not isinstance(init.node, cst.FunctionDef):
        return {}
    params = init.node.params
    return {param.name.value: param.default is None for param in (*params.params[1:], *params.kwonly_params)}


def constructor_arguments(cls: ClassValue, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the constructor arguments; symbols only for required parameters."""
    return {
        name: known[name]
        for name, must in _constructor(cls).items()
        if name in known and (must or not isinstance(known[name], Integer))
    }
