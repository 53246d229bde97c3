"""SF901: a write into a tensor saved by autograd for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, made_at
from shapefix.checks.support.syntax import enclosing_line
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.gradients import depends_on
from shapefix.domains.saved_tensors import SavedTensor, SavedTensorWritten
from shapefix.domains.stepped_weights import WeightsStepped
from shapefix.domains.training import Backward
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject

_ERROR = ExpectedError(
    "RuntimeError",
    "one of the variables needed for gradient computation has been modified by an inplace operation",
)
_EARLIER = 8
"""Operations looked at for one memory."""
_OPERATORS = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
}


@rule("SF901", on=(SavedTensorWritten, WeightsStepped))
def saved_tensor_written(
    event: SavedTensorWritten | WeightsStepped, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, SavedTensorWritten):
        yield from _written(event, context, rule)
    else:
        yield _stepped(event, rule)


def _stepped(event: WeightsStepped, rule: Rule) -> Diagnostic:
    """Report a step between a forward pass and its backward."""
    step, made = event.step.place, event.made.place
    code, operation = abbreviate(step.code), abbreviate(made.code)
    backward = f"`{abbreviate(event.place.code)}` ({rewrites.line_of(event.place, step.module)})"
    return rule.diagnostic(
        step.span,
        f"`{code}` changes weights that {backward} still needs: it runs between forward and backward",
        error=_ERROR,
        evidence=[
            *call_trace(event),
            Evidence(made.span, "the weight is saved for the gradient", Role.CAUSE, f"`{operation}`"),
            Evidence(step.span, "the weight is overwritten here"),
            Evidence(event.place.span, "the gradient is computed here"),
        ],
        fixes=[
            Fix(
                Applicability.DISPLAY,
                f"compute the loss after `{code}`, or step after both backwards",
                (),
            )
        ],
    )


def _written(event: SavedTensorWritten, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.undecided or event.saved.place.node is event.place.node:
        return
    found = _backward(event, context)
    if found is None:
        return
    saved, backward = found
    module = event.place.module
    name = "a tensor" if event.subject is None else f"`{abbreviate(module.code(event.subject))}`"
    write, operation = abbreviate(event.place.code), abbreviate(saved.place.code)
    what = "result" if saved.is_result else "input"
    line = rewrites.line_of(saved.place, module)
    yield rule.diagnostic(
        event.place.span,
        f"`{write}` overwrites {name}, but the gradient of `{operation}` ({line}) needs it",
        error=_ERROR,
        evidence=[
            *call_trace(event),
            *made_at(event.layer, "writes in place" if event.layer is not None else ""),
            Evidence(
                saved.place.span, f"the {what} is saved for the gradient", Role.CAUSE, f"saves its {what}"
            ),
            Evidence(event.place.span, f"{name} is overwritten here"),
            Evidence(backward.place.span, "the gradient is computed here"),
        ],
        fixes=_fixes(event, saved),
    )


def _backward(event: SavedTensorWritten, context: CheckContext) -> tuple[SavedTensor, Backward] | None:
    """Return a saved tensor and the first backward through it; None if that comes before the write."""
    saved: SavedTensor | None = event.saved
    for _ in range(_EARLIER):
        if saved is None or saved.place.node is event.place.node:
            return None
        is_written = False
        for other in context.events:
            if other is event:
                is_written = True
            elif isinstance(other, Backward) and isinstance(other.loss, TensorValue):
                if depends_on(other.loss, saved.result):
                    return (saved, other) if is_written else None
        saved = saved.earlier
    return None


def _fixes(event: SavedTensorWritten, saved: SavedTensor) -> Iterator[Fix]:
    edit = _without_flag(event.layer)
    if edit is not None:
        yield Fix(Applicability.UNSAFE, "do not write in place: remove `inplace=True`", (edit,))
        return
    edit = _out_of_place(event)
    if edit is not None:
        yield Fix(Applicability.UNSAFE, "compute a new tensor instead of writing in place", (edit,))
        return
    if saved.is_result and isinstance(saved.place.node, cst.Call):
        clone = Edit(saved.place.span.end(), ".clone()")
        yield Fix(
            Applicability.UNSAFE, f"write into a copy: `{abbreviate(saved.place.code)}.clone()`", (clone,)
        )
        return
    copied = _copied_input(event, saved)
    if copied is None:
        yield Fix(Applicability.DISPLAY, "write into a copy: `.clone()`", ())
    else:
        code, edit = copied
        yield Fix(Applicability.UNSAFE, f"compute it from a copy: `{code}.clone()`", (edit,))


def _copied_input(event: SavedTensorWritten, saved: SavedTensor) -> tuple[str, Edit] | None:
    """Return the only argument with the written name, `hs[t - 1]`, and the edit to copy it."""
    node, module, written = saved.place.node, saved.place.module, event.subject
    if not isinstance(node, cst.Call) or not isinstance(written, cst.Name):
        return None
    if module is not event.place.module:
        return None
    found = [
        each.value
        for each in node.args
        if not each.star and isinstance(each.value, (cst.Name, cst.Subscript))
        if dotted_name(each.value.value if isinstance(each.value, cst.Subscript) else each.value)
        == written.value
    ]
    if len(found) != 1:
        return None
    return abbreviate(module.code(found[0])), Edit(module.span(found[0]).end(), ".clone()")


def _without_flag(layer: object) -> Edit | None:
    """Return the edit to remove `inplace=True` from the call creating a layer."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return None
    node, module = layer.place.node, layer.place.module
    if not isinstance(node, cst.Call):
        return None
    for argument in node.args:
        if argument.keyword is not None and argument.keyword.value == "inplace":
            if argument is node.args[0]:
                return Edit(module.span(argument.value), "False")
            return rewrites.dropped(module, node, argument)
    return Edit(module.span(node.args[0].value), "False") if len(node.args) == 1 else None


def _out_of_place(event: SavedTensorWritten) -> Edit | None:
    """Return the edit to `x = x + y` of `x += y`, and of `x = x.mul(y)` of `x.mul_(y)`."""
    node, module = event.place.node, event.place.module
    if isinstance(node, cst.AugAssign):
        operator = _OPERATORS.get(type(node.operator))
        if operator is None or not isinstance(node.target, (cst.Name, cst.Attribute)):
            return None
        target, value = module.code(node.target), module.code(node.value)
        if isinstance(node.value, (cst.BinaryOperation, cst.IfExp, cst.Comparison)) and not node.value.lpar:
            value = f"({value})"
        return Edit(module.span(node), f"{target} = {target} {operator} {value}")
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        line = enclosing_line(event.place)
        name = node.func.attr.value
        is_statement = line is not None and len(line.body) == 1 and isinstance(line.body[0], cst.Expr)
        if not is_statement or not isinstance(node.func.value, cst.Name) or not name.endswith("_"):
            return None
        target = node.func.value.value
        last = module.span(node.func.attr)
        return Edit(module.span(node), f"{target} = {_renamed(module.code(node), name)}") if last else None
    return None


def _renamed(code: str, name: str) -> str:
    """Return the code of a call of the method without the underscore."""
    return code.replace(f".{name}(", f".{name[:-1]}(", 1)
