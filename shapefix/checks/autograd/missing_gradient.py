"""SF909: `.grad` of a tensor without a gradient."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.gradient_tests import tests_gradient
from shapefix.checks.support.syntax import enclosing, enclosing_function, enclosing_line, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.gradients import NoGradientRead
from shapefix.interpreter.modules import Place, nodes

_FACTORIES = frozenset(
    {"rand", "randn", "zeros", "ones", "full", "tensor", "empty", "randn_like", "rand_like"}
)


@rule("SF909", on=NoGradientRead)
def missing_gradient(event: NoGradientRead, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    node, module = event.place.node, event.place.module
    error = _error(event.place)
    made = event.tensor.origin
    if error is None or made is None or not isinstance(node, cst.Attribute) or _is_tested(event.place):
        return
    is_replaced = event.is_replaced or holds(made.place.node, node)
    if is_replaced and not event.is_computed:
        return
    name = abbreviate(module.code(node.value))
    where = rewrites.line_of(made.place, module)
    code = abbreviate(made.place.code)
    if is_replaced:
        reason = f"the pass before replaced the leaf by `{code}`, and torch keeps gradients of leaves only"
    elif event.is_computed:
        reason = f"`{code}` ({where}) computes it, and torch keeps gradients of leaves only"
    else:
        reason = f"it does not require a gradient ({where})"
    yield rule.diagnostic(
        event.place.span,
        f"`{name}.grad` is None: {reason}",
        error=error,
        evidence=[
            *call_trace(event),
            Evidence(
                made.place.span, "computed here" if event.is_computed else "without a gradient", Role.CAUSE
            ),
            Evidence(event.place.span, f"`{name}.grad` is None", Role.FAILURE),
        ],
        fixes=[_kept_leaf(event.place, made.place) if is_replaced else _fix(event, made.place)],
    )


def _error(place: Place) -> ExpectedError | None:
    """Return the exception of the expression around `x.grad` if that is None; else None."""
    path = enclosing(place.module, place.node)
    around = path[-2] if len(path) > 1 else None
    if isinstance(around, cst.Attribute):
        return ExpectedError("AttributeError", f"'NoneType' object has no attribute '{around.attr.value}'")
    if isinstance(around, cst.BinaryOperation):
        if isinstance(around.operator, cst.Modulo) and around.right is place.node:
            # `"gradient: %s" % x.grad` formats None.
            return None
        return ExpectedError("TypeError", "unsupported operand type(s)")
    return None


def _is_tested(place: Place) -> bool:
    """Whether the code asks for the gradient first, sets it, or awaits an exception."""
    if tests_gradient(place):
        return True
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in enclosing(place.module, place.node)):
        return True
    scope = enclosing_function(place) or place.module.tree
    for node in nodes(scope):
        if isinstance(node, (cst.If, cst.IfExp, cst.While)) and _has_gradient(node.test):
            return True
        if isinstance(node, cst.BooleanOperation) and _has_gradient(node.left):
            return True
        if isinstance(node, cst.Assign) and not _is_none(node.value):
            if any(_is_gradient(each.target) for each in node.targets):
                return True
    return False


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _has_gradient(node: cst.CSTNode) -> bool:
    return any(_is_gradient(each) for each in nodes(node))


def _is_gradient(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "grad"


def _kept_leaf(read: Place, made: Place) -> Fix:
    """Return the fix to write `w = w - lr * w.grad` into the leaf: `w.data -= lr * w.grad`."""
    message = "change the leaf itself, without recording, and clear its gradient"
    node, module = made.node, made.module
    line = enclosing_line(made)
    statement = line.body[0] if line is not None and len(line.body) == 1 else None
    if not isinstance(node, cst.BinaryOperation) or not isinstance(statement, cst.Assign):
        return Fix(Applicability.DISPLAY, message, ())
    target = statement.targets[0].target
    operator = {cst.Subtract: "-=", cst.Add: "+="}.get(type(node.operator))
    is_same = isinstance(target, cst.Name) and isinstance(node.left, cst.Name)
    if operator is None or not is_same or statement.value is not node or len(statement.targets) > 1:
        return Fix(Applicability.DISPLAY, message, ())
    name = module.code(target)
    if module.code(node.left) != name:
        return Fix(Applicability.DISPLAY, message, ())
    indent = " " * (module.span(statement).column - 1)
    cleared = "" if f"{name}.grad = None" in module.text else f"\n{indent}{name}.grad = None"
    text = f"{name}.data {operator} {module.code(node.right)}{cleared}"
    return Fix(Applicability.UNSAFE, message, (Edit(module.span(statement), text),))


def _fix(event: NoGradientRead, made: Place) -> Fix:
    """Return the fix to make a leaf of a computed tensor, or to ask for a gradient."""
    if not event.is_computed:
        return Fix(Applicability.DISPLAY, "call `.requires_grad_()` of the tensor before it is used", ())
    edits = _leaf(made)
    text = "make the computed tensor a leaf: `.requires_grad_()` at the end"
    return Fix(Applicability.UNSAFE if edits else Applicability.DISPLAY, text, edits)


def _leaf(made: Place) -> tuple[Edit, ...]:
    """Return the edits to request the gradient after the operation."""
    node, module = made.node, made.module
    if not isinstance(node, cst.BinaryOperation):
        return ()
    for call, other in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        asked = rewrites.argument(call, -1, "requires_grad")
        if call.func.attr.value not in _FACTORIES or asked is None or call.args[0] is asked:
            continue
        if isinstance(other, (cst.Float, cst.Integer)):
            span = module.span(node)
            return (
                Edit(span.start(), "("),
                rewrites.dropped(module, call, asked),
                Edit(span.end(), ").requires_grad_()"),
            )
    return ()
