"""SF908: backward of a tensor with more than one element, without a gradient for it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import receiver_code
from shapefix.checks.support.evidence import call_trace, shape_trace
from shapefix.checks.support.gradient_tests import tests_gradient
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix, Role
from shapefix.domains.training import Backward
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.bounds import at_least, same

_ERROR = ExpectedError("RuntimeError", "grad can be implicitly created only for scalar outputs")


@rule("SF908", on=Backward)
def implicit_gradient(event: Backward, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    loss, call = event.loss, event.place.node
    if not isinstance(loss, TensorValue) or not loss.certain or loss.layout is None or not event.requires:
        return
    sizes = loss.layout.sizes
    several = [size for size in sizes if same(size, 1) is not True]
    if not several or not all(at_least(size, 1) for size in sizes) or not isinstance(call, cst.Call):
        return
    if not _is_plain(call) or tests_gradient(event.place):
        return
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in enclosing(event.place.module, call)):
        return
    is_certain = any(at_least(size, 2) for size in several)
    named = abbreviate(receiver_code(event.place)) or "the loss"
    shape = context.shape(sizes)
    fixes = []
    if isinstance(call.func, cst.Attribute) and len(sizes) > 0:
        edit = rewrites.method_called(event.place.module, call.func.value, "mean()")
        text = f"average the elements of `{named}`: `.mean()`"
        fixes = [Fix(Applicability.UNSAFE, text, (edit,))]
    yield rule.diagnostic(
        event.place.span,
        f"`{named}` has shape {shape}: `backward()` needs one number, such as the mean",
        error=_ERROR,
        condition=None if is_certain else context.condition(several[:1]),
        evidence=[
            *call_trace(event),
            *shape_trace(loss, context)[-3:],
            Evidence(event.place.span, f"backward of shape {shape}, without a gradient for it", Role.FAILURE),
        ],
        fixes=fixes,
    )


def _is_plain(call: cst.Call) -> bool:
    """Whether a method call of `backward` passes no gradient of the tensor."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward":
        return False
    return all(
        given.keyword is not None and given.keyword.value in ("retain_graph", "create_graph")
        for given in call.args
    )
