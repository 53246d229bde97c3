"""Rows of different lengths that nobody pads: whose collator it is decides which rule is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapefix.diagnostics import Condition, Evidence, Span
from shapefix.runtime.findings.exception_report import Explanation
from shapefix.runtime.observations import Failure, Observations, span

MESSAGES = (
    r"expected sequence of length",
    r"Unable to create tensor",
    r"stack expects each tensor to be equal size",
    r"each element in list of batch should be of equal size",
)
_DEFAULT = ("default_collate", "default_data_collator", "DefaultDataCollator")
_PADS_INPUTS_ONLY = ("DataCollatorForLanguageModeling", "DataCollatorWithPadding")


def explain(failure: Failure, observed: Observations) -> Explanation | None:
    """Which rule the failure of a loader, or of two rows that never met, belongs to."""
    loader = failure.details.get("loader")
    if failure.where not in ("loader", "rows") or loader is None:
        return None
    made, collate = span(loader["made"]), loader["collate"]
    rows = next((line for line in observed.of("rows") if line["loader"] == loader["id"]), None)
    key, lengths = _uneven(rows)
    name = collate["name"].split(".")[-1]
    own = "file" in collate
    code, place, what = _rule(failure, name, own, key, lengths)
    if code is None:
        return None
    at = place or (failure.stack[0] if failure.where == "loader" else made) or failure.stack[0]
    seen = _seen(key, lengths, rows)
    message = f"{what}: {seen}" if seen else what
    evidence = [Evidence(made, f"the loader is made here, with `{name}`")] if made and made != at else []
    evidence.append(Evidence(at, seen or f"raises {failure.type} here"))
    return Explanation(code, message, at, tuple(evidence), _condition(failure, rows))


def _rule(
    failure: Failure, name: str, own: bool, key: str, lengths: list[int]
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
        return "SF307", None, f"the last row is short, and `{name}` stacks rows of one length only"
    if name in _DEFAULT:
        return "SF302", None, f"`{name}` pads nothing, and rows differ in length"
    if own and failure.stack:
        return "SF303", failure.stack[0], f"`{name}` makes a tensor of rows that differ in length"
    return None, None, ""


def _uneven(rows: Mapping[str, Any] | None) -> tuple[str, list[int]]:
    """The first part of the rows whose length differs, and its lengths in the order of the rows."""
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


def _seen(key: str, lengths: list[int], rows: Mapping[str, Any] | None) -> str:
    if not lengths or rows is None:
        return ""
    part = f"`{key}`" if key and not key.isdigit() else f"part {key} of a row" if key else "a row"
    if len(set(lengths[:-1])) == 1:
        return f"{part} has {lengths[-1]} in the last of {rows['total']} rows, and {lengths[0]} in the others"
    return (
        f"{part} is {min(lengths)} to {max(lengths)} long in the {len(lengths)} of {rows['total']} rows seen"
    )


def _condition(failure: Failure, rows: Mapping[str, Any] | None) -> Condition:
    if failure.where == "rows" and rows and rows["pair"]:
        first, second = rows["pair"]
        return Condition(f"a batch holds rows {first} and {second}, or others that differ as they do")
    return Condition("two rows of a batch differ in length")
