"""Search for the places of the names in a message."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from shapefix.diagnosis.explanations import MessageExplanation

# Importing a module registers its searches.
from shapefix.diagnosis.named_places import (  # noqa: F401
    calls,
    checkpoints,
    constructors,
    data,
    devices,
    files,
    names,
    tokens,
    training,
    types,
)
from shapefix.diagnosis.named_places.failures import SEARCHES, ExplainedFailure
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnostics import Evidence

_MOST = 5


def named_places(
    explanation: MessageExplanation, frames: Sequence[ProjectFrame], folder: str
) -> tuple[Evidence, ...]:
    """Return the places of the names in a message; none if the error is about other things."""
    search = SEARCHES.get(explanation.name)
    if search is None or not frames:
        return ()
    found: dict[tuple[str, int], Evidence] = {}
    try:
        for each in islice(search(ExplainedFailure(explanation, frames, folder)), 10 * _MOST):
            found.setdefault((each.span.path, each.span.row), each)
    except RecursionError:
        # An expression of thousands of terms has no code that one can compare.
        return ()
    return tuple(found.values())[:_MOST]
