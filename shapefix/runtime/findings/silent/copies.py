"""Tensor copies on each call of a model, if they are large or easy to avoid."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.exception_report import module_label
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import DeviceCopyLine, LayoutCopyLine
from shapefix.runtime.report.formatting import byte_size, value_text

_LARGE = 1 << 20


@silent_fault
def _device(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(DeviceCopyLine):
        at, attribute = span(line["called_at"]), line["attribute"]
        if at is None or (attribute is None and line["bytes"] < _LARGE):
            continue
        what = f"`self.{attribute}`" if attribute else value_text(line["value"])
        advice = "; register it with `register_buffer` to move it with the model" if attribute else ""
        yield RuntimeFinding(
            "copy-to-device",
            f"{what} ({byte_size(line['bytes'])}) is copied from {line['value']['device']} to "
            f"{line['device']} on each call of {module_label(line['module'])}{advice}",
            at,
            (Evidence(at, f"copied here: {value_text(line['value'])}"),),
        )


@silent_fault
def _layout(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(LayoutCopyLine):
        at = span(line["called_at"])
        if at is not None:
            yield RuntimeFinding(
                "large-copy",
                f"`{line['function']}` copies {byte_size(line['bytes'])} on each call of "
                f"{module_label(line['module'])}: "
                f"{value_text(line['value'])}",
                at,
                (Evidence(at, f"copied here: {value_text(line['value'])}"),),
            )
