"""Text about an exception: its message, its module's place of construction, and measured values."""

from __future__ import annotations

from dataclasses import dataclass

from shapefix.diagnostics import Condition, Evidence, Span
from shapefix.runtime.observations import RaisedException, span
from shapefix.runtime.protocol import (
    CallArguments,
    DescribedValue,
    ModuleDetails,
    ModuleName,
    NonFiniteSource,
)
from shapefix.runtime.report.formatting import value_text


@dataclass(frozen=True)
class Explanation:
    """The code of the rule for an exception, with message, place and evidence."""

    code: str
    message: str
    span: Span
    evidence: tuple[Evidence, ...]
    condition: Condition | None = None


def exception_text(failure: RaisedException) -> str:
    """The type and the first row of the message of an exception."""
    rows = failure.message.splitlines() or [""]
    return f"{failure.type}: {rows[0]}"


def measurements(failure: RaisedException) -> tuple[Evidence, ...]:
    """The failing module's place of construction, and measured values at the failing line."""
    found = []
    module = failure.details.get("module")
    constructed_at = span(module["constructed_at"]) if module else None
    if module is not None and constructed_at is not None:
        attributes = ", ".join(
            f"{name}={value}"
            for name, value in list(module["attributes"].items())[:3]
            if not isinstance(value, bool)
        )
        # For a module of a library, that is the line that constructs the whole model.
        if not (module["library"] and module["outermost"]):
            found.append(
                Evidence(
                    constructed_at,
                    f"{module_label(module)} constructed here" + (f": {attributes}" if attributes else ""),
                )
            )
    found.append(Evidence(failure.stack[0], failing_values(failure)))
    return tuple(found)


def failing_values(failure: RaisedException) -> str:
    """The values in use at the failing line."""
    module = failure.details.get("module")
    if failure.origin == "module" and module:
        return f"{module_label(module)} called here with {call_text(module['input'])}"
    tensors = {name: value for name, value in failure.values.items() if value["kind"] == "tensor"}
    if tensors:
        return "; ".join(f"`{name}` is {_with_strides(value)}" for name, value in list(tensors.items())[:4])
    if failure.origin == "loss":
        return f"called here with {call_text(_tensors(failure.details['given']))}"
    return f"raises {failure.type} here"


def module_label(module: ModuleDetails | ModuleName | NonFiniteSource) -> str:
    """The name of a module within the outermost one, and its class."""
    name, kind = module["name"], module["type"]
    return f"`{name}`" if name == kind else f"`{name}` ({kind})"


def call_text(call: CallArguments) -> str:
    """The arguments of a call."""
    parts = [value_text(each) for each in call["args"]]
    parts += [f"{name}: {value_text(each)}" for name, each in call["kwargs"].items()]
    return ", ".join(parts) or "nothing"


def _tensors(call: CallArguments) -> CallArguments:
    """The arguments of a loss without its defaults and other settings."""
    args = [each for each in call["args"] if each["kind"] == "tensor"]
    kwargs = {name: each for name, each in call["kwargs"].items() if each["kind"] == "tensor"}
    return CallArguments(args=args, kwargs=kwargs) if args or kwargs else call


def _with_strides(value: DescribedValue) -> str:
    text = value_text(value)
    if "strides" not in text and len(value["size"]) > 1:
        text += f" strides ({', '.join(map(str, value['stride']))})" if "stride" in value else ""
    return text


def _outermost_birth(failure: RaisedException) -> Span | None:
    return (
        None
        if not failure.details["module"]["outermost"]
        else span(failure.details["module"]["constructed_at"])
    )
