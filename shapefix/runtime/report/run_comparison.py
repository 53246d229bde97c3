"""Compare a run with the JSON document of an earlier one: sizes, parameters, loss, time, memory, findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from shapefix.runtime.report.formatting import Line, byte_size, dtype_and_size, duration, quantity
from shapefix.runtime.report.json_document import VERSION, Document

_SIZES = 8
_SAME = 1e-3
_TIME, _MEMORY = 0.1, 0.05
_SHORT = 1e-3  # seconds; shorter differences are noise


class UnusableRunDocument(Exception):
    """The file is not a document of a probe run; the message has the reason."""


@dataclass(frozen=True)
class RunSummary:
    """The facts of a run for a comparison; None or empty if not known.

    sizes are those of the first batches and of the modules, by name; findings are counted by code and text.
    """

    steps: int
    sizes: Mapping[str, str]
    parameters: Mapping[str, tuple[int, int]]
    loss: float | None
    norm: float | None
    step_seconds: float | None
    memory: int | None
    findings: Mapping[str, int]


def read_summary(path: str) -> RunSummary:
    """The summary of the document in a file. Raises UnusableRunDocument."""
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise UnusableRunDocument(error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise UnusableRunDocument("not a JSON document of `shapefix probe --output-format json`") from error
    if not isinstance(document, dict) or document.get("schema_version") != VERSION:
        raise UnusableRunDocument("not a document of `shapefix probe --output-format json` of this version")
    try:
        return summary(document)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise UnusableRunDocument("damaged, or of an older shapefix; run the probe again") from error


def summary(document: Document) -> RunSummary:
    """The summary of the document of a run."""
    backward, times, memory = document["backward"], document["step_times"], document["memory"]
    norms = [each["norm"] for each in document["gradients"] if each["norm"] is not None]
    peak = memory["peak_cuda"] or memory["peak_process"]
    return RunSummary(
        int(document["steps"]),
        dict((*_batch_sizes(document), *_module_sizes(document))),
        {str(each["type"]): (int(each["parameters"]), int(each["trainable"])) for each in document["models"]},
        None if not backward or backward[0]["value"] is None else float(backward[0]["value"]),
        float(norms[0]) if norms else None,
        median(float(each["seconds"]) for each in times[1:] or times) if times else None,
        None if peak is None else int(peak),
        Counter(f"{each['code']} {each['message']}" for each in document["findings"]),
    )


def _batch_sizes(document: Document) -> Iterator[tuple[str, str]]:
    for batch in document["batches"]:
        if batch["number"] == 1:
            items = batch["value"].get("items") or {}
            parts = items.items() if isinstance(items, dict) else enumerate(items)
            for name, value in parts:
                yield f"batch of loader {batch['loader']}, {name}", _size(value)


def _module_sizes(document: Document) -> Iterator[tuple[str, str]]:
    for module in document["modules"]:
        if module["with_gradient"]:
            yield from _inner_sizes(module, str(module["type"]))


def _inner_sizes(module: Document, root: str) -> Iterator[tuple[str, str]]:
    given = ", ".join(_size(each) for each in (*module["input"]["args"], *module["input"]["kwargs"].values()))
    returned = "?" if module["output"] is None else _size(module["output"])
    name = root if module["name"] == root else f"{root}.{module['name']}"
    yield f"{name} {module['type']}", f"{given} -> {returned}"
    for each in module["children"]:
        yield from _inner_sizes(each, root)


def _size(value: Any) -> str:
    if value.get("size") is not None:
        return dtype_and_size(value)
    items = value.get("items")
    inside = list(items.values()) if isinstance(items, dict) else items
    if not inside:
        return str(value["type"])
    return f"{value['type']}({', '.join(_size(each) for each in inside)})"


def comparison_lines(before: RunSummary, now: RunSummary, name: str) -> Iterator[Line]:
    """The differences of a run to an earlier one in the file name, a row each."""
    rows = list(_differences(before, now))
    if not rows:
        known = "sizes, parameters, loss, gradients, time (10 %), memory (5 %) and findings are the same"
        yield [("compared", "name"), (f" with {name}: {known}", "code")]
        return
    yield [("compared", "name"), (f" with {name}", "code")]
    room = max(len(what) for what, _ in rows)
    for what, text in rows:
        yield [(f"  {what:<{room}}  ", "step"), (text, "code")]


def _differences(before: RunSummary, now: RunSummary) -> Iterator[tuple[str, str]]:
    if before.steps != now.steps:
        yield "steps", f"{before.steps} -> {now.steps}"
    for model in dict.fromkeys((*before.parameters, *now.parameters)):
        was, is_now = before.parameters.get(model), now.parameters.get(model)
        if was != is_now:
            yield "parameters", f"{model}: {_count(was)} -> {_count(is_now)}"
    yield from _changed_sizes(before.sizes, now.sizes)
    yield from _number("loss", before.loss, now.loss, _SAME, lambda each: f"{each:.4g}")
    yield from _number("gradient norm", before.norm, now.norm, _SAME, lambda each: f"{each:.3g}")
    slow = max(before.step_seconds or 0.0, now.step_seconds or 0.0)
    share = max(_TIME, _SHORT / slow) if slow else _TIME
    yield from _number("time of a step", before.step_seconds, now.step_seconds, share, duration)
    yield from _number("peak memory", before.memory, now.memory, _MEMORY, lambda each: byte_size(int(each)))
    for text, count in now.findings.items():
        if count > before.findings.get(text, 0):
            yield "new finding", text
    for text, count in before.findings.items():
        if count > now.findings.get(text, 0):
            yield "finding gone", text


def _changed_sizes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    changed = [name for name in now if name in before and before[name] != now[name]]
    added, removed = (
        [name for name in now if name not in before],
        [name for name in before if name not in now],
    )
    for name in changed[:_SIZES]:
        yield "sizes", f"{name}: {before[name]}, now {now[name]}"
    if len(changed) > _SIZES:
        yield "sizes", f"… and {len(changed) - _SIZES} more"
    for what, names in (("added", added), ("removed", removed)):
        if names:
            more = f" and {len(names) - _SIZES} more" if len(names) > _SIZES else ""
            yield what, ", ".join(names[:_SIZES]) + more


def _number(
    what: str, before: float | None, now: float | None, share: float, show: Callable[[float], str]
) -> Iterator[tuple[str, str]]:
    """A changed number, if it changed by more than a share of it."""
    if before is None or now is None:
        if before is not now:
            yield (
                what,
                f"{'none' if before is None else show(before)} -> {'none' if now is None else show(now)}",
            )
        return
    if abs(now - before) > share * max(abs(before), abs(now)):
        relative = f" ({100 * (now - before) / before:+.0f} %)" if before > 0 else ""
        yield what, f"{show(before)} -> {show(now)}{relative}"


def _count(parameters: tuple[int, int] | None) -> str:
    if parameters is None:
        return "none"
    total, trainable = parameters
    return quantity(total) + ("" if total == trainable else f" ({quantity(trainable)} trainable)")
