"""The JSON document of a run: batches, modules, loss, gradients, memory, and findings.

`probe.schema.json` beside this file is its schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import shapefix
from shapefix.diagnostics import Span
from shapefix.report.json import encodable, finding_entry, place
from shapefix.report.view import View
from shapefix.report.view import json_text as escaped
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.forecast.prediction import (
    MemoryForecast,
    StepPeak,
    accumulation,
    fitting_changes,
)
from shapefix.runtime.observations import Observations, ObservedModule, RaisedException, span
from shapefix.runtime.protocol import (
    AnyLine,
    BackwardLine,
    CallArguments,
    CallSiteLine,
    CallSiteReturnedLine,
    CollectiveLine,
    DescribedValue,
    ForwardReturnedLine,
    GradientsLine,
    LoaderLine,
    LoopTruncatedLine,
    LossCallLine,
    MemoryTimelineLine,
    ScriptLine,
    SkippedMagicLine,
    SourceLine,
    StartLine,
    StepMemoryLine,
    StepTimesLine,
    UploadSkippedLine,
    UserPlace,
    WriteProtectionLine,
)
from shapefix.runtime.report.text_report import end_reason, ending, last_output
from shapefix.runtime.run import ProbeRun

VERSION = 1
"""Increases when a part of the document is removed or changes its meaning, but not when one is added."""

Document = dict[str, Any]

_WIDTH = 110


def document(
    run: ProbeRun,
    arguments: Sequence[str],
    found: ProbeFindings,
    code: int,
    view: View,
    forecast: MemoryForecast | None = None,
) -> Document:
    """The document of a run with its exit code and its forecast.

    Paths are absolute, memory is in bytes, times are in seconds.
    """
    writer = _Writer(run, view)
    whole = writer.document(arguments, found, code)
    return whole | {"forecast": None if forecast is None else writer.forecast(forecast)}


def json_text(document: Document) -> str:
    """A document as JSON, with each short part on one row."""
    whole = _rows(document, 0, ascii_only=False)
    return escaped(whole if encodable(whole) else _rows(document, 0, ascii_only=True)) + "\n"


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
    """Creates the document of one run."""

    def __init__(self, run: ProbeRun, view: View) -> None:
        self._run, self._observed, self._view = run, run.observed, view

    def document(self, arguments: Sequence[str], found: ProbeFindings, code: int) -> Document:
        return {
            "schema_version": VERSION,
            "shapefix": shapefix.__version__,
            "script": self._script(),
            "arguments": list(arguments),
            "exit_code": code,
            "environment": self._environment(),
            "ending": self._ending(),
            "steps": self._observed.steps,
            "loaders": [self._loader(line) for line in self._of(LoaderLine)],
            "batches": [
                {
                    "loader": batch.loader,
                    "number": batch.number,
                    "asked": self._place(batch.requested_at),
                    "value": value_entry(batch.value),
                }
                for batch in self._observed.batches
            ],
            "modules": [self._module(module) for module in self._observed.modules],
            "models": self._models(),
            "losses": [
                {
                    "name": line["name"],
                    "called": self._at(line["called_at"]),
                    "input": _call_entry(line["input"]),
                }
                for line in self._of(LossCallLine)
            ],
            "backward": [self._backward(line) for line in self._of(BackwardLine)],
            "gradients": [_gradients_entry(line) for line in self._of(GradientsLine)],
            "step_times": [_step_times_entry(line) for line in self._of(StepTimesLine)],
            "memory": self._memory(),
            "writes": self._filenames(self._observed.written),
            "refused_writes": self._filenames(self._observed.refused),
            "changed_files": self._filenames(self._observed.changed),
            "deleted_files": self._filenames(self._observed.deleted),
            "write_protection": self._protection(),
            "uploads": [
                {"function": each["function"], "to": each["repository"]}
                for each in self._of(UploadSkippedLine)
            ],
            "exceptions": [self._exception(each) for each in self._observed.exceptions],
            "executed": self._executed(),
            "findings": [finding_entry(each, self._view) for each in found.diagnostics],
            "notes": [finding_entry(each, self._view) for each in found.notes],
            "static": [finding_entry(each, self._view) for each in found.static if each.confirmation],
            "aftermath": None if found.early_stop_artifact is None else found.early_stop_artifact.id,
            "ranks": [self._rank(number, observed) for number, observed in enumerate(self._run.ranks)],
            "not_executed": [
                {"filename": line["file"], "row": line["row"], "text": line["text"]}
                for line in self._of(SkippedMagicLine)
            ],
        }

    def _script(self) -> str:
        """The executed file; for a module, known only after it is found."""
        ran = self._observed.first(ScriptLine)
        return self._view.absolute(ran["file"] if ran else self._run.script)

    def _rank(self, number: int, observed: Observations) -> Document:
        waits, end = observed.waiting, observed.end
        return {
            "rank": number,
            "how": None if end is None else end["how"],
            "steps": observed.steps,
            "collectives": sum(1 for _ in observed.of(CollectiveLine)),
            "waits_at": None if waits is None else waits["name"],
            "at": None if waits is None else self._at(waits["called_at"]),
        }

    def _environment(self) -> Document | None:
        start = self._observed.first(StartLine)
        if start is None:
            return None
        return {name: start[name] for name in ("python", "executable", "torch", "devices")}

    def _ending(self) -> Document:
        run, end = self._run, self._observed.end
        return {
            "how": end_reason(run),
            "text": ending(run, self._view.relative),
            "worked": run.complete and not run.cut_short,
            "cut_short": run.cut_short,
            "at": None if end is None else self._at(end["site"]),
            "process_code": run.process.code,
            "seconds": round(run.process.seconds, 3),
            "shortened": self._observed.first(LoopTruncatedLine) is not None,
            "last_output": last_output(run),
        }

    def _loader(self, line: LoaderLine) -> Document:
        collate = line["collate"]
        return {
            "id": line["id"],
            "constructed": self._at(line["created_at"]),
            "dataset": line["dataset"],
            "length": line["length"],
            "batch_size": line["batch_size"],
            "workers": line["workers"],
            "collate": {
                "name": collate["name"],
                "module": collate["module"],
                "filename": collate["file"],
                "row": collate["row"],
            },
        }

    def _module(self, module: ObservedModule) -> Document:
        return {
            "name": module.name,
            "type": module.type,
            "with_gradient": module.grad_enabled,
            "constructed": self._place(module.constructed_at),
            "called": self._place(module.called_at),
            "variable": module.variable,
            "input": _call_entry(module.input),
            "output": None if module.out is None else value_entry(module.out),
            "seconds": module.seconds,
            "parameters": module.parameters,
            "multiplications": module.multiplications,
            "children": [self._module(each) for each in module.children],
        }

    def _models(self) -> list[Document]:
        """The parameters of the outermost modules, each module once."""
        known = [each for each in self._observed.modules if each.model]
        models = {(each.type, each.model["total"]): each.model for each in known if each.model}
        return [
            {
                "type": kind,
                "parameters": total,
                "trainable": line["trainable"],
                "bytes": line["bytes"],
                "buffer_bytes": line["buffer_bytes"],
            }
            for (kind, total), line in models.items()
        ]

    def _backward(self, line: BackwardLine) -> Document:
        return {
            "value": line["value"],
            "text": line["text"],
            "loss": value_entry(line["loss"]),
            "connected": line["connected"],
            "called": self._at(line["called_at"]),
        }

    def _memory(self) -> Document:
        end = self._observed.end
        return {
            "peak_process": None if end is None else end["peak_process"],
            "peak_cuda": None if end is None else end["peak_cuda"],
            "reserved_cuda": None if end is None else end["reserved_cuda"],
            "steps": [self._step(line) for line in self._of(StepMemoryLine)],
            "timeline": [
                {"of": line["source"], "phase": line["phase"], "samples": line["samples"]}
                for line in self._of(MemoryTimelineLine)
            ],
        }

    def _step(self, line: StepMemoryLine) -> Document:
        """A step on a simulated GPU: the live memory at the peak of each phase."""
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
        """The executed files of the user's, and the executed calls in them."""
        returned = {line["id"] for line in self._of(CallSiteReturnedLine)}
        files = {line["file"]: line["sha256"] for line in self._of(SourceLine)}
        return {
            "files": [
                {"filename": self._view.absolute(path), "sha256": digest} for path, digest in files.items()
            ],
            "reached": [
                {
                    "id": line["id"],
                    "at": self._at(line["site"]),
                    "returned": line["id"] in returned,
                    "outer": line["outer"],
                    "values": line["values"],
                }
                for line in self._of(CallSiteLine)
            ],
            "returned": [
                {
                    "filename": self._view.absolute(line["file"]),
                    "row": line["row"],
                    "function": line["function"],
                }
                for line in self._of(ForwardReturnedLine)
            ],
        }

    def forecast(self, forecast: MemoryForecast) -> Document:
        """The memory of a step on a GPU, the batches tried, and possible savings."""
        fit, setting, batch = forecast.fit, forecast.setting, forecast.peak.batch
        largest = None if fit is None else fit.largest
        keeps = None
        if largest is not None and batch is not None and not forecast.fits:
            size, steps = accumulation(batch, largest)
            keeps = {"batch": size, "steps": steps}
        return {
            "vram": forecast.vram,
            "budget": forecast.budget,
            "fits": forecast.fits,
            "peak": self._measured(forecast.peak),
            "batch_set_by": None if setting is None else setting.name,
            "tried": [] if fit is None else [self._measured(each) for each in fit.tried.values()],
            "largest_batch": largest,
            "too_large_batch": None if fit is None else fit.too_large,
            "accumulation": keeps,
            "savings": [
                {"what": each.what, "text": each.label, "peak": self._measured(each.peak)}
                for each in forecast.savings
            ],
            "fitting_changes": [
                {"text": each.text, "code": each.code or None, "reserved": each.reserved}
                for each in fitting_changes(forecast)
            ],
        }

    def _measured(self, peak: StepPeak) -> Document:
        return {
            "batch": peak.batch,
            "live": peak.live,
            "reserved": peak.reserved,
            "by_kind": dict(peak.by_kind),
            "phase": peak.phase,
            "module": peak.module,
            "operation": peak.operation,
            "at": self._place(peak.site),
        }

    def _protection(self) -> Document | None:
        line = self._observed.first(WriteProtectionLine)
        if line is None:
            return None
        compared = self._observed.compared
        return {
            "method": line["method"],
            "folders": line["roots"],
            "reason": line["reason"],
            "compared": compared,
        }

    def _filenames(self, paths: Sequence[str]) -> list[Document]:
        return [{"filename": self._view.absolute(path)} for path in paths]

    def _exception(self, raised: RaisedException) -> Document:
        return {
            "id": raised.id,
            "left": raised.origin,
            "type": raised.type,
            "message": raised.message,
            "causes": [{"type": kind, "message": message} for kind, message in raised.causes],
            "stack": [place(each, self._view) for each in raised.stack],
            "swallowed": raised.swallowed,
            "swallowed_at": self._place(raised.handler),
            "ended_the_script": raised.ended_script,
        }

    def _of(self, line_type: type[AnyLine]) -> Iterator[AnyLine]:
        return self._observed.of(line_type)

    def _at(self, written: UserPlace | None) -> Document | None:
        return self._place(span(written))

    def _place(self, known: Span | None) -> Document | None:
        return None if known is None else place(known, self._view)


