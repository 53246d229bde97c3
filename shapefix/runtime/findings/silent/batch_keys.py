"""Keys of a batch that a model takes without a word, and does nothing with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.checks.support.near_keys import near
from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span

_LOSS_ONLY = "labels"


@detector
def _ignored(observed: Observations) -> Iterator[Seen]:
    for model, at, line in _calls(observed):
        for key in line["more"]:
            meant = near(key, line["named"])
            # Without labels a model gives no loss; who computes it elsewhere does not miss that.
            if meant is None or meant in line["given"] or meant == _LOSS_ONLY:
                continue
            yield Seen(
                "ignored-batch-key",
                f"`{model}` is given `{key}`, which it takes in `**kwargs` and ignores; it reads `{meant}`",
                at,
                (Evidence(at, f"called here with {_listed([*line['given'], *line['more']])}"),),
            )


@detector
def _unread(observed: Observations) -> Iterator[Seen]:
    for model, at, line in _calls(observed):
        if line["unread"]:
            names = _listed(line["unread"])
            yield Seen(
                "unread-argument",
                f"`{model}.forward` never reads {names}, which it is given",
                at,
                (Evidence(at, f"`{model}` called here"),),
            )


def _calls(observed: Observations) -> Iterator[tuple[str, Span, Mapping[str, Any]]]:
    """The calls whose signature is known: the model's class, where it was called, and the signature."""
    entered = {line["id"]: line for line in observed.of("enter")}
    for line in observed.of("signature"):
        model = outer = entered[line["id"]]
        while outer["parent"] is not None:
            outer = entered[outer["parent"]]
        at = span(outer["called"])
        if at is not None:
            yield model["type"], at, line


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
