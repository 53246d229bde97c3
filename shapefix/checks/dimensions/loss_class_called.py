"""SF519: the class of a loss called with tensors, in place of an object of the class."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.loss_calls import is_loss
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject

_WEIGHTED = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "BCELoss", "BCEWithLogitsLoss", "MultiMarginLoss")
"""Losses with a tensor of weights as an argument of the class."""
_AMBIGUOUS = ExpectedError("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous")


@rule("SF519", on=OperationCalled)
def loss_class_called(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    made = event.result
    if not isinstance(made, LibraryObject) or made.kind != event.function or not is_loss(event.function):
        return
    name = event.function.rpartition(".")[2]
    given = event.positional
    if not given or not all(isinstance(value, TensorValue) and value.certain for value in given):
        return
    if len(given) < 2:
        # One tensor may be the weights, or a margin.
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{name}(…)` creates a loss and does not compute it: its arguments are settings; "
        f"`{name}()(…)` computes it",
        evidence=[
            *call_trace(event),
            Evidence(
                event.place.span, f"`{name}` is a class; its arguments are settings such as `reduction`"
            ),
        ],
        error=_error(name, event),
        fixes=_called(event),
    )


def _error(name: str, event: OperationCalled) -> ExpectedError:
    """Return the exception for a tensor taken for a flag, or of a later use of the loss for a number."""
    if name == "HuberLoss":
        return ExpectedError("TypeError", "delta must be a float or int")
    tested = event.positional[1 if name in _WEIGHTED else 0]
    layout = tested.layout if isinstance(tested, TensorValue) else None
    if layout is not None and all(size.value == 1 for size in layout.sizes):
        return ExpectedError("AttributeError", "object has no attribute 'backward'")
    return _AMBIGUOUS


def _called(event: OperationCalled) -> list[Fix]:
    """Return the fix to create the loss first, then to call it with the tensors."""
    node, module = event.place.node, event.place.module
    if not isinstance(node, cst.Call) or any(argument.star for argument in node.args):
        return []
    span = module.span(node)
    settings = ", ".join(module.code(each).rstrip(" ,") for each in node.args if each.keyword is not None)
    tensors = ", ".join(module.code(each.value) for each in node.args if each.keyword is None)
    code = f"{module.code(node.func)}({settings})({tensors})"
    return [Fix(Applicability.SAFE, "create the loss, and call it with the tensors", (Edit(span, code),))]
