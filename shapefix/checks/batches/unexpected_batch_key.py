"""SF401, SF402 and SF403: the keys of a batch against what forward takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.batches import key_repairs
from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.model_outputs import reads_loss
from shapefix.checks.support.near_keys import near
from shapefix.checks.support.rewrites import line_of
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.interpreter.batch_events import ModelCalled
from shapefix.interpreter.modules import Module


@rule("SF401", on=ModelCalled)
def unexpected_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    keys = _unexpected(event)
    if not keys:
        return
    module, forward = event.place.module, event.signature
    from_batch = not keys_in_code(event).intersection(keys)
    meant = {key: near(key, forward.named) for key in keys}
    taken = [
        f"`{name}`"
        for name in dict.fromkeys(meant.values())
        if name is not None and name not in event.keywords
    ]
    outcome = f"; it takes {' and '.join(taken)}" if taken else ": TypeError"
    if from_batch and not taken:
        outcome += " at the first batch"
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` passes {listed(keys)}, which {_where(event, module)} does not "
        "accept"
        f"{outcome}",
        evidence=[*call_trace(event), *_origins(event, keys), *_definition(event)],
        fixes=key_repairs.left_out(event, keys) if from_batch and not taken else (),
    )


@rule("SF402", on=ModelCalled)
def ignored_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward = event.signature
    if event.trainer or forward.raises is True or not forward.unused:
        return
    module = event.place.module
    positional = frozenset(forward.named[: event.positional])
    for key in event.keywords:
        meant = None if key in forward.used else near(key, forward.named)
        if meant is None or meant in event.keywords or meant in positional or not event.complete:
            continue
        if meant == "labels" and not reads_loss(event.place):
            continue
        takes = "takes and ignores" if forward.place is None else "takes in `**kwargs` and ignores"
        loss = ", so that its loss is None" if meant == "labels" and forward.place is None else ""
        yield rule.diagnostic(
            event.place.span,
            f"`{abbreviate(event.place.code)}` passes `{key}`, which {_where(event, module)} {takes}; "
            f"it reads `{meant}`{loss}",
            evidence=[*call_trace(event), *_origins(event, [key]), *_definition(event)],
            fixes=key_repairs.renamed(event, key, meant),
        )


@rule("SF403", on=ModelCalled)
def missing_batch_key(event: ModelCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward = event.signature
    # Nobody calls a model with an empty batch: then something else is called than what is known here.
    from_batch = event.keywords.keys() - keys_in_code(event)
    if not from_batch or not event.complete or event.trainer or _unexpected(event):
        return
    given = {*forward.named[: event.positional], *event.keywords}
    missing = [name for name in forward.named if name in forward.required and name not in given]
    if not missing:
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` does not pass {listed(missing)}, which "
        f"{_where(event, event.place.module)} requires: TypeError at the first batch",
        evidence=[
            *call_trace(event),
            *_definition(event),
            Evidence(event.place.span, f"passes {listed(list(event.keywords))}"),
        ],
    )


def _unexpected(event: ModelCalled) -> list[str]:
    """The keys that forward refuses.

    What the code itself writes at the call is only wrong for certain where the call is certain to happen.
    """
    forward = event.signature
    if forward.raises is not True or event.trainer:
        return []
    keys = [key for key in event.keywords if key in event.certain and key not in forward.named]
    stated = keys_in_code(event)
    return [key for key in keys if key not in stated or not event.undecided]


def keys_in_code(event: ModelCalled) -> frozenset[str]:
    """The keywords that stand at the call itself."""
    node = event.place.node
    given = node.args if isinstance(node, cst.Call) else ()
    return frozenset(argument.keyword.value for argument in given if argument.keyword is not None)


def listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _where(event: ModelCalled, module: Module) -> str:
    """forward, and where it is defined."""
    forward = event.signature
    if forward.place is None:
        name = forward.name if forward.raises else forward.name.removesuffix(".forward")
        return f"`{name}`"
    return f"`{forward.name}` ({line_of(forward.place, module)})"


def _definition(event: ModelCalled) -> Iterator[Evidence]:
    forward = event.signature
    if forward.place is not None:
        takes = listed(forward.named) if forward.named else "nothing"
        yield Evidence(forward.place.span, f"takes {takes}" + ("" if forward.raises else ", and `**kwargs`"))


def _origins(event: ModelCalled, keys: Sequence[str]) -> Iterator[Evidence]:
    for key in keys:
        place = key_repairs.origin(event, key)
        if place is not None:
            yield Evidence(place.span, f"`{key}` comes from here")
