"""SF103: a view used to transpose; it mixes up the elements."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.checks.support.view_calls import method_name, viewed_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.operations import Viewed
from shapefix.interpreter.modules import dotted_name, nodes
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.tensors.ops import JOINED, PADDED, Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import Illegal

_OF_NUMPY = frozenset({Op.NUMPY_CREATION, Op.NUMPY_CONVERSION})
_CREATIONS = frozenset({Op.CREATION, Op.NUMPY_CREATION, Op.RANDOM_SAMPLING})
_UNIFORM = frozenset(
    {
        *("zeros", "ones", "empty", "full", "rand", "randn", "randint"),
        *("random", "random_sample", "standard_normal", "normal", "uniform", "integers"),
    }
)
"""Functions that create a tensor or an array of equal or independent elements."""


@rule("SF103", on=Viewed)
def view_as_transpose(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    # One size and a -1 do not show an intended transpose: `.view(beams, -1)`.
    if isinstance(event.verdict, Illegal) or event.stated < 2:
        return
    have, want = list(event.layout.sizes), list(event.target)
    if len(have) == 2 and all(size.value is not None for size in have):
        # Reading a (2, 3) matrix as (3, 2) may be intended.
        return
    order = _permutation(have, want)
    if order is None or _is_uniform(event.tensor) or _is_squeezed(event, want):
        return
    if event.call in context.cut_views or any(
        _is_intended(step, event, context) for step in lineage(event.tensor)
    ):
        return
    subject, call = viewed_code(event), abbreviate(event.place.code)
    swap = _swapped(order)
    moves = f"swap dimensions {swap[0]} and {swap[1]} of" if swap else "permute"
    is_array = event.tensor.origin is not None and event.tensor.origin.op in _OF_NUMPY
    whole = f"{'transpose' if is_array else 'permute'}({', '.join(map(str, order))})"
    instead = f"transpose({swap[0]}, {swap[1]})" if swap and not is_array else whole
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` does not {moves} `{subject}`: it scrambles the elements; use `.{instead}`",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(event.place.span, f"same elements in memory order, read as {context.shape(want)}"),
        ],
        fixes=_permute_instead(event, instead),
    )


def _is_uniform(tensor: TensorValue) -> bool:
    """Whether all elements are equal or drawn alike, so that their order does not matter."""
    step = tensor.origin
    node = step.place.node if step is not None and step.op in _CREATIONS else None
    return isinstance(node, cst.Call) and dotted_name(node.func).rpartition(".")[2] in _UNIFORM


def _is_squeezed(event: Viewed, want: list[Size]) -> bool:
    """Whether the code squeezes the result: a moved dimension is 1 there, which moves no elements."""
    around = enclosing(event.place.module, event.call)
    if any(size.value == 1 for size in want):
        return False
    assigned = next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)
    name = dotted_name(assigned.targets[0].target) if assigned is not None else ""
    scope = enclosing_function(event.place) or event.place.module.tree
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("squeeze", "squeeze_")
        and (node.func.value is event.call or (name != "" and dotted_name(node.func.value) == name))
        for node in nodes(scope)
    )


def _is_intended(step: LayoutStep, event: Viewed, context: CheckContext) -> bool:
    """Whether an earlier step shows an intended read of the elements at another width.

    Relative positions are shifted this way: prepend a column, view the rows at another width, drop a part,
    and view the rest at the old width. Returning to earlier sizes of the tensor undoes an earlier view.
    """
    if step.op in JOINED | PADDED or step.place.node in context.cut_views:
        return True
    return step.layout is not None and step.layout.sizes == event.target


def _permute_instead(event: Viewed, instead: str) -> list[Fix]:
    name = method_name(event.call)
    if event.method not in ("view", "reshape") or not isinstance(event.call, cst.Call):
        return []
    remark = "results change"
    message = f"use `.{instead}`; {remark}"
    end = event.place.span
    if name is not None and not event.free:
        start = event.place.module.span(name)
        whole = start.to(end)
        return [Fix(Applicability.UNSAFE, message, (Edit(whole, instead),), remark=remark)]
    subject = event.call.args[0].value
    if not isinstance(subject, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return []
    code = event.place.module.code(subject)
    return [Fix(Applicability.UNSAFE, message, (Edit(end, f"{code}.{instead}"),), remark=remark)]


def _permutation(have: list[Size], want: list[Size]) -> list[int] | None:
    """Return the dims of `have` in the order of `want`; None unless `want` permutes distinct sizes."""
    if len(have) != len(want) or have == want or len(set(have)) < len(have):
        return None
    if set(have) != set(want):
        return None
    order = [have.index(size) for size in want]
    moved = [size for size in have if size.value != 1]
    # Moving dimensions of size 1 moves no elements.
    return None if moved == [size for size in want if size.value != 1] else order


def _swapped(order: list[int]) -> tuple[int, int] | None:
    moved = [dim for dim, source in enumerate(order) if dim != source]
    return (moved[0], moved[1]) if len(moved) == 2 else None