def value_entry(described: DescribedValue) -> Document:
    """A value: its kind and its type; for a tensor also sizes, strides, dtype and device."""
    kind = described["kind"]
    entry: Document = {"kind": kind, "type": described["type"]}
    if kind in ("tensor", "array"):
        entry |= {"dtype": described["dtype"], "size": described["size"]}
    if kind == "tensor":
        entry |= {
            "stride": described.get("stride"),
            "contiguous": described.get("contiguous"),
            "layout": described.get("layout", "torch.strided"),
            "device": described["device"],
            "requires_grad": described["requires_grad"],
        }
    for name in ("text", "length", "lengths", "ragged"):
        if name in described:
            entry[name] = described[name]
    items = described.get("items")
    if isinstance(items, Mapping):
        entry["items"] = {name: value_entry(each) for name, each in items.items()}
    elif items is not None:
        entry["items"] = [value_entry(each) for each in items]
    return entry


def _call_entry(described: CallArguments) -> Document:
    return {
        "args": [value_entry(each) for each in described["args"]],
        "kwargs": {name: value_entry(each) for name, each in described["kwargs"].items()},
    }


def _gradients_entry(line: GradientsLine) -> Document:
    return {
        "optimizer": line["optimizer"],
        "parameters_with": line["with_gradient"],
        "parameters_without": line["without_gradient"],
        "frozen": line["frozen"],
        "without": line["missing"],
        "not_finite": line["not_finite"],
        "norm": line["norm"],
        "norms": line["norms"],
    }


def _step_times_entry(line: StepTimesLine) -> Document:
    return {
        "step": line["step"],
        "seconds": line["seconds"],
        "data": line["data"],
        "forward": line["forward"],
        "backward": line["backward"],
        "optimizer": line["optimizer"],
        "rows": line["rows"],
    }
