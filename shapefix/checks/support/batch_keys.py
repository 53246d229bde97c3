"""The keys of a batch and the arguments of `forward`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.support import key_repairs
from shapefix.checks.support.rewrites import line_of
from shapefix.checks.support.wording import abbreviate, listed
from shapefix.diagnostics import Evidence
from shapefix.domains.batches import ModelCalled
from shapefix.interpreter.modules import Module


def unexpected_keys(event: ModelCalled) -> list[str]:
    """Return the keys not accepted by forward.

    Keywords in the code of the call count only if the call certainly happens.
    """
    forward = event.signature
    if forward.raises is not True:
        return []
    keys = [key for key in event.keywords if key in event.certain and key not in forward.named]
    stated = keys_in_code(event)
    return [key for key in keys if key not in stated or not event.undecided]


def keys_in_code(event: ModelCalled) -> frozenset[str]:
    """Return the keywords in the code of the call; a trainer calls the model in its own code."""
    if event.trainer:
        return frozenset()
    node = event.place.node
    given = node.args if isinstance(node, cst.Call) else ()
    return frozenset(argument.keyword.value for argument in given if argument.keyword is not None)


def caller_text(event: ModelCalled) -> str:
    """Return the code of the call, or the name of the trainer."""
    return abbreviate(event.place.code) if not event.trainer else event.trainer.rpartition(".")[2]


def forward_text(event: ModelCalled, module: Module) -> str:
    """Return the name of forward, and the line of its definition."""
    forward = event.signature
    if forward.place is None:
        name = forward.name if forward.raises else forward.name.removesuffix(".forward")
        return f"`{name}`"
    return f"`{forward.name}` ({line_of(forward.place, module)})"


def definition(event: ModelCalled) -> Iterator[Evidence]:
    forward = event.signature
    if forward.place is not None:
        takes = listed(forward.named) if forward.named else "no arguments"
        yield Evidence(forward.place.span, f"takes {takes}" + ("" if forward.raises else ", and `**kwargs`"))


def origins(event: ModelCalled, keys: Sequence[str]) -> Iterator[Evidence]:
    for key in keys:
        place = key_repairs.origin(event, key)
        if place is not None:
            yield Evidence(place.span, f"`{key}` added here")
