"""Functions and layers with declared sizes: `signatures` of the configuration."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from shapefix.domains.declared_sizes import DeclarationContradicted
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.functions import invalidate
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import FunctionValue, Unknown, Value
from shapefix.library.registry import Handler
from shapefix.sources.declarations import Declaration, DeclaredTensor, DeclaredValue, declaration
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide


def handler_of(name: str, text: str) -> Handler:
    """Return the handler of a function outside of the project with declared sizes."""

    def call_declared(call: Call) -> Value:
        declared = declaration(text)
        given = dict(zip((each for each, _ in declared.parameters), call.arguments.positional, strict=False))
        given |= call.arguments.keywords
        invalidate(call.ev, call.arguments.everything)
        return _result(call.ev, call.place, name, declared, given, call.arguments.open)

    return call_declared


@hooks.returned
def note_result(
    ev: Evaluator, function: FunctionValue, given: Mapping[str, Value], result: Value, place: Place
) -> Value:
    """Compare a result with the declaration of the function; an unknown one becomes the declared one."""
    if not ev.library.signatures:
        return result
    name = f"{function.module.name}.{function.qualified}"
    text = ev.library.signatures.get(name)
    if text is None:
        return result
    declared = declaration(text)
    sizes = _bound(ev, place, name, declared, given)
    if type(result) is Unknown and result.tensor is None:
        return _value(ev, place, declared.result, sizes)
    _compare(ev, place, name, "", declared.result, result, sizes)
    return result


def _result(
    ev: Evaluator,
    place: Place,
    name: str,
    declared: Declaration,
    given: Mapping[str, Value],
    is_open: bool,
) -> Value:
    """Return the declared result of a call."""
    sizes = {} if is_open else _bound(ev, place, name, declared, given)
    return _value(ev, place, declared.result, sizes)


def _bound(
    ev: Evaluator, place: Place, name: str, declared: Declaration, given: Mapping[str, Value]
) -> dict[str, Size]:
    """Return the sizes of the names in the declared parameters, for these arguments."""
    sizes: dict[str, Size] = {}
    for parameter, wanted in declared.parameters:
        if isinstance(wanted, DeclaredTensor):
            tensor = _tensor(given.get(parameter))
            layout = None if tensor is None else tensor.layout
            if layout is not None and layout.rank == len(wanted.sizes):
                for node, size in zip(wanted.sizes, layout.sizes, strict=True):
                    if isinstance(node, ast.Name) and node.id != "_":
                        sizes.setdefault(node.id, size)
    for parameter, wanted in declared.parameters:
        if parameter in given:
            _compare(ev, place, name, parameter, wanted, given[parameter], sizes)
    return sizes


def _tensor(value: Value | None) -> TensorValue | None:
    return value.tensor if isinstance(value, Unknown) else value if isinstance(value, TensorValue) else None


def _compare(
    ev: Evaluator,
    place: Place,
    name: str,
    parameter: str,
    wanted: DeclaredValue,
    value: Value,
    sizes: Mapping[str, Size],
) -> None:
    """Report a value with other sizes than declared."""
    if isinstance(wanted, tuple):
        for part, item in zip(wanted, elements(value) or (), strict=False):
            _compare(ev, place, name, parameter, part, item, sizes)
        return
    tensor = _tensor(value)
    if wanted is None or tensor is None or tensor.layout is None or not tensor.certain:
        return
    known = [_size(node, sizes) for node in wanted.sizes]
    is_other = len(known) != tensor.layout.rank or any(
        one is not None and (one - two).value not in (None, 0)
        for one, two in zip(known, tensor.layout.sizes, strict=True)
    )
    if is_other and not any(frame.undecided for frame in ev.frames):
        ev.emit(DeclarationContradicted(place, ev.calls, name, parameter, wanted.text, tensor))


def _value(ev: Evaluator, place: Place, declared: DeclaredValue, sizes: dict[str, Size]) -> Value:
    """Return the declared value; names without a size get a new one."""
    if declared is None:
        return Unknown()
    if isinstance(declared, tuple):
        return TupleValue(tuple(_value(ev, place, part, sizes) for part in declared))
    made = []
    for node in declared.sizes:
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and name.id not in sizes and name.id != "_":
                sizes[name.id] = Size.symbol(name.id)
        made.append(_size(node, sizes) or Size.symbol("_"))
    layout = unknown_strides(made)
    origin = LayoutStep(place, Op.MODULE_CALL, layout, None, ev.function)
    return TensorValue(layout, dtype=declared.dtype, origin=origin)


def _size(node: ast.expr, sizes: Mapping[str, Size]) -> Size | None:
    """Return a declared size; None if it has an unknown name."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Size.of(node.value)
    if isinstance(node, ast.Name):
        return sizes.get(node.id)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _size(node.left, sizes), _size(node.right, sizes)
    if left is None or right is None:
        return None
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right.value != 0:
            return floor_divide(left, right)
    return None
