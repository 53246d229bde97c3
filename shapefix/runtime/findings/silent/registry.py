"""The registry of checks for faults without an exception, and the rule and severity of each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from shapefix.diagnostics import Condition, Diagnostic, Evidence, Fix, Severity, Span, with_failure
from shapefix.rulebook.pages import names_and_severities
from shapefix.runtime.findings.constructor_fixes import ReadText, read_text
from shapefix.runtime.observations import Observations

PROBE = "probe"
"""The code of faults without a rule."""

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

KINDS: dict[str, tuple[str | None, Severity]] = {
    "silent-broadcast": ("SF509", _WARNING),
    "ignored-batch-key": ("SF402", _WARNING),
    "unread-argument": (None, _INFO),
    "batch1-view": ("SF101", _WARNING),
    "size1-view": ("SF101", _INFO),
    "normalized-scores": ("SF513", _WARNING),
    "unnormalized-scores": ("SF514", _ERROR),
    "softmax-over-batch": ("SF515", _ERROR),
    "silent-float64": (None, _WARNING),
    "padding-in-loss": ("SF203", _WARNING),
    "ignored-targets": (None, _ERROR),
    "target-range": ("SF522", _ERROR),
    "one-class": ("SF518", _WARNING),
    "loss-not-finite": (None, _ERROR),
    "gradient-not-finite": (None, _ERROR),
    "fresh-loss": ("SF904", _ERROR),
    "unconnected-loss": ("SF904", _ERROR),
    "clamped-loss": ("SF802", _WARNING),
    "zero-gradient": (None, _WARNING),
    "missed-parameters": ("SF605", _WARNING),
    "orphaned-parameters": ("SF605", _ERROR),
    "unregistered-parameters": ("SF606", _WARNING),
    "mixed-samples": (None, _WARNING),
    "constant-output": (None, _WARNING),
    "cut-gradient": (None, _WARNING),
    "carried-gradients": ("SF803", _ERROR),
    "missing-step": ("SF803", _ERROR),
    "empty-step": ("SF803", _ERROR),
    "recorded-evaluation": ("SF702", _WARNING),
    "wrong-mode": ("SF804", _WARNING),
    "kept-graph": ("SF701", _WARNING),
    "schedule-unit": ("SF803", _WARNING),
    "no-overfit": (None, _WARNING),
    "forward-outside-ddp": ("SF613", _WARNING),
    "unstartable-workers": (None, _ERROR),
    "copy-to-device": ("SF603", _INFO),
    "large-copy": (None, _INFO),
    "untrained-parameters": (None, _INFO),
}
"""The rule of each kind of fault, if there is one, and its severity."""

_CAUSES = {"mixed-samples": "softmax-over-batch"}
"""The cause of a kind of fault, which alone is reported if a run has both."""


@dataclass(frozen=True)
class RuntimeFinding:
    """A fault found by a run. fixes are those for the texts of the files as they were run."""

    kind: str
    message: str
    span: Span
    evidence: tuple[Evidence, ...]
    condition: Condition | None = None
    fixes: Callable[[ReadText], tuple[Fix, ...]] = lambda read: ()


SilentFaultCheck = Callable[[Observations], Iterator[RuntimeFinding]]
_CHECKS: list[SilentFaultCheck] = []


def silent_fault(function: SilentFaultCheck) -> SilentFaultCheck:
    """Register a function to find faults of one sort in the observations of a run."""
    _CHECKS.append(function)
    return function


def silent_faults(observed: Observations, read: ReadText = read_text) -> Iterator[Diagnostic]:
    """The faults found in a run by all checks, without repetitions and consequences of others."""
    seen: set[tuple[str, Span]] = set()
    found = [each for check in _CHECKS for each in check(observed)]
    kinds = {each.kind for each in found}
    for each in found:
        if _CAUSES.get(each.kind) not in kinds and (each.kind, each.span) not in seen:
            seen.add((each.kind, each.span))
            yield replace(_diagnostic(each), fixes=each.fixes(read))


def _diagnostic(fault: RuntimeFinding) -> Diagnostic:
    rule, severity = KINDS[fault.kind]
    code, name = (PROBE, fault.kind) if rule is None else (rule, names_and_severities()[rule][0])
    evidence = with_failure(fault.evidence, fault.span)
    return Diagnostic(code, name, severity, fault.message, fault.span, evidence, fault.condition)
