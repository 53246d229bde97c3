"""SF106: a reversed view of a tensor, or of an array on its way to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.reversed_views import ReversedViewRefused
from shapefix.interpreter.modules import Place

_STEP = ExpectedError("ValueError", "step must be greater than zero")
_STRIDE = ExpectedError("ValueError", "At least one stride in the given numpy array is negative")
_OWN_COPY = frozenset({"tensor", "Tensor", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor"})
"""Functions that copy the numbers anyway: a copy before them changes nothing else."""


@rule("SF106", on=ReversedViewRefused)
def negative_stride(event: ReversedViewRefused, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call, turned = abbreviate(event.place.code), event.reversed_at
    if event.function == "operator.getitem":
        yield rule.diagnostic(
            event.place.span,
            f"`{call}` fails: a slice of a tensor cannot have a negative step",
            evidence=[*call_trace(event), Evidence(event.place.span, "sliced here")],
            error=_STEP,
            fixes=_flipped(event.place),
        )
        return
    name = event.function.rpartition(".")[2]
    line = rewrites.line_of(turned, event.place.module)
    what = "gets samples with" if name == "DataLoader" else "gets"
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` {what} a reversed view ({line}); a tensor cannot have a negative stride",
        evidence=[
            *call_trace(event),
            Evidence(turned.span, "reversed here, without a copy"),
            Evidence(event.place.span, "made a tensor here"),
        ],
        condition=None if event.certain else Condition(f"{line} has run"),
        error=_STRIDE,
        fixes=_copied(event, name),
    )


def _flipped(place: Place) -> Sequence[Fix]:
    """Replace `x[:, ::-1]` by `x.flip(1)`, if it does nothing else."""
    node = place.node
    if not isinstance(node, cst.Subscript):
        return ()
    dims = []
    for dim, element in enumerate(node.slice):
        part = element.slice
        if not isinstance(part, cst.Slice) or part.lower is not None or part.upper is not None:
            return ()
        step = part.step
        if step is None:
            continue
        if not isinstance(step, cst.UnaryOperation) or place.module.code(step) != "-1":
            return ()
        dims.append(str(dim))
    if not dims or not isinstance(node.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)):
        return ()
    code = f"{place.module.code(node.value)}.flip({', '.join(dims)})"
    return [Fix(Applicability.SAFE, code, (Edit(place.span, code),))]


def _copied(event: ReversedViewRefused, name: str) -> Sequence[Fix]:
    """Copy the array before its conversion to a tensor, or after its reversal.

    With a copy, the array and the tensor no longer share their memory on the paths without a reversed view.
    """
    node, module = event.place.node, event.place.module
    given = node.args[0].value if isinstance(node, cst.Call) and node.args else None
    if name == "DataLoader" or given is None:
        return [Fix(Applicability.DISPLAY, "return a copy of the reversed view: `.copy()`", ())]
    is_safe = event.certain or name in _OWN_COPY
    edit = rewrites.method_called(module, given, "copy()")
    return [
        Fix(Applicability.SAFE if is_safe else Applicability.UNSAFE, "copy the array: `.copy()`", (edit,))
    ]
