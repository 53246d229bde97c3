"""What a run was, as one JSON document: the batches, the modules, loss, gradients, memory, and the findings.

`probe.schema.json` beside this file says what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import shapefix
from shapefix.diagnostics import Span
from shapefix.report.json import encodable, finding_entry, place
from shapefix.report.view import View
from shapefix.runtime.findings.collect import Found
from shapefix.runtime.forecast.prediction import Forecast, Measured, accumulation
from shapefix.runtime.observations import Failure, Module, Observations, Value, span
from shapefix.runtime.report.text_report import Run, ending, how

VERSION = 1
"""Rises when something in the document gets another meaning, or goes; what is new leaves it as it is."""

Document = dict[str, Any]

_WIDTH = 110


def document(
    run: Run, arguments: Sequence[str], found: Found, code: int, view: View, foretold: Forecast | None = None
) -> Document:
    """The document of a run that ends with an exit code, and of what it has foretold.

    Paths are absolute, memory is in bytes, times are in seconds.
    """
    writer = _Writer(run, view)
    told = writer.document(arguments, found, code)
    return told | {"forecast": None if foretold is None else writer.forecast(foretold)}


def text(told: Document) -> str:
    """A document in rows: each part on one row where it is short enough."""
    whole = _rows(told, 0, ascii_only=False)
    return (whole if encodable(whole) else _rows(told, 0, ascii_only=True)) + "\n"


def _rows(part: object, depth: int, ascii_only: bool) -> str:
    if isinstance(part, dict):
        left, right = "{", "}"
        parts = [
            f"{json.dumps(name, ensure_ascii=ascii_only)}: {_rows(each, depth + 1, ascii_only)}"
            for name, each in part.items()
        ]
    elif isinstance(part, list):
        left, right, parts = "[", "]", [_rows(each, depth + 1, ascii_only) for each in part]
    else:
        return json.dumps(part, ensure_ascii=ascii_only)
    row = left + ", ".join(parts) + right
    if len(row) <= max(_WIDTH - 2 * depth, 40) and "\n" not in row:
        return row
    inner = "\n" + "  " * (depth + 1)
    return left + inner + f",{inner}".join(parts) + "\n" + "  " * depth + right


class _Writer:
    """Writes the document of one run."""

    def __init__(self, run: Run, view: View) -> None:
        self._run, self._observed, self._view = run, run.observed, view

    def document(self, arguments: Sequence[str], found: Found, code: int) -> Document:
        return {
            "schema_version": VERSION,
            "shapefix": shapefix.__version__,
            "script": self._script(),
            "arguments": list(arguments),
            "exit_code": code,
            "environment": self._environment(),
            "ending": self._ending(),
            "steps": self._observed.steps,
            "loaders": [self._loader(line) for line in self._observed.of("loader")],
            "batches": [
                {
                    "loader": batch.loader,
                    "number": batch.number,
                    "asked": self._place(batch.asked),
                    "value": value(batch.value),
                }
                for batch in self._observed.batches
            ],
            "modules": [self._module(module) for module in self._observed.modules],
            "losses": [
                {"name": line["name"], "called": self._at(line["called"]), "input": _call(line["input"])}
                for line in self._observed.of("loss")
            ],
            "backward": [self._backward(line) for line in self._observed.of("backward")],
            "gradients": [_gradients(line) for line in self._observed.of("gradients")],
            "memory": self._memory(),
            "writes": self._filenames(self._observed.written),
            "refused_writes": self._filenames(self._observed.refused),
            "changed_files": self._filenames(self._observed.changed),
            "uploads": [{"function": each["function"], "to": each["to"]} for each in self._of("upload")],
            "exceptions": [self._exception(failure) for failure in self._observed.failures],
            "executed": self._executed(),
            "findings": [finding_entry(each, self._view) for each in found.diagnostics],
            "notes": [finding_entry(each, self._view) for each in found.notes],
            "aftermath": None if found.aftermath is None else found.aftermath.number,
            "ranks": [self._rank(number, observed) for number, observed in enumerate(self._run.ranks)],
            "not_executed": [
                {"filename": line["file"], "row": line["row"], "text": line["text"]}
                for line in self._of("left out")
            ],
        }

    def _script(self) -> str:
        """The file that was run: that of a module is known once it was found."""
        ran = self._observed.first("script")
        return self._view.absolute(ran["file"] if ran else self._run.script)

    def _rank(self, number: int, observed: Observations) -> Document:
        waits, end = observed.waiting, observed.end
        return {
            "rank": number,
            "how": None if end is None else end["how"],
            "steps": observed.steps,
            "collectives": sum(1 for _ in observed.of("collective")),
            "waits_at": None if waits is None else waits["name"],
            "at": None if waits is None else self._at(waits["called"]),
        }

    def _environment(self) -> Document | None:
        start = self._observed.first("start")
        if start is None:
            return None
        return {name: start[name] for name in ("python", "executable", "torch", "devices")}

    def _ending(self) -> Document:
        run, end = self._run, self._observed.end or {}
        return {
            "how": how(run),
            "text": ending(run, self._view.relative),
            "worked": run.complete,
            "at": self._at(end.get("site")),
            "process_code": run.ended.code,
            "seconds": round(run.ended.seconds, 3),
            "shortened": self._observed.first("shortened") is not None,
            "last_output": run.ended.output.strip().splitlines()[-12:],
        }

    def _loader(self, line: Mapping[str, Any]) -> Document:
        collate = line["collate"]
        return {
            "id": line["id"],
            "constructed": self._at(line["made"]),
            "dataset": line["dataset"],
            "length": line["length"],
            "batch_size": line["batch_size"],
            "workers": line["workers"],
            "collate": {
                "name": collate["name"],
                "module": collate["module"],
                "filename": collate.get("file"),
                "row": collate.get("row"),
            },
        }

    def _module(self, module: Module) -> Document:
        return {
            "name": module.name,
            "type": module.type,
            "with_gradient": module.training,
            "constructed": self._place(module.born),
            "called": self._place(module.called),
            "input": _call(module.input),
            "output": None if module.out is None else value(module.out),
            "seconds": module.seconds,
            "children": [self._module(each) for each in module.children],
        }

    def _backward(self, line: Mapping[str, Any]) -> Document:
        return {
            "value": line["value"],
            "text": line["text"],
            "loss": value(line["loss"]),
            "connected": line["connected"],
            "called": self._at(line["called"]),
        }

    def _memory(self) -> Document:
        end = self._observed.end or {}
        return {
            "peak_process": end.get("peak_process"),
            "peak_cuda": end.get("peak_cuda"),
            "reserved_cuda": end.get("reserved_cuda"),
            "steps": [self._step(line) for line in self._of("memory")],
            "timeline": [
                {"of": line["of"], "phase": line["phase"], "samples": line["samples"]}
                for line in self._of("timeline")
            ],
        }

    def _step(self, line: Mapping[str, Any]) -> Document:
        """A step on a GPU that is not there: what lives at the peak of each of its phases."""
        peaks = {
            name: {
                "bytes": peak["bytes"],
                "by_kind": peak["by_kind"],
                "module": peak["module"],
                "operation": peak["operation"],
                "at": self._at(peak["site"]),
            }
            for name, peak in line["peaks"].items()
        }
        return {
            "step": line["step"],
            "peaks": peaks,
            "after": line["totals"],
            "peak_reserved": line["reserved"],
        }

    def _executed(self) -> Document:
        """The files of the user's that were run, and the places in them that were reached."""
        passed = {line["id"] for line in self._of("passed")}
        files = {line["file"]: line["sha256"] for line in self._of("source") if "sha256" in line}
        return {
            "files": [
                {"filename": self._view.absolute(path), "sha256": digest} for path, digest in files.items()
            ],
            "reached": [
                {
                    "id": line["id"],
                    "at": self._at(line["site"]),
                    "returned": line["id"] in passed,
                    "outer": line["outer"],
                    "values": line["values"],
                }
                for line in self._of("reached")
            ],
            "returned": [
                {
                    "filename": self._view.absolute(line["file"]),
                    "row": line["row"],
                    "function": line["function"],
                }
                for line in self._of("returned")
            ],
        }

    def forecast(self, foretold: Forecast) -> Document:
        """What a step takes on a GPU, the batches that were tried, and what would save how much."""
        fit, knob, batch = foretold.fit, foretold.knob, foretold.peak.batch
        largest = None if fit is None else fit.largest
        keeps = None
        if largest is not None and batch is not None and not foretold.fits:
            size, steps = accumulation(batch, largest)
            keeps = {"batch": size, "steps": steps}
        return {
            "vram": foretold.vram,
            "budget": foretold.budget,
            "fits": foretold.fits,
            "peak": self._measured(foretold.peak),
            "batch_set_by": None if knob is None else knob.name,
            "tried": [] if fit is None else [self._measured(each) for each in fit.tried.values()],
            "largest_batch": largest,
            "too_large_batch": None if fit is None else fit.too_large,
            "accumulation": keeps,
            "savings": [
                {"what": each.what, "text": each.how, "peak": self._measured(each.peak)}
                for each in foretold.savings
            ],
        }

    def _measured(self, peak: Measured) -> Document:
        return {
            "batch": peak.batch,
            "live": peak.live,
            "reserved": peak.reserved,
            "by_kind": dict(peak.parts),
            "phase": peak.phase,
            "module": peak.module,
            "operation": peak.operation,
            "at": self._place(peak.site),
        }

    def _filenames(self, paths: Sequence[str]) -> list[Document]:
        return [{"filename": self._view.absolute(path)} for path in paths]

    def _exception(self, failure: Failure) -> Document:
        return {
            "id": failure.number,
            "left": failure.where,
            "type": failure.type,
            "message": failure.message,
            "causes": [{"type": kind, "message": message} for kind, message in failure.causes],
            "stack": [place(each, self._view) for each in failure.stack],
            "swallowed": failure.swallowed,
            "swallowed_at": self._place(failure.caught),
            "ended_the_script": failure.ended,
        }

    def _of(self, kind: str) -> Iterator[Mapping[str, Any]]:
        return self._observed.of(kind)

    def _at(self, written: Mapping[str, Any] | None) -> Document | None:
        return self._place(span(written))

    def _place(self, known: Span | None) -> Document | None:
        return None if known is None else place(known, self._view)


