"""Diagnostics: findings with their evidence, conditions and fixes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

REVEAL = "reveal"
"""The code of what answers `reveal(x)`; no rule has it, and no selection leaves it out."""


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


@dataclass(frozen=True)
class Evidence:
    """One step of the way to a finding: what happened at this place."""

    span: Span
    message: str


@dataclass(frozen=True)
class Edit:
    """Replace the text of span with content; an empty span inserts."""

    span: Span
    content: str


@dataclass(frozen=True)
class Import:
    """A name that a fix needs: `import module`, or `from module import name`."""

    module: str
    name: str | None = None


@dataclass(frozen=True)
class Fix:
    """Edits that belong together, with one sentence on what they change.

    unneeded are imports that go where nothing else in the file uses them.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]
    imports: tuple[Import, ...] = ()
    unneeded: tuple[Import, ...] = ()


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
    """A relation of two numbers: `T > 1`. The third relation says that left is not a multiple of right."""

    left: Expression
    relation: Literal[">", "!=", "is not a multiple of"]
    right: Expression


@dataclass(frozen=True)
class Combination:
    """Predicates of which all (and) or at least one (or) hold."""

    operator: Literal["and", "or"]
    parts: tuple[Predicate, ...]


Predicate = Comparison | Combination


@dataclass(frozen=True)
class Condition:
    """When a finding fails: a text, and a predicate if variables of the checked code decide it."""

    text: str
    predicate: Predicate | None = None


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
    """A finding: a rule, a place, the evidence chain that proves it, and how to repair it.

    condition says when it fails, None if it always does. The first of fixes is the one that `shapefix fix`
    considers. confirmation is the comparison with a run, None if there was no run.
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

    @property
    def fix(self) -> Fix | None:
        return self.fixes[0] if self.fixes else None

    @property
    def is_refuted(self) -> bool:
        """Whether a run has shown that it does not happen."""
        return self.confirmation is not None and self.confirmation.verdict is RunVerdict.REFUTED

    @property
    def is_answer(self) -> bool:
        """Whether this answers `reveal(x)` in the code, and is not a finding."""
        return self.code == REVEAL


@dataclass(frozen=True)
class Failure:
    """A file, or a folder, that could not be answered for; row and column where a place is known."""

    path: str
    message: str
    row: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Unchecked:
    """A place, or a file, that could not be checked, and the reason; row and column where a place is known.

    kind groups those with one reason.
    """

    path: str
    message: str
    row: int | None = None
    column: int | None = None
    kind: str = ""
