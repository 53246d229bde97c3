"""The end of an analysis for lack of time, memory or steps."""

from __future__ import annotations

from enum import Enum

LAST_STEP = 600_000
"""Steps after which a run ends: far more than the allowance for following calls and unrolling loops."""
REHEARSAL_STEPS = 150_000
"""Steps in rehearsals, and writes in them, after which loops are no longer rehearsed."""


class Resource(Enum):
    """Exhausted resource, in the words of the report."""

    TIME = "time"
    MEMORY = "memory"
    STEPS = "steps"


class OutOfBudget(BaseException):
    """The analysis of a file takes too much; not an Exception: no handler on the way may swallow it."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(f"out of {resource.value}")
        self.resource = resource


def cause_of(error: BaseException) -> OutOfBudget | None:
    """Find the OutOfBudget at the origin of an error: code being left by it may raise another exception."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OutOfBudget):
        found = found.__context__
    return found