def value(described: Value) -> Document:
    """A value: its kind and its type, and of a tensor the sizes, strides, dtype and device."""
    kind = described["is"]
    told: Document = {"kind": kind, "type": described["type"]}
    if kind in ("tensor", "array"):
        told |= {"dtype": described["dtype"], "size": described["size"]}
    if kind == "tensor":
        told |= {
            "stride": described.get("stride"),
            "contiguous": described.get("contiguous"),
            "layout": described.get("layout", "torch.strided"),
            "device": described["device"],
            "requires_grad": described["gradient"],
        }
    for name in ("text", "length", "lengths", "ragged"):
        if name in described:
            told[name] = described[name]
    items = described.get("items")
    if isinstance(items, Mapping):
        told["items"] = {name: value(each) for name, each in items.items()}
    elif items is not None:
        told["items"] = [value(each) for each in items]
    return told


def _call(described: Value) -> Document:
    return {
        "args": [value(each) for each in described["args"]],
        "kwargs": {name: value(each) for name, each in described["kwargs"].items()},
    }


def _gradients(line: Mapping[str, Any]) -> Document:
    return {
        "optimizer": line["optimizer"],
        "parameters_with": line["given"],
        "parameters_without": line["without"],
        "frozen": line["frozen"],
        "without": line["missing"],
        "not_finite": line["not_finite"],
    }
