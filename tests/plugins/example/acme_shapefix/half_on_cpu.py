"""ACME101: a new tensor has the dtype float16."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.tensor_values import TensorValue


@rule("ACME101", on=OperationCalled)
def half_on_cpu(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    tensor = event.result
    if event.function != "torch.zeros" or not isinstance(tensor, TensorValue) or tensor.layout is None:
        return
    if tensor.dtype != "float16":
        return
    span, code = event.place.span, event.place.code
    yield rule.diagnostic(
        span,
        f"`{code}` is float16; ACME computes in bfloat16",
        evidence=[*call_trace(event), Evidence(span, f"created here: {context.shape(tensor.layout.sizes)}")],
        fixes=[
            Fix(
                Applicability.UNSAFE,
                "make it bfloat16",
                (Edit(span, code.replace("torch.float16", "torch.bfloat16")),),
            )
        ],
    )
