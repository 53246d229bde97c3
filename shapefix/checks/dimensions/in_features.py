"""SF501: a layer's input has a different last size than the layer was created with."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, layer_code, shape_trace
from shapefix.checks.support.layer_number_edits import (
    helper_call,
    merged_sizes,
    other_number,
    other_use,
    stated_at,
    written_at,
)
from shapefix.checks.support.layer_settings import FEATURES, GIVES, taken_by
from shapefix.checks.support.operands import code_of, is_unlikely, made_inside, named, product_text
from shapefix.checks.support.sequential_layers import edited_place, neighbor
from shapefix.checks.support.torch_errors import layer_error
from shapefix.checks.support.wording import abbreviate, counted
from shapefix.diagnostics import (
    Applicability,
    Cause,
    Diagnostic,
    Edit,
    Evidence,
    ExpectedError,
    Fix,
    Role,
)
from shapefix.interpreter.events import OperationCalled, OpRejected
from shapefix.interpreter.values import LibraryObject
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import NotDivisible, SizeMismatch
from shapefix.tensors.options import needed_defaults
from shapefix.tensors.polynomials import product

_MAKERS = frozenset(kind for kind, setting in GIVES.items() if setting.name != "out_channels")


@rule("SF501", on=OpRejected, reads=(OperationCalled,))
def in_features(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    error = event.error
    if isinstance(error, NotDivisible) and event.function in FEATURES and not event.operands:
        yield _heads(event, error, context, rule)
        return
    setting = taken_by(event) if event.function in FEATURES else None
    if setting is None or not isinstance(error, SizeMismatch) or is_unlikely(event):
        return
    if neighbor(event) is not None:
        return
    operand = event.operands[error.operand]
    have, want = context.text(error.have), context.text(error.want)
    called = f"`{_called(event)}`"
    place = edited_place(event)
    if made_inside(event, error.operand) or place is not event.place:
        called = f"`{layer_code(event.layer) or setting.name}` in {called}"
    message = f"{called} expects {counted(want, 'feature')} but gets {have}"
    number = list(written_at(event))
    yield rule.diagnostic(
        place.span,
        message,
        error=layer_error(event, context),
        evidence=[
            *call_trace(event),
            *stated_at(event, "" if number else f"expects {want}", place),
            *number,
            *shape_trace(operand.tensor, context),
            Evidence(
                event.place.span,
                f"last size of {named(event, error.operand)} is {have}, {want} is expected",
                Role.FAILURE,
            ),
        ],
        fixes=_fixes(event, error, context),
        follows=_first_for_tensor(event, error, context, rule),
    )


def _heads(event: OpRejected, error: NotDivisible, context: CheckContext, rule: Rule) -> Diagnostic:
    """Report an attention with a width not divisible by its number of heads."""
    name = FEATURES[event.function][0].parts
    have, by = f"{error.what}={context.text(error.have)}", f"{name}={context.text(error.by)}"
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` fails: {have} is not divisible by {by}",
        error=ExpectedError("AssertionError", "embed_dim must be divisible by num_heads"),
        evidence=[*call_trace(event), Evidence(event.place.span, f"{have}, {by}", Role.FAILURE)],
        fixes=[_number_of_heads(event, error, name)],
    )


def _number_of_heads(event: OpRejected, error: NotDivisible, name: str) -> Fix:
    """Return the fix with the largest smaller number of heads, if the code states the number."""
    node, width, heads = event.place.node, error.have.value, error.by.value
    advice = f"choose a multiple of `{name}` for `{error.what}`"
    given = rewrites.argument(node, 1, name) if isinstance(node, cst.Call) else None
    if width is None or heads is None or given is None or not isinstance(given.value, cst.Integer):
        return Fix(Applicability.DISPLAY, advice, ())
    fitting = next(number for number in range(heads, 0, -1) if width % number == 0)
    edit = Edit(event.place.module.span(given.value), str(fitting))
    return Fix(Applicability.UNSAFE, f"use {fitting} heads, or {advice}", (edit,))


def _first_for_tensor(
    event: OpRejected, error: SizeMismatch, context: CheckContext, rule: Rule
) -> Cause | None:
    """Return the first finding for the same tensor: one wrong tensor given to two heads is one cause."""
    tensor = event.operands[error.operand].tensor
    for other in context.events:
        if other is event:
            return None
        if (
            isinstance(other, OpRejected)
            and other.function in FEATURES
            and other.calls == event.calls
            and isinstance(other.error, SizeMismatch)
            and other.operands[other.error.operand].tensor is tensor
            and same(other.error.want, error.want)
        ):
            return Cause(rule.code, edited_place(other).span)
    return None


def _called(event: OpRejected) -> str:
    """Return the code of the called function: `self.projection`."""
    node = event.place.node
    return abbreviate(event.place.module.code(node.func if isinstance(node, cst.Call) else node))


def _fixes(event: OpRejected, error: SizeMismatch, context: CheckContext) -> Iterator[Fix]:
    node, layout = code_of(event, error.operand), event.operands[error.operand].layout
    module = event.place.module
    if node is not None and layout is not None and layout.rank > 1:
        sizes = layout.sizes
        if same(sizes[-2], error.want):
            edit = rewrites.method_called(module, node, "transpose(-2, -1)")
            # The rows of a matrix are samples: their number fits by chance.
            kind = Applicability.UNSAFE if layout.rank > 2 else Applicability.DISPLAY
            yield Fix(kind, "swap the last two dimensions: their sizes are swapped", (edit,))
            return
        for start in range(1, layout.rank - 1):
            if same(product(sizes[start:]), error.want):
                edit = rewrites.method_called(module, node, f"flatten({start})")
                factors = product_text(sizes[start:], context)
                yield Fix(
                    Applicability.UNSAFE, f"flatten first: {factors} = {context.text(error.want)}", (edit,)
                )
                return
    have, want = error.have.value, error.want.value
    if have is None or want is None:
        yield from _other_option(error)
        return
    source, merged = _setter(event, error), merged_sizes(event, error)
    elsewhere = other_use(event, context)
    change, edit_ = (elsewhere, None) if elsewhere else other_number(event, have, want, merged)
    ways = [change]
    if source is not None:
        ways.append(f"change the output size of `{source}` to {want}")
    elif have % want == 0 and layout is not None and layout.rank == 2 and not merged:
        ways.append(
            f"if each row holds {have // want} steps of {want}, `.unflatten(-1, ({have // want}, {want}))`"
        )
    if len(ways) == 1 and edit_ is not None and edit_.span.path == module.path:
        yield Fix(Applicability.UNSAFE, ways[0], (edit_,))
    else:
        yield Fix(Applicability.DISPLAY, ", or ".join(ways), () if edit_ is None else (edit_,))


def _other_option(error: SizeMismatch) -> Iterator[Fix]:
    """Suggest another command-line option if the layer's size comes from one: `--vocab-size 4000`."""
    needed = needed_defaults(error.have, error.want)
    have = error.have.value
    if have is not None and len(needed) == 1 and error.want.only_symbol is needed[0]:
        flag = needed[0].flag
        message = f"run it with `{flag} {have}`, or make that the default of `{flag}`"
        yield Fix(Applicability.DISPLAY, message, ())


def _setter(event: OpRejected, error: SizeMismatch) -> str | None:
    """Return the code of the layer setting the tensor's last size, or None without one."""
    step = event.operands[error.operand].tensor.origin
    while step is not None:
        if (
            step.layout is not None
            and step.layout.rank
            and same(step.layout.sizes[-1], error.have) is not True
        ):
            return None
        if isinstance(step.producer, LibraryObject) and step.producer.kind in _MAKERS:
            helper = helper_call(step)
            return layer_code(step.producer) if helper is None else abbreviate(step.place.module.code(helper))
        step = step.source
    return None
