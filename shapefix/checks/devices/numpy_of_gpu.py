"""SF616: a conversion to NumPy of a tensor on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.device_texts import came_from, device_text, moved_or_created, on_a_gpu
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.devices import NumpyOfGpu

_ERROR = ExpectedError("TypeError", "can't convert cuda:0 device type tensor to numpy")


@rule("SF616", on=NumpyOfGpu)
def numpy_of_gpu(event: NumpyOfGpu, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    around = enclosing(module, event.place.node)
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in around):
        return
    code, subject = abbreviate(event.place.code), abbreviate(module.code(event.subject))
    where = device_text(event.device, event.place)
    what = f"the tensors in `{subject}` are on {where}" if event.is_list else f"`{subject}` is on {where}"
    yield rule.diagnostic(
        event.place.span,
        f"`{code}`: {what}, and NumPy reads the memory of the CPU only; call `.cpu()`",
        error=_ERROR,
        condition=on_a_gpu(event.device),
        evidence=[
            *call_trace(event),
            *came_from(event.device, f"{moved_or_created(event.device)} {device_text(event.device)} here"),
            Evidence(event.place.span, what, Role.FAILURE),
        ],
        fixes=[_fix(event)],
    )


def _fix(event: NumpyOfGpu) -> Fix:
    """Copy the tensor to the CPU; a tensor on the CPU stays the same."""
    module, subject = event.place.module, event.subject
    message = "copy the tensor to the CPU: `.cpu()`"
    if not event.is_list:
        return Fix(Applicability.SAFE, message, (rewrites.method_called(module, subject, "cpu()"),))
    if not isinstance(subject, (cst.Name, cst.Attribute)):
        return Fix(Applicability.DISPLAY, message, ())
    code = f"[each.cpu() for each in {module.code(subject)}]"
    return Fix(Applicability.SAFE, message, (Edit(module.span(subject), code),))
