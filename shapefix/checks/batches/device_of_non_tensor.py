"""SF405: `.to(device)` on a value other than a tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Import
from shapefix.domains.devices import MoveOfNonTensor
from shapefix.interpreter.containers import DictValue, ListValue, TextTuple, TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Number, Text, Unknown, Value


@rule("SF405", on=MoveOfNonTensor)
def device_of_non_tensor(event: MoveOfNonTensor, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    node = event.place.node
    first = next(
        other for other in context.events if isinstance(other, MoveOfNonTensor) and other.place.node is node
    )
    if event is not first or not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return
    module = event.place.module
    subject = module.code(node.func.value)
    is_tensors = _items(event.value) == "tensors"
    named = f"`{event.key}` of the batch" if event.key is not None else f"`{abbreviate(subject)}`"
    method = node.func.attr.value
    kind = _kind(event.value)
    if not is_tensors:
        kind += ", not a tensor"
    elif event.batch is not None:
        kind += " (the dataset returns lists)"
    evidence = list(call_trace(event))
    if event.batch is not None and event.key in event.batch.written:
        evidence.append(Evidence(event.batch.written[event.key].span, f"`{event.key}` added here"))
    yield rule.diagnostic(
        event.place.span,
        f"{named} is {kind}",
        error=ExpectedError("AttributeError", f"{_type(event.value)}object has no attribute '{method}'"),
        evidence=evidence,
        fixes=() if is_tensors else _guard(event, node.func.value, subject),
    )


def _kind(value: Value) -> str:
    """Return the type of a value in words."""
    if isinstance(value, (ListValue, TupleValue)):
        items = _items(value)
        kind = "tuple" if isinstance(value, (TupleValue, TextTuple)) else "list"
        return f"a {kind} of {items}" if items else f"a {kind}"
    if isinstance(value, DictValue):
        return "a dictionary"
    if isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str)):
        return "a string"
    return "None" if isinstance(value, Constant) and value.value is None else "a number"


def _type(value: Value) -> str:
    """Return the quoted name of a value's type, as in an AttributeError; empty if it is not known."""
    match value:
        case Constant():
            name = type(value.value).__name__
        case Text():
            name = "str"
        case TupleValue() | TextTuple():
            name = "tuple"
        case ListValue():
            name = "list"
        case DictValue():
            name = "dict"
        case _:
            return ""
    return f"'{name}' "


def _items(value: Value) -> str:
    """Return the type of the items of a list in words; empty if they differ or are not known."""
    items = elements(value)
    several = items if items is not None else (value.element,) if isinstance(value, ListValue) else ()
    kinds = {_plural(item) for item in several if item is not None and not isinstance(item, Unknown)}
    return kinds.pop() if len(kinds) == 1 else ""


def _plural(item: Value) -> str:
    if isinstance(item, TensorValue):
        return "tensors"
    if isinstance(item, Text) or (isinstance(item, Constant) and isinstance(item.value, str)):
        return "strings"
    if isinstance(item, (Integer, Number)) or (isinstance(item, Constant) and item.value is not None):
        return "numbers"
    return "lists" if isinstance(item, ListValue) else ""


def _guard(event: MoveOfNonTensor, subject: cst.BaseExpression, code: str) -> list[Fix]:
    """Return the fix `x.to(device) if isinstance(x, torch.Tensor) else x`, if x is a name."""
    around = enclosing(event.place.module, event.place.node)
    if not isinstance(subject, cst.Name) or len(around) < 2:
        return []
    above = around[-2]
    if not isinstance(
        above, (cst.DictComp, cst.ListComp, cst.GeneratorExp, cst.Assign, cst.Return, cst.Yield)
    ):
        return []
    is_text = _kind(event.value) == "a string" or _items(event.value) == "strings"
    guarded = f"{event.place.module.code(event.place.node)} if isinstance({code}, torch.Tensor) else {code}"
    return [
        Fix(
            # A model may need numbers as a tensor; texts it cannot use.
            Applicability.SAFE if is_text else Applicability.UNSAFE,
            "move tensors only",
            (Edit(event.place.span, guarded),),
            (Import("torch"),),
        )
    ]
