"""Edits of a layer's size in the code of its creation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, layer_code, made_at, shape_trace
from shapefix.checks.support.layer_settings import (
    GIVES,
    can_be,
    chosen_by,
    constructor,
    from_end,
    item_edit,
    taken_by,
)
from shapefix.checks.support.literal_sites import edit_of, given_to, product_of, stated
from shapefix.checks.support.rewrites import line_of
from shapefix.checks.support.syntax import enclosing_class, enclosing_function, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix
from shapefix.interpreter.containers import elements
from shapefix.interpreter.events import OperationCalled, OpRejected
from shapefix.interpreter.modules import Module, Place, called_name, dotted_name, nodes
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import LibraryObject, as_tensor
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import SizeMismatch
from shapefix.tensors.polynomials import product


def fitting(
    event: OpRejected, error: SizeMismatch, have: int, want: int, name: str = ""
) -> tuple[str, Edit | None]:
    """Describe how to create the layer for its input, and return the edit or None.

    name is a variable with the needed number.
    """
    setting, layer = taken_by(event), event.layer
    if setting is not None and elements(event.settings.get(setting.name)) is not None:
        edit = item_edit(layer, setting, have, from_end(event, error))
        return f"create the layer with {have} in its {setting.name}", edit
    merged = merged_sizes(event, error) if from_end(event, error) == -1 else ()
    return other_number(event, have, want, merged, name)


def other_number(
    event: OpRejected, have: int, want: int, merged: tuple[int, ...] = (), name: str = ""
) -> tuple[str, Edit | None]:
    """Describe how to create the layer with another number, and return the edit or None.

    merged are the sizes flattened into the number; name is a variable with the number.
    """
    taken, layer = taken_by(event), event.layer
    setting = "" if taken is None else taken.name
    change = f"create the layer with {setting}={have}"
    given = None
    is_own = isinstance(layer, LibraryObject) and constructor(layer) is not None
    if taken is not None and is_own and isinstance(layer, LibraryObject) and can_be(layer, taken, have):
        given = given_to(layer, taken.position, setting)
    if given is None or not isinstance(layer, LibraryObject) or layer.place is None:
        return change, None
    module = layer.place.module
    if _is_explained(module, given, want):
        return f"{change}, or change the input: a comment beside the layer states {want}", None
    if isinstance(given, cst.Integer):
        number_text = name or str(have)
        return f"create the layer with {setting}={number_text}", edit_of(module, given, number_text)
    if merged and (text := product_of(given, want, merged)) is not None:
        return f"create the layer with {setting}={text}", edit_of(module, given, text)
    number = stated(layer, setting, given)
    if number is None:
        return change, None
    place, node = number.place, number.place.node
    if not isinstance(node, cst.BaseExpression):
        return change, None
    text = (product_of(node, want, merged) if merged else None) or str(have)
    line = line_of(place, event.place.module)
    if _is_explained(place.module, node, want):
        return f"{change}, or change the input: a comment in {line} states {want}", None
    if not number.alone:
        name = f"`{number.name}`" if number.name else "it"
        return f"{change}: {name} is {want} from {line}, and has other uses", None
    name = f"`{number.name}` ({line})" if number.name else f"the {want} in {line}"
    return f"set {name} to {text}", edit_of(place.module, node, text)


def _is_explained(module: Module, node: cst.CSTNode, number: int) -> bool:
    """Whether a comment beside a number, or above it, states the same number: it is meant."""
    span = module.span(node)
    rows = module.text.split("\n")
    first = span.row - 1
    above = [first - 1] if first and rows[first - 1].lstrip().startswith("#") else []
    comments = [rows[row].partition("#")[2] for row in (*above, *range(first, span.end_row))]
    return any(re.search(rf"(?<![\w.]){number}(?![\w.])", comment) for comment in comments)


def written_at(event: OpRejected) -> Iterator[Evidence]:
    """Yield the place of the number used to create the layer, unless it is in the constructor call."""
    taken, layer = taken_by(event), event.layer
    if taken is None or not isinstance(layer, LibraryObject) or constructor(layer) is None:
        return
    given = given_to(layer, taken.position, taken.name)
    number = None if given is None else stated(layer, taken.name, given)
    if number is not None and number.name:
        yield Evidence(number.place.span, f"`{number.name}` is {number.place.code} here")


def layer_trace(event: OpRejected, context: CheckContext) -> list[Evidence]:
    """Return the calls leading to a layer, its construction, its number, and the steps to its input size."""
    came = shape_trace(event.operands[0].tensor, context) if event.operands else []
    error = event.error
    label, number = "", []
    if isinstance(error, SizeMismatch) and error.operand == 0:
        label, number = f"expects {context.text(error.want)}", list(written_at(event))
    return [*call_trace(event), *made_at(event.layer, "" if number else label), *number, *came]


def stated_at(event: OpRejected, label: str, primary: Place) -> Iterator[Evidence]:
    """Yield the construction of the layer; the label is at its number, unless the layer itself is primary."""
    taken, layer = taken_by(event), event.layer
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return
    place = layer.place
    if label and taken is not None and place is not primary and constructor(layer) is not None:
        given = given_to(layer, taken.position, taken.name)
        place = Place(place.module, given) if given is not None else place
    for step in made_at(layer, label):
        yield replace(step, span=place.span)


def merged_sizes(event: OpRejected, error: SizeMismatch) -> tuple[int, ...]:
    """Return the sizes flattened into the last size of the layer's input; empty if there was no flatten."""
    step = event.operands[error.operand].tensor.origin
    while step is not None and step.source is not None:
        before = step.source.layout
        if step.layout is None or before is None or not step.layout.rank or not before.rank:
            return ()
        if same(step.layout.sizes[-1], error.have) is not True:
            return ()
        if same(before.sizes[-1], error.have) is not True:
            for start in range(before.rank - 1, 0, -1):
                if same(product(before.sizes[start:]), error.have):
                    sizes = [size.value for size in before.sizes[start:]]
                    return tuple(size for size in sizes if size is not None)
            return ()
        step = step.source
    return ()


