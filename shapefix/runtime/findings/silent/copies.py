"""Copies that a model makes at each call, where they are worth a line."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.exception_report import named
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.report.formatting import size, words

_LARGE = 1 << 20


@detector
def _moved(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("moved"):
        at, attribute = span(line["called"]), line["attribute"]
        if at is None or (attribute is None and line["bytes"] < _LARGE):
            continue
        what = f"`self.{attribute}`" if attribute else words(line["value"])
        advice = "; a buffer (`register_buffer`) goes there with the model" if attribute else ""
        yield Seen(
            "copy-to-device",
            f"{what} ({size(line['bytes'])}) goes from {line['value']['device']} to {line['to']} "
            f"at each call of {named(line['module'])}{advice}",
            at,
            (Evidence(at, f"copied here: {words(line['value'])}"),),
        )


@detector
def _laid_out(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("laid out"):
        at = span(line["called"])
        if at is not None:
            yield Seen(
                "large-copy",
                f"`{line['by']}` copies {size(line['bytes'])} at each call of {named(line['module'])}: "
                f"{words(line['value'])}",
                at,
                (Evidence(at, f"copied here: {words(line['value'])}"),),
            )
