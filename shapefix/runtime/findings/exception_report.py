"""What is said of an exception: its words, where its module was constructed, and what was measured there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shapefix.diagnostics import Condition, Evidence, Span
from shapefix.runtime.observations import Failure, span
from shapefix.runtime.report.formatting import words


@dataclass(frozen=True)
class Explanation:
    """The code of a rule, and what it says of a failure at a place."""

    code: str
    message: str
    span: Span
    evidence: tuple[Evidence, ...]
    condition: Condition | None = None


def said(failure: Failure) -> str:
    """The exception as Python words it, its first row."""
    rows = failure.message.splitlines() or [""]
    return f"{failure.type}: {rows[0]}"


def steps(failure: Failure) -> tuple[Evidence, ...]:
    """Where the failing module was constructed, and what was measured at the failing line."""
    found = []
    module = failure.details.get("module")
    if module and span(module.get("born")) is not None:
        holds = ", ".join(
            f"{name}={value}"
            for name, value in list(module["holds"].items())[:3]
            if not isinstance(value, bool)
        )
        born = span(module["born"])
        assert born is not None
        # A module of a library was asked for by the line that made the whole model.
        if not (module["library"] and born == _outermost_birth(failure)):
            found.append(
                Evidence(born, f"{named(module)} constructed here" + (f": {holds}" if holds else ""))
            )
    found.append(Evidence(failure.stack[0], measured(failure)))
    return tuple(found)


def measured(failure: Failure) -> str:
    """What the failing line was working on."""
    module = failure.details.get("module")
    if failure.where == "module" and module:
        return f"{named(module)} called here with {given(module['input'])}"
    tensors = {name: value for name, value in failure.values.items() if value["is"] == "tensor"}
    if tensors:
        return "; ".join(f"`{name}` is {_whole(value)}" for name, value in list(tensors.items())[:4])
    if failure.where == "loss":
        return f"called here with {given(failure.details['given'])}"
    return f"raises {failure.type} here"


def named(module: Mapping[str, Any]) -> str:
    """A module by its name within the outermost one, and its class."""
    name, kind = module["name"], module["type"]
    return f"`{name}`" if name == kind else f"`{name}` ({kind})"


def given(call: Mapping[str, Any]) -> str:
    parts = [words(each) for each in call["args"]]
    parts += [f"{name}: {words(each)}" for name, each in call["kwargs"].items()]
    return ", ".join(parts) or "nothing"


def _whole(value: Mapping[str, Any]) -> str:
    text = words(value)
    if "strides" not in text and len(value["size"]) > 1:
        text += f" strides ({', '.join(map(str, value['stride']))})" if "stride" in value else ""
    return text


def _outermost_birth(failure: Failure) -> Span | None:
    return None if not failure.details["module"]["outermost"] else span(failure.details["module"]["born"])