def other_use(event: OpRejected, context: CheckContext) -> str:
    """Return advice if another call of the class, or of the model, needs the layer as it is; "" otherwise."""
    node, module = event.place.node, event.place.module
    fitting_call = _accepting_call(event, context)
    if fitting_call is not None:
        want = context.text(event.error.want) if isinstance(event.error, SizeMismatch) else "the right size"
        return f"change the input: the layer gets the expected {want} from {line_of(fitting_call, module)}"
    name = dotted_name(node.func) if isinstance(node, cst.Call) else ""
    owner = enclosing_class(event.place)
    if owner is None or not name.startswith("self."):
        return ""
    if forgotten := _forgotten(event, owner):
        return f"call `{forgotten}` first: nothing uses it, and it fits in between"
    rejected = {each.place.node for each in context.events if isinstance(each, OpRejected)}
    others = (
        each
        for each in nodes(owner)
        if isinstance(each, cst.Call) and dotted_name(each.func) == name and each not in rejected
    )
    other = next(others, None)
    if other is None:
        return ""
    return f"change the input: `{name}` is also used in line {module.span(other).row}"


def _forgotten(event: OpRejected, owner: cst.ClassDef) -> str:
    """Return an unused layer of the class from the given number to the expected one; "" without one."""
    error = event.error
    if not isinstance(error, SizeMismatch) or error.operand:
        return ""
    wanted = [error.have.value, error.want.value]
    made = {
        dotted_name(each.targets[0].target): each.value
        for each in nodes(owner)
        if isinstance(each, cst.Assign) and isinstance(each.value, cst.Call) and len(each.targets) == 1
    }
    for name, call in made.items():
        given = [arg.value for arg in call.args[:2] if arg.keyword is None]
        numbers = [each.evaluated_value for each in given if isinstance(each, cst.Integer)]
        if numbers == wanted and called_name(call).startswith(("Linear", "Conv")):
            if sum(dotted_name(each) == name for each in nodes(owner)) == 1:
                return name
    return ""


def _accepting_call(event: OpRejected, context: CheckContext) -> Place | None:
    """Return a call passing the expected size to the layer, None without one."""
    error, layer = event.error, event.layer
    if not isinstance(error, SizeMismatch) or error.operand or not isinstance(layer, LibraryObject):
        return None
    dim = from_end(event, error)
    if dim >= 0:
        return None
    for each in context.events:
        if not isinstance(each, OperationCalled) or each.receiver is not layer:
            continue
        tensor = as_tensor(each.positional[0]) if each.positional else None
        sizes = tensor.layout.sizes if tensor is not None and tensor.layout is not None else ()
        if -dim <= len(sizes) and same(sizes[dim], error.want) is True:
            ways = zip_longest(each.calls, event.calls)
            return next((way for way, other in ways if way is not None and way != other), each.place)
    return None


