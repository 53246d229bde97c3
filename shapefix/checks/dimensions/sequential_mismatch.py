"""SF502: adjacent layers of a Sequential with different sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, layer_code, made_at, shape_trace
from shapefix.checks.support.layer_number_edits import fitting
from shapefix.checks.support.layer_settings import (
    CHANNELS,
    FEATURES,
    NORMS,
    called,
    chosen_by,
    constructor,
    from_end,
    renamed_class,
    taken_by,
)
from shapefix.checks.support.operands import is_unlikely, product_text, shown
from shapefix.checks.support.sequential_layers import edited_place, neighbor
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.torch_errors import layer_error
from shapefix.checks.support.wording import counted
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Role
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.values import LibraryObject, as_size
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, SizeMismatch, WindowTooLarge, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import product


@rule("SF502", on=OpRejected)
def sequential_mismatch(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    before = neighbor(event)
    if before is None or is_unlikely(event):
        return
    message = _message(event, before, context)
    if message is None:
        return
    came = shape_trace(event.operands[0].tensor, context)
    error = event.error
    want, have = "does not fit", f"outputs {shown(event.operands[0], context)}"
    if isinstance(error, SizeMismatch):
        want, have = f"expects {context.text(error.want)}", f"outputs {context.text(error.have)}"
    yield rule.diagnostic(
        edited_place(event).span,
        message,
        error=layer_error(event, context),
        evidence=[
            *call_trace(event),
            *(replace(step, role=Role.PRODUCER) for step in made_at(before, have)),
            *made_at(event.layer, want),
            *(replace(step, role=Role.HISTORY) for step in came),
            Evidence(
                event.place.span,
                f"`{called(event)}` gets {shown(event.operands[0], context)} here",
                Role.FAILURE,
            ),
        ],
        fixes=_fixes(event, before, context),
    )


def _message(event: OpRejected, before: LibraryObject, context: CheckContext) -> str | None:
    error, layer = event.error, called(event)
    source = layer_code(before) or before.kind.replace("torch.", "")
    operand = shown(event.operands[0], context)
    if isinstance(error, SizeMismatch) and taken_by(event) is not None:
        noun = "feature" if error.dim == -1 or _is_last(event, error) else "channel"
        wanted = counted(context.text(error.want), noun)
        return f"`{layer}` expects {wanted}, but `{source}` before it outputs {context.text(error.have)}"
    if isinstance(error, WrongRank):
        wanted = " or ".join(f"{rank}-D" for rank in error.want)
        return f"`{layer}` expects {wanted} tensors, but `{source}` before it outputs {operand}"
    if isinstance(error, WindowTooLarge):
        return (
            f"the kernel of `{layer}` spans {context.text(error.window)}, but `{source}` before it outputs "
            f"{operand}"
        )
    if isinstance(error, NotDivisible):
        needed = f"{error.what} divisible by {context.text(error.by)}"
        return f"`{layer}` needs {needed}, but `{source}` before it outputs {operand}"
    return None


def _is_last(event: OpRejected, error: SizeMismatch) -> bool:
    layout = event.operands[0].layout
    return event.function in FEATURES or (layout is not None and error.dim == layout.rank - 1)


def _fixes(event: OpRejected, before: LibraryObject, context: CheckContext) -> Iterator[Fix]:
    error, layout = event.error, event.operands[0].layout
    if isinstance(error, WrongRank):
        edit = _other_class(event, error, layout)
        if edit is not None:
            yield Fix(Applicability.UNSAFE, f"use `{edit.content}`, for {error.have}-D tensors", (edit,))
        return
    if isinstance(error, WindowTooLarge):
        yield Fix(
            Applicability.DISPLAY,
            "use larger inputs, fewer layers with a stride, or a smaller kernel",
            (),
        )
        return
    setting = taken_by(event)
    if not isinstance(error, SizeMismatch) or setting is None:
        return
    flattening = _flattened(event, error, layout)
    if flattening is not None and layout is not None:
        edit, start = flattening
        merged = product_text(layout.sizes[start:], context)
        what = f"insert `nn.Flatten` before it: {merged} = {context.text(error.want)}"
        yield Fix(Applicability.UNSAFE, what, (edit,))
        return
    have, want = error.have.value, error.want.value
    if have is None or want is None:
        return
    change, edit_ = fitting(event, error, have, want)
    change = change.replace("create the layer with", f"create `{called(event)}` with")
    edits = () if edit_ is None else (edit_,)
    gives = chosen_by(before, from_end(event, error))
    if gives is None:
        is_sure = edit_ is not None and edit_.span.path == event.place.module.path
        yield Fix(Applicability.UNSAFE if is_sure else Applicability.DISPLAY, change, edits)
    else:
        yield Fix(
            Applicability.DISPLAY, f"{change}, or `{layer_code(before)}` with {gives.name}={want}", edits
        )


def _other_class(event: OpRejected, error: WrongRank, layout: Layout | None) -> Edit | None:
    """Return the edit to the same layer for another rank: `BatchNorm2d` for `BatchNorm1d`."""
    name = event.function.rpartition(".")[2]
    if not name.endswith(("1d", "2d", "3d")) or layout is None:
        return None
    rank = max(error.have - 2, 1)
    setting = NORMS.get(event.function) or CHANNELS.get(event.function)
    if rank > 3 or rank == int(name[-2]) or not event.layer or error.have < 3:
        return None
    wanted = None if setting is None else as_size(event.settings.get(setting.name))
    if wanted is not None and same(layout.sizes[1], wanted) is not True:
        return None
    return renamed_class(event.layer, f"{name[:-2]}{rank}d")


def _flattened(event: OpRejected, error: SizeMismatch, layout: Layout | None) -> tuple[Edit, int] | None:
    """Return the edit to insert a Flatten before a layer, and the first dimension to flatten."""
    if layout is None or event.function not in FEATURES or not isinstance(event.layer, LibraryObject):
        return None
    call, place = constructor(event.layer), event.layer.place
    if call is None or place is None or not isinstance(call.func, cst.Attribute):
        return None
    for start in range(1, layout.rank - 1):
        if same(product(layout.sizes[start:]), error.want):
            break
    else:
        return None
    around = enclosing(place.module, call)
    if len(around) < 3 or not isinstance(around[-2], (cst.Arg, cst.Element)):
        return None
    span = place.module.span(call)
    namespace = place.module.code(call.func.value)
    made = f"{namespace}.Flatten({start if start > 1 else ''})"
    at = span.start()
    row = place.module.text.split("\n")[span.row - 1]
    margin = row[: span.column - 1]
    # Keep one layer per line.
    between = f",\n{margin}" if not margin.strip() else ", "
    return Edit(at, f"{made}{between}"), start
