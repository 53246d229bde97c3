"""Blame an in-place error on the write: a second run watches saved tensors and the writes into them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from shapefix.diagnostics import Diagnostic, Evidence, with_failure
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.observations import Observations, RaisedException, span
from shapefix.runtime.protocol import SavedTensorWrittenLine

OPTION = "--find-writes"
"""The agent's option for the second run."""

_CODE = "SF901"
_ERROR = "modified by an inplace operation"
_TENSOR = re.compile(
    r"Tensor \[([\d, ]*)\]\](?:, which is output \d+ of (\w+),)? is at version (\d+); expected version (\d+)"
)


def with_writes(
    found: ProbeFindings, observed: Observations, run_again: Callable[[], Observations]
) -> ProbeFindings:
    """The findings, with in-place errors at the write; run_again is called only if there are such errors."""
    failure = next((each for each in observed.exceptions if _ERROR in each.message and each.stack), None)
    if failure is None or not any(each.code == _CODE for each in found.diagnostics):
        return found
    line = _matching(failure, run_again())
    if line is None:
        return found
    return replace(
        found,
        diagnostics=tuple(
            _at_write(each, failure, line) if each.code == _CODE else each for each in found.diagnostics
        ),
    )


def _matching(failure: RaisedException, observed: Observations) -> SavedTensorWrittenLine | None:
    """The write into the tensor of the exception: that of its size and versions."""
    match = _TENSOR.search(failure.message)
    if match is None:
        return None
    size = [int(each) for each in match[1].split(",") if each.strip()]
    versions = [int(match[4]), int(match[3])]
    lines = [each for each in observed.of(SavedTensorWrittenLine) if each["size"] == size]
    exact = [each for each in lines if each["versions"] == versions]
    return next(iter(exact or lines), None)


def _at_write(found: Diagnostic, failure: RaisedException, line: SavedTensorWrittenLine) -> Diagnostic:
    written, saved = span(line["written_at"]), span(line["saved_at"])
    if written is None:
        return found
    match = _TENSOR.search(failure.message)
    operation = (match[2] or "").removesuffix("Backward0") if match else ""
    size = ", ".join(map(str, line["size"]))
    what = f"the result of {operation.lower()}, [{size}]," if operation else f"a tensor [{size}]"
    evidence = [Evidence(written, f"written here by `{line['function']}`")]
    if saved is not None and saved != written:
        evidence.insert(0, Evidence(saved, "saved here for its gradient"))
    evidence.append(Evidence(failure.stack[0], "RuntimeError here: modified by an inplace operation"))
    return replace(
        found,
        message=f"`{line['function']}` writes into {what} that backward needs",
        span=written,
        evidence=with_failure(tuple(evidence), written),
    )
