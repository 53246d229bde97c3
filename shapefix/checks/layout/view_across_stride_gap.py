"""SF101 to SF103: views and reshapes that cannot be, that depend, or that mean something else."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage, whole_sizes
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import calls, history
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Severity, Span
from shapefix.interpreter.events import Viewed
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.tensors.layout import has_unknown_strides
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import Illegal, Undecided

_RESHAPES = {"view": "reshape", "view_as": "reshape_as"}


@rule(
    "SF101",
    "view-across-stride-gap",
    Severity.ERROR,
    "`.view` merges dimensions whose strides do not line up: RuntimeError",
    Applicability.SAFE,
    on=Viewed,
)
def view_across_stride_gap(event: Viewed, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    verdict = event.verdict
    if event.method not in _RESHAPES or not isinstance(verdict, Illegal) or _is_unlikely(event):
        return
    subject, call = _subject(event), short(event.place.code)
    dims = f"dimensions {verdict.dim} and {verdict.dim + 1}"
    gap, merge = _gap(event, verdict, run)
    yield this.diagnostic(
        event.place.span,
        f"`{call}` merges {dims} of `{subject}`, but {gap}",
        evidence=[
            *calls(event),
            *history(event.tensor, run),
            Evidence(event.place.span, f"merges {dims} here: {merge}"),
        ],
        condition=run.condition(verdict.conditions),
        fixes=_reshape_instead(event, run),
    )


def _is_unlikely(event: Viewed) -> bool:
    """Whether the view stands in a branch that looks at what the function was handed.

    The layout came in from outside, through this call; whether the branch is taken in this call nobody knows,
    and people do ask for sizes before they view.
    """
    origin = event.tensor.origin
    from_outside = origin is None or origin.function is not event.function
    return event.undecided and bool(event.calls) and from_outside


def _gap(event: Viewed, verdict: Illegal, run: CheckContext) -> tuple[str, str]:
    """Why the two dimensions cannot be merged: for the message, and at the merge itself."""
    layout = event.layout
    whole = whole_sizes(layout)
    if whole is not None:
        inner = verdict.dim + 1
        part = f"{run.text(layout.sizes[inner])} of {run.text(whole[inner])}"
        return (
            f"dimension {inner} is a slice ({part}), which leaves a gap after each run of it",
            f"what the slice left out ({part} are there) lies in between",
        )
    has, needs = run.text(verdict.has), run.text(verdict.needs)
    return (
        f"their strides have a gap: {needs} is needed, {has} is there",
        f"dimension {verdict.dim} needs stride {needs}, and has {has}",
    )


def _reshape_instead(event: Viewed, run: CheckContext) -> list[Fix]:
    name = _method_name(event.call)
    if name is None:
        return []
    instead = _RESHAPES[event.method]
    edit = Edit(event.place.module.span(name), instead)
    if event.call in run.written_views:
        return [
            Fix(
                Applicability.UNSAFE,
                f"use `.{instead}`; the result is written to later, and these writes would go to a copy",
                (edit,),
            )
        ]
    return [Fix(Applicability.SAFE, f"use `.{instead}`, which copies where a view cannot be", (edit,))]


@rule(
    "SF102",
    "view-of-runtime-layout",
    Severity.INFO,
    "`.view` of a layout that depends on backend, memory format or input",
    Applicability.SAFE,
    on=Viewed,
)
def view_of_runtime_layout(event: Viewed, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    verdict = event.verdict
    if event.method not in _RESHAPES or not isinstance(verdict, Undecided):
        return
    # Only a merge asks for strides, and a merge leaves fewer dimensions.
    if not has_unknown_strides(event.layout) or len(event.target) >= event.layout.rank:
        return
    origin = None
    for step in lineage(event.tensor):
        if step.layout is None or has_unknown_strides(step.layout):
            origin = step
    reason = _RUNTIME_LAYOUTS.get(origin.verb) if origin is not None else None
    if origin is None or reason is None:
        return
    subject, call = _subject(event), short(event.place.code)
    yield this.diagnostic(
        event.place.span,
        f"`{call}` merges dimensions of `{subject}`, whose layout depends on the run: on {reason}",
        evidence=[
            *calls(event),
            Evidence(origin.place.span, f"{origin.verb} here: the strides depend on {reason}"),
            Evidence(event.place.span, "merged here"),
        ],
        condition="the layout at run time has a gap between the merged dimensions",
        fixes=_reshape_instead(event, run),
    )


_RUNTIME_LAYOUTS = {
    "computed by a module": "what the module returns",
    "attended": "the attention backend",
    "convolved": "the memory format of input and weight",
    "pooled": "the memory format of the input",
    "normalised": "the memory format of the input",
    "resized": "the memory format of the input",
}


@rule(
    "SF103",
    "view-as-transpose",
    Severity.WARNING,
    "`.view` or `.reshape` to swapped sizes: mixes up the elements instead of transposing",
    Applicability.UNSAFE,
    on=Viewed,
)
def view_as_transpose(event: Viewed, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    # One size and a -1 say little about what was meant: `.view(beams, -1)`.
    if isinstance(event.verdict, Illegal) or event.stated < 2:
        return
    have, want = list(event.layout.sizes), list(event.target)
    if len(have) == 2 and all(size.value is not None for size in have):
        # Six numbers in two rows of three, or in three of two: who can tell what was meant?
        return
    order = _permutation(have, want)
    if order is None:
        return
    if event.call in run.cut_views or any(_means_it(step, event, run) for step in lineage(event.tensor)):
        return
    subject, call = _subject(event), short(event.place.code)
    swap = _swapped(order)
    moves = f"swap dimensions {swap[0]} and {swap[1]} of" if swap else "permute the dimensions of"
    to = "" if swap else f" to ({', '.join(map(str, order))})"
    instead = f"transpose({swap[0]}, {swap[1]})" if swap else f"permute({', '.join(map(str, order))})"
    yield this.diagnostic(
        event.place.span,
        f"`{call}` does not {moves} `{subject}`{to}: it keeps the order in memory, and mixes up the elements",
        evidence=[
            *calls(event),
            *history(event.tensor, run),
            Evidence(event.place.span, f"the same elements, read as {run.shape(want)}"),
        ],
        fixes=_permute_instead(event, instead),
    )


def _means_it(step: LayoutStep, event: Viewed, run: CheckContext) -> bool:
    """Whether an earlier step shows that the elements are meant to be read at another width.

    Relative positions are shifted so: put a column in front, read the rows at another width, drop a part, and
    read the rest at the old width. And going back to sizes that the tensor had before undoes an earlier view.
    """
    if step.verb in ("joined", "padded") or step.place.node in run.cut_views:
        return True
    return step.layout is not None and step.layout.sizes == event.target


def _permute_instead(event: Viewed, instead: str) -> list[Fix]:
    name = _method_name(event.call)
    if event.method not in ("view", "reshape") or not isinstance(event.call, cst.Call):
        return []
    message = f"use `.{instead}`, which moves the elements along; results change"
    end = event.place.span
    if name is not None and not event.free:
        start = event.place.module.span(name)
        whole = Span(start.path, start.row, start.column, end.end_row, end.end_column)
        return [Fix(Applicability.UNSAFE, message, (Edit(whole, instead),))]
    subject = event.call.args[0].value
    if not isinstance(subject, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return []
    code = event.place.module.code(subject)
    return [Fix(Applicability.UNSAFE, message, (Edit(end, f"{code}.{instead}"),))]


def _permutation(have: list[Size], want: list[Size]) -> list[int] | None:
    """The dims of `have` in the order of `want`, None where want is no true permutation of other sizes."""
    if len(have) != len(want) or have == want or len(set(have)) < len(have):
        return None
    if set(have) != set(want):
        return None
    order = [have.index(size) for size in want]
    moved = [size for size in have if size.value != 1]
    # Moving dimensions of size 1 about moves no element.
    return None if moved == [size for size in want if size.value != 1] else order


def _swapped(order: list[int]) -> tuple[int, int] | None:
    moved = [dim for dim, source in enumerate(order) if dim != source]
    return (moved[0], moved[1]) if len(moved) == 2 else None


def _method_name(call: cst.CSTNode) -> cst.Name | None:
    """The name of the method in `x.view(...)`."""
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call.func.attr
    return None


def _subject(event: Viewed) -> str:
    """What the user's code calls the tensor that is viewed."""
    call = event.call
    if event.free and isinstance(call, cst.Call) and call.args:
        return short(event.place.module.code(call.args[0].value))
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return short(event.place.module.code(call.func.value))
    return "the tensor"


def short(code: str, limit: int = 60) -> str:
    """Code for a message: on one line, its middle left out where it is long."""
    return code if len(code) <= limit else f"{code[: limit // 2 - 1]}…{code[-(limit // 2) :]}"