def number_fixes(
    event: OpRejected, error: SizeMismatch, context: CheckContext, otherwise: str = ""
) -> Iterator[Fix]:
    """Suggest creating the layer for its input, or the layer before it with another output size.

    The fix is only displayed if a layer of the model set the size, or otherwise names another repair.
    """
    elsewhere = other_use(event, context)
    if elsewhere:
        yield Fix(Applicability.DISPLAY, ", or ".join(filter(None, [elsewhere, otherwise])), ())
        return
    setting = taken_by(event)
    have, want = error.have.value, error.want.value
    if setting is None or have is None or want is None:
        return
    step = giving_step(event, error)
    change, edit = fitting(event, error, have, want, "" if step is None else _shared_name(event, step))
    edits = () if edit is None else (edit,)
    giver = None if step is None else step.producer
    if step is not None and isinstance(giver, LibraryObject):
        helper = helper_call(step)
        what = GIVES[giver.kind].name
        change += (
            f", or `{layer_code(giver)}` with {what}={want}"
            if helper is None
            else f", or `{abbreviate(step.place.module.code(helper))}` so that its {what} is {want}"
        )
    if otherwise:
        change += f", or {otherwise}"
    is_sure = (
        not otherwise and giver is None and edit is not None and edit.span.path == event.place.module.path
    )
    yield Fix(Applicability.UNSAFE if is_sure else Applicability.DISPLAY, change, edits)


def helper_call(step: LayoutStep) -> cst.Call | None:
    """Return the call of a helper for the layer of a step: `self.conv = conv1x1(32, classes)`."""
    node, layer = step.place.node, step.producer
    name = dotted_name(node.func) if isinstance(node, cst.Call) else ""
    owner = enclosing_class(step.place)
    if owner is None or not name.startswith("self.") or not isinstance(layer, LibraryObject):
        return None
    stated = [
        each.value
        for each in nodes(owner)
        if isinstance(each, cst.Assign) and any(dotted_name(target.target) == name for target in each.targets)
    ]
    made = layer.place.node if layer.place is not None else None
    if len(stated) != 1 or made is None or not isinstance(stated[0], cst.Call) or holds(stated[0], made):
        return None
    return stated[0]


def _shared_name(event: OpRejected, step: LayoutStep) -> str:
    """Return the variable for the size of a tensor, if the layer is created in the same function."""
    giver, layer = step.producer, event.layer
    if not isinstance(giver, LibraryObject) or not isinstance(layer, LibraryObject) or layer.place is None:
        return ""
    setting, module = GIVES[giver.kind], layer.place.module
    given, helper = given_to(giver, setting.position, setting.name), helper_call(step)
    if helper is not None and giver.place is not None:
        given = _passed_for(given, helper, enclosing_function(giver.place))
    around = enclosing_function(layer.place)
    if not isinstance(given, (cst.Name, cst.Attribute)) or around is None or not holds(around, given):
        return ""
    return module.code(given)


def _passed_for(
    given: cst.BaseExpression | None, helper: cst.Call, function: cst.FunctionDef | None
) -> cst.BaseExpression | None:
    """Return the argument of a helper's call for its parameter."""
    if function is None or not isinstance(given, cst.Name):
        return None
    names = [param.name.value for param in function.params.params]
    if given.value not in names:
        return None
    passed = rewrites.argument(helper, names.index(given.value), given.value)
    return None if passed is None else passed.value


def giving_step(event: OpRejected, error: SizeMismatch) -> LayoutStep | None:
    """Return the step of the layer with the setting for the tensor's mismatched size, or None."""
    step, dim = event.operands[error.operand].tensor.origin, from_end(event, error)
    while step is not None:
        if step.layout is not None:
            sizes = step.layout.sizes
            if -dim > len(sizes) or same(sizes[dim], error.have) is not True:
                return None
        if isinstance(step.producer, LibraryObject) and chosen_by(step.producer, dim) is not None:
            return step
        step = step.source
    return None
