"""SF603: tensors of a module that do not go where the module goes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.device_placement import first_bound, is_creation, made_in_module, with_device
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.operands import code_of, named
from shapefix.checks.support.rewrites import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Span
from shapefix.interpreter.devices import FORWARD
from shapefix.interpreter.events import DeviceMismatch
from shapefix.interpreter.modules import Place, children, dotted_name

_MOVERS = frozenset({"_apply", "to", "cuda"})
"""A class that has its own of these may move its tensors itself."""


@rule("SF603", on=DeviceMismatch)
def left_on_the_cpu(event: DeviceMismatch, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    made = event.cpu.place
    if not made_in_module(event) or made is None or event.undecided or not _is_first(event, context):
        return
    assert event.cpu.within is not None
    if event.cpu.within.name.value in FORWARD:
        yield rule.diagnostic(
            made.span,
            f"`{abbreviate(made.code)}` is made on the CPU, wherever the module and its input are",
            condition="the module is on a GPU",
            evidence=[*call_trace(event), Evidence(event.place.span, f"it meets {_met(event)} here")],
            fixes=_with_device(event, made),
        )
        return
    assign = _assignment(made)
    name = _attribute(assign) if assign is not None else ""
    if assign is None or not name or _moves_itself(made):
        return
    yield rule.diagnostic(
        made.module.span(assign),
        f"`{name}` is no buffer: it stays on the CPU when the module goes to a GPU",
        condition="the module is on a GPU",
        evidence=[*call_trace(event), Evidence(event.place.span, f"it meets {_met(event)} here")],
        fixes=_as_buffer(made, assign, name),
    )


def _is_first(event: DeviceMismatch, context: CheckContext) -> bool:
    """Whether the tensor, made at this place, meets another one for the first time."""
    place = event.cpu.place
    same = (
        other
        for other in context.events
        if isinstance(other, DeviceMismatch) and other.cpu.place is not None and other.cpu.by_default
        and place is not None and other.cpu.place.node is place.node and not other.undecided
    )  # fmt: skip
    return next(same, None) is event


def _met(event: DeviceMismatch) -> str:
    if event.there is not None:
        return named(event, event.there)
    node = event.place.node
    layer = node.func if isinstance(node, cst.Call) else node
    return f"the weights of `{abbreviate(event.place.module.code(layer))}`"


def _with_device(event: DeviceMismatch, made: Place) -> Iterator[Fix]:
    if not is_creation(made.node):
        return
    around = enclosing(made.module, made.node)
    function = next((node for node in reversed(around) if isinstance(node, cst.FunctionDef)), None)
    if function is None:
        return
    code = next(_sources(event, made, function), None)
    if code is not None:
        yield with_device(made, f"{code}.device")


def _sources(event: DeviceMismatch, made: Place, function: cst.FunctionDef) -> Iterator[str]:
    """Tensors whose device the new one may take: the one that tells its sizes, or the one that it meets."""
    params = [param.name.value for param in (*function.params.params, *function.params.kwonly_params)]
    for node in _nodes(made.node):
        shape = isinstance(node, cst.Attribute) and node.attr.value in ("shape", "size")
        if shape and isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            yield node.value.value
    met = code_of(event, event.there) if event.there is not None else None
    here = event.place.module is made.module and _holds(function, event.place.node)
    if here and isinstance(met, cst.Name):
        row = first_bound(made.module, function, met.value)
        if met.value in params or (row is not None and row < made.span.row):
            yield met.value
    for name in params:
        if any(
            isinstance(node, cst.Attribute)
            and node.attr.value in ("shape", "size", "device")
            and dotted_name(node.value) == name
            for node in _nodes(function)
        ):
            yield name
    layer = event.place.node.func if isinstance(event.place.node, cst.Call) else None
    if here and event.there is None and layer is not None and dotted_name(layer).startswith("self."):
        yield f"{dotted_name(layer)}.weight"


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _holds(function: cst.CSTNode, node: cst.CSTNode) -> bool:
    return any(each is node for each in _nodes(function))


def _assignment(made: Place) -> cst.Assign | None:
    """The statement whose value is what is made at a place, or computed from it."""
    around = enclosing(made.module, made.node)
    return next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)


def _attribute(assign: cst.Assign) -> str:
    """`self.mask`, where the statement assigns nothing else."""
    if len(assign.targets) != 1:
        return ""
    name = dotted_name(assign.targets[0].target)
    return name if name.startswith("self.") and name.count(".") == 1 else ""


def _is_tensor(value: cst.BaseExpression, made: cst.CSTNode) -> bool:
    """Whether a value is what torch computes of what is made in it, and no container, nor another object."""
    while value is not made:
        if not isinstance(value, cst.Call):
            return False
        inside = [value.func, *(given.value for given in value.args)]
        around = next((node for node in inside if _holds(node, made)), None)
        is_torch = dotted_name(value.func).partition(".")[0] == "torch"
        if around is value.func and isinstance(around, cst.Attribute):
            value = around.value
        elif around is not None and is_torch:
            value = around
        else:
            return False
    return True


def _class(made: Place) -> cst.ClassDef | None:
    around = enclosing(made.module, made.node)
    return next((node for node in reversed(around) if isinstance(node, cst.ClassDef)), None)


def _moves_itself(made: Place) -> bool:
    owner = _class(made)
    body = owner.body.body if owner is not None else ()
    return any(isinstance(node, cst.FunctionDef) and node.name.value in _MOVERS for node in body)


def _as_buffer(made: Place, assign: cst.Assign, name: str) -> Iterator[Fix]:
    owner = _class(made)
    if owner is None or not _is_tensor(assign.value, made.node):
        return
    module = made.module
    assigned = [node for node in _nodes(owner) if isinstance(node, cst.AssignTarget)]
    if sum(dotted_name(node.target) == name for node in assigned) != 1:
        # A buffer cannot take the name of an attribute that is there.
        return
    whole, value = module.span(assign), module.span(assign.value)
    started = [module.span(node) for node in _nodes(owner) if _starts_module(node)]
    if not any((span.row, span.column) < (whole.row, whole.column) for span in started):
        return
    start = Span(whole.path, whole.row, whole.column, value.row, value.column)
    end = Span(whole.path, whole.end_row, whole.end_column, whole.end_row, whole.end_column)
    edits = (
        Edit(start, f'self.register_buffer("{name.removeprefix("self.")}", '),
        Edit(end, ", persistent=False)"),
    )
    text = "make it a buffer, which moves with the module; with `persistent=False` checkpoints stay the same"
    yield Fix(Applicability.SAFE, text, edits)


def _starts_module(node: cst.CSTNode) -> bool:
    """`super().__init__()`, or `nn.Module.__init__(self)`."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "__init__"
    )
