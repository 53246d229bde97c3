"""Rows of different lengths without padding; the rule depends on the collator."""

from __future__ import annotations

from shapefix.diagnostics import Condition, Evidence, Span
from shapefix.runtime.findings.exception_report import Explanation
from shapefix.runtime.observations import Observations, RaisedException, span
from shapefix.runtime.protocol import SampledRowsLine

MESSAGES = (
    r"expected sequence of length",
    r"Unable to create tensor",
    r"stack expects each tensor to be equal size",
    r"each element in list of batch should be of equal size",
)
_DEFAULT = ("default_collate", "default_data_collator", "DefaultDataCollator")
_PADS_INPUTS_ONLY = ("DataCollatorForLanguageModeling", "DataCollatorWithPadding")


def explain(failure: RaisedException, observed: Observations) -> Explanation | None:
    """The rule for an exception of a loader, or for two rows combined only by the probe."""
    loader = failure.details.get("loader")
    if failure.origin not in ("loader", "rows") or loader is None:
        return None
    created_at, collate = span(loader["created_at"]), loader["collate"]
    rows = next((line for line in observed.of(SampledRowsLine) if line["loader"] == loader["id"]), None)
    key, lengths = _uneven(rows)
    name = collate["name"].split(".")[-1]
    own = collate["file"] is not None
    code, place, what = _rule(failure, name, own, key, lengths)
    if code is None:
        return None
    at = place or (failure.stack[0] if failure.origin == "loader" else created_at) or failure.stack[0]
    measured = _lengths_text(key, lengths, rows)
    message = f"{what}: {measured}" if measured else what
    evidence = []
    if created_at and created_at != at:
        evidence.append(Evidence(created_at, f"loader created here with `{name}`"))
    evidence.append(Evidence(at, measured or f"raises {failure.type} here"))
    return Explanation(code, message, at, tuple(evidence), _condition(failure, rows))


def _rule(
    failure: RaisedException, name: str, own: bool, key: str, lengths: list[int]
) -> tuple[str | None, Span | None, str]:
    about_labels = "(`labels` in this case)" in failure.message
    if name in _PADS_INPUTS_ONLY and about_labels:
        return "SF301", None, f"`{name}` pads the inputs but not `labels`"
    if (
        name in _DEFAULT
        and len(set(lengths)) > 1
        and len(set(lengths[:-1])) == 1
        and lengths[-1] < lengths[0]
    ):
        return "SF307", None, f"the last row is shorter, and `{name}` only stacks rows of equal length"
    if name in _DEFAULT:
        return "SF302", None, f"`{name}` does not pad, but rows differ in length"
    if own and failure.stack:
        return "SF303", failure.stack[0], f"`{name}` creates a tensor from rows of different lengths"
    return None, None, ""


def _uneven(rows: SampledRowsLine | None) -> tuple[str, list[int]]:
    """The first part of the rows with different lengths, and its lengths in the order of the rows."""
    if rows is None:
        return "", []
    for key, sizes in rows["sizes"].items():
        known = sorted(
            (number, size[0]) for number, size in zip(rows["numbers"], sizes, strict=False) if size
        )
        lengths = [length for _, length in known]
        if len(set(lengths)) > 1:
            return key, lengths
    return "", []


def _lengths_text(key: str, lengths: list[int], rows: SampledRowsLine | None) -> str:
    if not lengths or rows is None:
        return ""
    part = f"`{key}`" if key and not key.isdigit() else f"part {key} of a row" if key else "a row"
    if len(set(lengths[:-1])) == 1:
        return (
            f"{part} has length {lengths[-1]} in the last of {rows['total']} rows, {lengths[0]} in the others"
        )
    return (
        f"{part} has lengths from {min(lengths)} to {max(lengths)} in {len(lengths)} of {rows['total']} rows"
    )


def _condition(failure: RaisedException, rows: SampledRowsLine | None) -> Condition:
    if failure.origin == "rows" and rows and rows["pair"]:
        first, second = rows["pair"]
        return Condition(f"a batch combines rows {first} and {second}, or other rows of different lengths")
    return Condition("two rows of a batch have different lengths")
