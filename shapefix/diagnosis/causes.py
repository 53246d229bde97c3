"""Choose the explanation of an error among the findings of a static check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache

from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.live_facts import LiveFacts
from shapefix.diagnosis.project_frames import ProjectFrame, is_installed
from shapefix.diagnostics import Diagnostic, Evidence, ExpectedError, Role, Severity, Span
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import Page, Raises, pages_by_code

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.]*\w)")
_SIZES = re.compile(r"(?<=\d)x(?=\d)")
_QUOTED = re.compile(r"['`\"]([A-Za-z_][\w.]*)['`\"]")
_LINE = re.compile(r"\b(?:lines?|dimensions?|entry|position|argument|dim) \d+(?:(?:, | and )\d+)*")
"""Numbers in the text of a finding that are not sizes."""
_DEVICE_ASSERT = "device-side assert triggered"
_TENSOR_ERRORS = frozenset(
    {"RuntimeError", "IndexError", "ValueError", "TypeError", "AssertionError", "NotImplementedError"}
)
"""The exceptions of torch for sizes and dtypes."""
_SHORTEST_WORDS = 20
_INDEX_ERRORS = frozenset({"index out of range in self", "is out of bounds"})
"""The messages on a CPU of the errors that are a device-side assert on a GPU."""


class Confidence(StrEnum):
    """How sure a cause is."""

    PROVED = "proved"
    """The check predicts this error at the failing line, with the same numbers and names."""
    ONLY = "the only explanation found"
    LIKELY = "most likely"
    POSSIBLE = "unknown; these lines set the values of the failing one"
    """The message is unknown; nothing is known but the origins of the values."""


@dataclass(frozen=True)
class ErrorCause:
    """A finding as the cause of an error.

    is_at_failing_line is true if it is about the innermost line of the user's own code. origins are further
    places that gave the sizes.
    """

    finding: Diagnostic
    confidence: Confidence
    is_at_failing_line: bool = False
    origins: tuple[Evidence, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All places of the explanation."""
        return (*self.finding.evidence, *self.origins)


class _At(StrEnum):
    """The place of a finding, seen from the frames."""

    FAILING = "failing line"
    PATH = "line of the stack"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class _Match:
    """How well a finding explains an error.

    is_exact is true if the error that the check predicts has these words; agrees if its numbers and names are
    those of the message, None if there is nothing to compare. is_worded is false if the check predicts an
    error at this line, but not in these words.
    """

    finding: Diagnostic
    at: _At
    is_exact: bool
    agrees: bool | None
    follows_stack: bool
    is_worded: bool

    def proves(self) -> bool:
        """Check whether the finding predicts this error at this place."""
        finding = self.finding
        return (
            self.at is _At.FAILING
            and self.agrees is not False
            and (self.agrees is True or self.is_exact)
            and self.follows_stack
            and self.is_worded
            and finding.severity is Severity.ERROR
            and finding.condition is None
        )

    def rank(self) -> tuple[object, ...]:
        """Order matches, the best last."""
        return (
            self.proves(),
            self.agrees is not False,
            [_At.ELSEWHERE, _At.PATH, _At.FAILING].index(self.at),
            self.is_worded,
            self.agrees is True,
            self.is_exact,
            self.follows_stack,
            -list(Severity).index(self.finding.severity),
            self.finding.condition is None,
            bool(self.finding.fixes),
        )


def causes(
    report: ErrorReport,
    frames: Sequence[ProjectFrame],
    findings: Iterable[Diagnostic],
    live: LiveFacts | None = None,
) -> tuple[ErrorCause, ...]:
    """Return the explanations of an error among the findings, the most likely first.

    Without frames, the findings of the whole project are compared. live has the sizes of the values in the
    failing line, for a message without numbers.
    """
    known = live.numbers if live is not None else frozenset[str]()
    matches = [match for each in findings if (match := _match(report, frames, each, known)) is not None]
    if live is not None and live.layer is not None:
        matches = _about_layer(matches, live.layer.attribute)
    if not frames:
        # Any line of the project may have raised it, but few predict these words, numbers and names.
        named = frozenset(_QUOTED.findall(report.message))
        matches = [
            match
            for match in matches
            if match.agrees is not False and named <= frozenset(_QUOTED.findall(match.finding.text))
        ]
        agreeing = [match for match in matches if match.agrees]
        matches = agreeing or [match for match in matches if match.is_exact] or matches
    if any(match.at is not _At.ELSEWHERE for match in matches) and _DEVICE_ASSERT not in report.message:
        matches = [match for match in matches if match.at is not _At.ELSEWHERE or match.agrees]
    if any(match.agrees for match in matches):
        matches = [match for match in matches if match.agrees is not False]
    matches.sort(key=_Match.rank, reverse=True)
    distinct: dict[Span, _Match] = {}
    for match in matches:
        distinct.setdefault(match.finding.cause.span, match)
    kept = list(distinct.values())
    if not kept:
        return ()
    is_changed = any(frame.is_changed or frame.is_missing or frame.is_region for frame in frames)
    proving = [match for match in kept if match.proves()]
    if len(proving) == 1 and not is_changed:
        confidence = Confidence.PROVED
    else:
        is_only = len(kept) == 1 and (kept[0].is_worded or kept[0].agrees is True)
        confidence = Confidence.ONLY if is_only else Confidence.LIKELY
    return (
        ErrorCause(kept[0].finding, confidence, kept[0].at is _At.FAILING),
        *(ErrorCause(match.finding, Confidence.LIKELY, match.at is _At.FAILING) for match in kept[1:]),
    )


