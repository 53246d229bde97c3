"""Diagnostics: findings with their evidence, conditions and fixes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from enum import StrEnum
from pathlib import PurePath
from typing import Literal

from shapefix.light_dataclasses import dataclass

REVEAL = "reveal"
"""The code of what answers `reveal(x)`; no rule has it, and no selection leaves it out."""

STORED_ERROR = "stored-error"
"""The code of an error in the outputs of a notebook that no rule predicts."""
TRACED_ERROR = "traced-error"
"""The code of a cause in the sources of an error that no rule predicts."""


_CELL = re.compile(r"(?P<path>.+\.ipynb):cell (?P<number>\d+)\Z", re.DOTALL)


def path_of(notebook: str, number: int) -> str:
    """Return the path-like name of a notebook's cell: `train.ipynb:cell 3`."""
    return f"{notebook}:cell {number}"


def cell_of(path: str) -> tuple[str, int] | None:
    """Return the notebook and number of a cell from its path_of name; None for any other path."""
    found = _CELL.match(path)
    return (found["path"], int(found["number"])) if found else None


class Severity(StrEnum):
    """How sure and how bad: an error crashes or corrupts under its condition, info is hidden by default."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(StrEnum):
    """Whether a fix may be applied unasked (safe), on request (unsafe), or only be shown (display)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of one file.

    Rows and columns count from 1, columns in code points; the end is exclusive. Rows end at a newline,
    a carriage return, or the two together, and at nothing else.
    """

    path: str
    row: int
    column: int
    end_row: int
    end_column: int

    def start(self) -> Span:
        """Return the empty span at the start of this one."""
        return Span(self.path, self.row, self.column, self.row, self.column)

    def end(self) -> Span:
        """Return the empty span at the end of this one."""
        return Span(self.path, self.end_row, self.end_column, self.end_row, self.end_column)

    def to(self, last: Span) -> Span:
        """Return the span from the start of this one to the end of a later one."""
        return Span(self.path, self.row, self.column, last.end_row, last.end_column)


class Role(StrEnum):
    """Part of a step in its finding. The short report shows a cause, a producer and the failure."""

    CALL = "call"
    """A call on the way to the failure."""
    CAUSE = "cause"
    """A place that states what is wrong: a size, an option, an earlier statement."""
    HISTORY = "history"
    """An earlier step in the history of a value."""
    PRODUCER = "producer"
    """The last step that gave a value its sizes or its layout."""
    FAILURE = "failure"
    """The place that raises, or that computes the wrong result."""


@dataclass(frozen=True)
class Evidence:
    """One step on the way to a finding: a place and its event.

    label replaces the message in the short report; that of a call is its code, `model(images)`.
    """

    span: Span
    message: str
    role: Role = Role.CAUSE
    label: str = ""


def with_failure(evidence: Iterable[Evidence], place: Span) -> tuple[Evidence, ...]:
    """Return the steps; if none is the failure, those at the place of the finding are."""
    steps = tuple(evidence)
    if any(step.role is Role.FAILURE for step in steps):
        return steps
    return tuple(
        replace(step, role=Role.FAILURE) if step.span == place and step.role is Role.CAUSE else step
        for step in steps
    )


@dataclass(frozen=True)
class Cause:
    """Target of one repair: a place, and the code of the rule for it."""

    code: str
    span: Span


class Moment(StrEnum):
    """The batch of a loop certain to raise an exception; UNKNOWN for any, or outside of loops."""

    UNKNOWN = ""
    FIRST_BATCH = "first batch"
    LAST_BATCH = "last batch"


@dataclass(frozen=True)
class ExpectedError:
    """The exception of the run: its type, searchable words of its message, and the moment."""

    type: str
    message: str = ""
    moment: Moment = Moment.UNKNOWN

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Edit:
    """Replace the text of span with content; an empty span inserts."""

    span: Span
    content: str


@dataclass(frozen=True)
class Import:
    """A name needed by a fix: `import module`, or `from module import name`."""

    module: str
    name: str | None = None


@dataclass(frozen=True)
class Fix:
    """Edits to apply together, with a one-sentence description.

    unneeded are imports that go where nothing else in the file uses them. remark is a consequence that the
    new code does not show.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]
    imports: tuple[Import, ...] = ()
    unneeded: tuple[Import, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class Variable:
    """A variable of the checked code: its number, or the size of dimension dim of its tensor."""

    name: str
    dim: int | None = None


@dataclass(frozen=True)
class Arithmetic:
    """Two numbers combined by an operator of Python: `T - 1`, `n // 2`."""

    operator: Literal["+", "-", "*", "//", "%"]
    left: Expression
    right: Expression


Expression = int | Variable | Arithmetic


@dataclass(frozen=True)
class Comparison:
    """A relation of two numbers: `T > 1`. In the third relation, left is not a multiple of right."""

    left: Expression
    relation: Literal[">", "!=", "is not a multiple of"]
    right: Expression


@dataclass(frozen=True)
class Combination:
    """Predicates combined by and (all hold) or by or (at least one holds)."""

    operator: Literal["and", "or"]
    parts: tuple[Predicate, ...]


Predicate = Comparison | Combination


@dataclass(frozen=True)
class Condition:
    """When a finding fails: a text, and a predicate if variables of the checked code decide it.

    constant is whether it is the same for all batches of a run: it depends on the machine, or on an option.
    """

    text: str
    predicate: Predicate | None = None
    constant: bool = False


class RunVerdict(StrEnum):
    """Result of comparing a finding with a run of the probe: it happened, it did not, or unknown."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True)
class Confirmation:
    """A verdict and the reason for it."""

    verdict: RunVerdict
    reason: str


@dataclass(frozen=True)
class Diagnostic:
    """A finding: a rule, a place, the evidence chain proving it, and its repair.

    condition says when it fails, None if it always does. The first of fixes is the one that `shapefix fix`
    considers. confirmation is the comparison with a run, None if there was no run. error is the exception,
    None if nothing is raised or its words are not known. follows is the cause shared with other findings,
    None if the evidence has it. habit names a mistake that authors repeat: findings of a rule with the same
    one have one cause. unused is the class, function or method without a use in the project whose run shows
    it, "" for code in use. reservation is the reason to report it on request only, in words, "" without one:
    what the proof takes for granted. in_branch says that the run began without known callers, and that a
    condition of the code decides about it. moment is the position in the run of the script, for the order of
    reports.
    """

    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    evidence: tuple[Evidence, ...] = ()
    condition: Condition | None = None
    fixes: tuple[Fix, ...] = ()
    confirmation: Confirmation | None = None
    error: ExpectedError | None = None
    follows: Cause | None = None
    habit: str = ""
    unused: str = ""
    reservation: str = ""
    in_branch: bool = field(default=False, compare=False)
    moment: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """The message and the exception in one line."""
        return self.message if self.error is None else f"{self.message}; {self.error}"

    @property
    def calls(self) -> tuple[Evidence, ...]:
        """The calls on the way to the failure, outermost first."""
        return tuple(step for step in self.evidence if step.role is Role.CALL)

    @property
    def failing(self) -> Span:
        """The place of the failure, the last one with this role; the finding's own without one."""
        steps = [step.span for step in self.evidence if step.role is Role.FAILURE]
        return steps[-1] if steps else self.span

    @property
    def entry(self) -> Span:
        """The outermost place on the way to the failure."""
        return self.calls[0].span if self.calls else self.span

    @property
    def cause(self) -> Cause:
        """The stated cause, the first one of the evidence, or the place of the finding."""
        if self.follows is not None:
            return self.follows
        stated = (step.span for step in self.evidence if step.role is Role.CAUSE)
        return Cause(self.code, next(stated, self.span))

    @property
    def fix(self) -> Fix | None:
        return self.fixes[0] if self.fixes else None

    @property
    def is_refuted(self) -> bool:
        """Whether a run has disproved it."""
        return self.confirmation is not None and self.confirmation.verdict is RunVerdict.REFUTED

    @property
    def is_answer(self) -> bool:
        """Whether this is not a finding: it answers `reveal(x)`, or repeats an error of an earlier run."""
        return self.code in (REVEAL, STORED_ERROR, TRACED_ERROR)


def in_run_order(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort by the folder of the script; in it errors first, each kind in the order of the run."""
    severities = list(Severity)

    def key(finding: Diagnostic) -> tuple[object, ...]:
        entry = finding.calls[0].span if finding.calls else finding.span
        script, _ = cell_of(entry.path) or (entry.path, 0)
        path, cell = cell_of(finding.span.path) or (finding.span.path, 0)
        rank = severities.index(finding.severity)
        place = path, cell, finding.span, finding.code
        return PurePath(script).parent, rank, script, finding.moment, *place

    return sorted(findings, key=key)


@dataclass(frozen=True)
class Failure:
    """A file, or a folder, without a result; row and column if a place is known."""

    path: str
    message: str
    row: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Unchecked:
    """An unchecked place or file, and the reason; row and column of a known place.

    kind groups those with one reason.
    """

    path: str
    message: str
    row: int | None = None
    column: int | None = None
    kind: str = ""
