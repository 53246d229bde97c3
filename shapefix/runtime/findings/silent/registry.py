"""The faults that a run can show without an exception: their names, their rules, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from shapefix.diagnostics import Condition, Diagnostic, Evidence, Severity, Span
from shapefix.runtime.observations import Observations

Rules = Mapping[str, tuple[str, Severity]]
"""The name and severity of each rule that there is, by code."""

PROBE = "probe"
"""What stands in the place of a code where there is no rule for what was seen."""

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

KINDS: dict[str, tuple[str | None, Severity]] = {
    "silent-broadcast": ("SF509", _WARNING),
    "ignored-batch-key": ("SF402", _WARNING),
    "unread-argument": (None, _INFO),
    "lucky-view": ("SF101", _WARNING),
    "view-of-one": ("SF101", _INFO),
    "silent-float64": (None, _WARNING),
    "ignored-targets": (None, _ERROR),
    "target-range": (None, _ERROR),
    "one-class": (None, _WARNING),
    "loss-not-finite": (None, _ERROR),
    "gradient-not-finite": (None, _ERROR),
    "fresh-loss": ("SF803", _ERROR),
    "unconnected-loss": ("SF803", _ERROR),
    "clamped-loss": ("SF802", _WARNING),
    "zero-gradient": (None, _WARNING),
    "missed-parameters": ("SF605", _WARNING),
    "orphaned-parameters": ("SF605", _ERROR),
    "copy-to-device": ("SF603", _INFO),
    "large-copy": (None, _INFO),
    "untrained-parameters": (None, _INFO),
}
"""The rule that each kind of fault belongs to, where there is one, and its severity."""


@dataclass(frozen=True)
class Seen:
    """A fault of one kind, as one run has shown it."""

    kind: str
    message: str
    span: Span
    evidence: tuple[Evidence, ...]
    condition: Condition | None = None


Detector = Callable[[Observations], Iterator[Seen]]
_DETECTORS: list[Detector] = []


def detector(function: Detector) -> Detector:
    """Register a function that tells the faults of one sort that a run has shown."""
    _DETECTORS.append(function)
    return function


def seen(observed: Observations, rules: Rules) -> Iterator[Diagnostic]:
    """What all detectors say of a run, each fault once; what has no rule yet is named by its kind."""
    told: set[tuple[str, Span]] = set()
    for detect in _DETECTORS:
        for each in detect(observed):
            if (each.kind, each.span) not in told:
                told.add((each.kind, each.span))
                yield _diagnostic(each, rules)


def _diagnostic(fault: Seen, rules: Rules) -> Diagnostic:
    code, severity = KINDS[fault.kind]
    name = fault.kind
    if code is None or code not in rules:
        code = PROBE
    else:
        name = rules[code][0]
    return Diagnostic(code, name, severity, fault.message, fault.span, fault.evidence, fault.condition)