def _about_layer(matches: list[_Match], attribute: str) -> list[_Match]:
    """Drop the findings about other layers of the failing line, if one is about the layer of this name."""
    about = [match for match in matches if match.at is _At.FAILING and attribute in _layers(match.finding)]
    return [match for match in matches if match in about or match.at is not _At.FAILING] if about else matches


def _layers(finding: Diagnostic) -> set[str]:
    """Return the last parts of the names in a finding."""
    return {name.rpartition(".")[2] for name in _QUOTED.findall(finding.message)}


def _match(
    report: ErrorReport, frames: Sequence[ProjectFrame], finding: Diagnostic, known: frozenset[str]
) -> _Match | None:
    """Compare a finding with an error; None if it does not explain it."""
    page = pages_by_code().get(finding.code)
    if page is None or finding.is_answer or page.raises in (Raises.NEVER, Raises.HIDDEN):
        return None
    message = " ".join(f"{report.name}: {report.message}".split())
    if _DEVICE_ASSERT in message:
        return _index_match(page, frames, finding)
    is_exact = finding.error is not None and _predicts(finding.error, report, message)
    at = _place(frames, finding)
    agrees = _agrees(report, finding)
    if agrees is None and known:
        agrees = _agrees_with_values(known, finding)
    is_worded = is_exact or any(part in message for part in page.errors)
    if not is_worded:
        if not (at is _At.FAILING and _raises_here(finding, page) and _is_of_torch(report)):
            return None
        if any(part in message for part in _predicted_words()):
            # The line would have raised the finding's error, but it raised that of another rule before.
            return None
    if frames and at is _At.ELSEWHERE and (page.raises is Raises.HERE or agrees is False):
        # This line would have raised, but another one did.
        return None
    calls = [step.span for step in finding.calls]
    follows = all(any(frame.covers(call) for frame in frames) for call in calls)
    return _Match(finding, at, is_exact, agrees, follows, is_worded)


@cache
def _predicted_words() -> frozenset[str]:
    """Return the words of the errors of all rules, without those too short to name one."""
    words = (part for page in pages_by_code().values() for part in page.errors)
    return frozenset(part for part in words if len(part) >= _SHORTEST_WORDS)


def _raises_here(finding: Diagnostic, page: Page) -> bool:
    """Whether the finding predicts an error at its line in every run, perhaps in other words."""
    is_here = page.raises is Raises.HERE or any(step.role is Role.FAILURE for step in finding.evidence)
    return is_here and finding.severity is Severity.ERROR and finding.condition is None


def _is_of_torch(report: ErrorReport) -> bool:
    """Whether an exception may be about tensors: it has such a type, and no code of the project raises it."""
    last = report.frames[-1] if report.frames else None
    is_raised = last is not None and not is_installed(last.path) and last.text.startswith(("raise", "assert"))
    return report.name in _TENSOR_ERRORS and not is_raised


def _index_match(page: Page, frames: Sequence[ProjectFrame], finding: Diagnostic) -> _Match | None:
    """Return a finding about an index out of range, wherever it is: the reported line may be a later one."""
    if _INDEX_ERRORS.isdisjoint(page.errors):
        return None
    at = _At.ELSEWHERE if _place(frames, finding) is _At.ELSEWHERE else _At.PATH
    return _Match(finding, at, is_exact=False, agrees=None, follows_stack=False, is_worded=True)


def _place(frames: Sequence[ProjectFrame], finding: Diagnostic) -> _At:
    """Return the place of a finding, seen from the frames."""
    places = [step.span for step in finding.evidence if step.role is Role.FAILURE] or [finding.span]
    if frames and any(frames[-1].covers(place) for place in places):
        return _At.FAILING
    everywhere = [finding.span, *(step.span for step in finding.evidence)]
    if any(frame.covers(place) for frame in frames for place in everywhere):
        return _At.PATH
    return _At.ELSEWHERE


def _predicts(error: ExpectedError, report: ErrorReport, message: str) -> bool:
    """Whether the predicted exception has these words; `...` in it is for any words.

    A handler may have printed the message without the type, after words of its own.
    """
    expected = str(error) if report.type else error.message
    pattern = r".*?".join(re.escape(part) for part in re.split(r"\.\.\.", expected))
    found = re.match(pattern, message) if report.type else re.search(pattern, message)
    return bool(expected) and found is not None


def _agrees(report: ErrorReport, finding: Diagnostic) -> bool | None:
    """Whether the numbers and names of a finding are those of the message; None if it has none to compare."""
    stated = _facts(report.message)
    own = _facts(_LINE.sub("", f"{finding.message} {finding.error or ''}"))
    numbers, names = _split(stated)
    own_numbers, own_names = _split(own)
    if names and names & own_names:
        return True
    if len(numbers) >= 2 and len(own_numbers) >= 2:
        return len(numbers & own_numbers) >= 2
    if numbers and own_numbers:
        return True if numbers & own_numbers else None
    return None


def _agrees_with_values(known: frozenset[str], finding: Diagnostic) -> bool | None:
    """Whether the numbers of a finding are sizes in the failing line; None if it states others."""
    numbers, _ = _split(_facts(_LINE.sub("", finding.message)))
    return True if len(numbers) >= 2 and numbers <= known else None


def _facts(text: str) -> frozenset[str]:
    spaced = _SIZES.sub(" x ", text)
    return frozenset(_NUMBER.findall(spaced)) | frozenset(_QUOTED.findall(text))


def _split(facts: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    numbers = frozenset(each for each in facts if each.lstrip("-").isdigit())
    return numbers, facts - numbers
