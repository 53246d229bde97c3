"""Findings in small sources, written so that a test can point at code by the code itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shapefix.diagnostics import (
    Applicability,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    Fix,
    Role,
    Severity,
    Span,
)


@dataclass(frozen=True)
class Source:
    """One file in which places are found by what stands there."""

    path: str
    text: str

    def at(self, code: str) -> Span:
        """The span of the one place where code stands, over several rows if code has newlines."""
        assert self.text.count(code) == 1, code
        start = self.text.index(code)
        end = start + len(code)
        return Span(self.path, *self._place(start), *self._place(end))

    def _place(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset].split("\n")
        return len(before), len(before[-1]) + 1


TRAIN = Source(
    "train.py",
    """\
import torch
import torch.nn.functional as F

def evaluate(model, batch, labels):
    logits = model(batch).logits
    shift = logits[:, :-1, :]
    mask = labels != -100

    count = mask.sum()
    loss = F.cross_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
    count.float()
    return loss / count
""",
)

STRIDED = Diagnostic(
    "SF101",
    "view-across-stride-gap",
    Severity.ERROR,
    "`shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap",
    TRAIN.at("shift.view(-1, V)"),
    (
        Evidence(TRAIN.at("logits[:, :-1, :]"), "sliced here: strides become (T*V, V, 1)", Role.PRODUCER),
        Evidence(TRAIN.at("shift.view(-1, V)"), "merged here: needs stride (T - 1)*V, has T*V", Role.FAILURE),
    ),
    Condition("the batch holds more than one sequence"),
    (
        Fix(
            Applicability.SAFE,
            "use `.reshape`",
            (Edit(Span("train.py", 10, 34, 10, 38), "reshape"),),
        ),
    ),
)

LABELS = Diagnostic(
    "SF101",
    "view-across-stride-gap",
    Severity.ERROR,
    "`labels[:, 1:].view(-1)` merges across a stride gap",
    TRAIN.at("labels[:, 1:].view(-1)"),
    (
        Evidence(TRAIN.at("labels[:, 1:]"), "sliced here: strides become (T, 1)", Role.PRODUCER),
        Evidence(TRAIN.at("labels[:, 1:].view(-1)"), "merged here: needs stride T - 1, has T", Role.FAILURE),
    ),
)

THROWN_AWAY = Diagnostic(
    "SF105",
    "result-thrown-away",
    Severity.WARNING,
    "the result of `count.float()` is unused",
    TRAIN.at("count.float()"),
    fixes=(
        Fix(
            Applicability.UNSAFE, "assign it to `count`", (Edit(Span("train.py", 11, 5, 11, 5), "count = "),)
        ),
    ),
)


def sources(*files: Source) -> Callable[[str], str | None]:
    return {file.path: file.text for file in files}.get


def text_of(pieces: Iterable[str]) -> str:
    return "".join(pieces)
