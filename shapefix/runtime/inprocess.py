"""`shapefix.probe(model, batch)`: one step in the current process, and its report."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from shapefix.diagnostics import Diagnostic
from shapefix.report import full
from shapefix.report.paint import painter
from shapefix.report.view import View, visible
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.observations import Observations, ObservedModule
from shapefix.runtime.report import text_report
from shapefix.runtime.report.formatting import (
    arguments_text,
    counted,
    duration,
    listed,
    parameters_text,
    quantity,
    value_text,
)
from shapefix.runtime.report.module_tree import FoldedCalls, folded_calls

if TYPE_CHECKING:
    from shapefix.runtime.agent.single_step import StepResult

_WIDTH = 100
_ROWS = 200
_COLUMNS = ("module", "in", "out", "parameters", "time")
_STYLE = "text-align:left; font-family:monospace; white-space:pre"


@dataclass(frozen=True)
class ProbeReport:
    """The report of one forward and backward.

    findings are like those of `check`. error is the exception that the model or the loss raised; loss is its
    value, or None without a loss. A notebook shows the report as a table; `print` shows it as text.
    """

    findings: tuple[Diagnostic, ...]
    error: Exception | None
    loss: float | None
    observed: Observations
    _facts: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        view = _view()
        rows = list(text_report.model_lines(self.observed, view.relative, _WIDTH))
        text = painter(False)(rows)
        text += "".join(f"{visible(name)} {visible(fact)}\n" for name, fact in self._facts)
        return f"{text}\n{self._found(view)}" if text else self._found(view)

    def __repr__(self) -> str:
        return f"<shapefix report: {self._summary()}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='{_STYLE}'>{each}</th>" for each in _COLUMNS)
        calls = chain.from_iterable(_rows(each) for each in self.observed.modules)
        rows = [row for row, _ in zip(calls, range(_ROWS), strict=False)]
        table = "".join(
            "<tr>" + "".join(f"<td style='{_STYLE}'>{escape(visible(cell))}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        known = (*_parameters(self.observed), *self._facts)
        facts = "".join(f"<div>{escape(visible(name))} {escape(visible(fact))}</div>" for name, fact in known)
        found = f"<pre>{escape(self._found(_view()))}</pre>"
        return f"<div><table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>{facts}{found}</div>"

    def _found(self, view: View) -> str:
        if self.findings:
            return "".join(full.render(self.findings, (), view))
        if self.error is None:
            return "Nothing found.\n"
        return visible(f"{type(self.error).__name__}: {self.error}\n", "\n\t")

    def _summary(self) -> str:
        summary = counted(len(self.findings), "finding") if self.findings else "nothing found"
        return summary if self.loss is None else f"{summary}, loss {self.loss:.4g}"


def probe(model: Any, batch: Any, loss: Callable[[Any, Any], Any] | str | None = None) -> ProbeReport:
    """Run one forward and backward of a model in this process, and return a report.

    A mapping is passed by its keys, a tuple or list by position, anything else as one argument. loss is a
    function of the output and the batch, the name of a key or attribute of the output, or None for
    `output.loss` or a scalar among the outputs. With a function, parts of the batch that forward has no
    parameter for are not passed to it. An exception of the model is in the report, and is not raised.
    Parameters, buffers, gradients, the modes of modules, random numbers and the batch are restored. Raises
    TypeError for an object that is not a model.
    """
    from shapefix.runtime.agent.single_step import run_step

    if not callable(getattr(model, "named_parameters", None)):
        raise TypeError(f"shapefix.probe expects a torch.nn.Module and a batch, not {type(model).__name__}")
    return report_of(run_step(model, batch, loss))


def report_of(result: StepResult) -> ProbeReport:
    """Return the report of a watched step."""
    observed = Observations(result.lines)
    found = collect_findings(observed)
    return ProbeReport(found.diagnostics, result.error, result.loss, observed, tuple(_facts(result)))


def _facts(result: StepResult) -> Iterator[tuple[str, str]]:
    given, missing = result.with_gradient, result.without_gradient
    if result.loss is not None:
        yield "loss", f"{result.loss:.4g}"
    elif result.error is None:
        yield "loss", "none, forward only; pass loss=…" if given is None else "not a scalar"
    if given is not None and missing is not None:
        without = f"; without: {listed(missing)}" if missing else ""
        yield "gradients", f"for {len(given)} of {len(given) + len(missing)} parameters{without}"
    if result.changed:
        yield "changed", f"{listed(result.changed)}: the model writes to its own parameters"


def _rows(module: ObservedModule) -> Iterator[tuple[str, ...]]:
    yield from _calls(FoldedCalls(module, module.name, 1, module.seconds, module.parameters), 0)


def _calls(calls: FoldedCalls, depth: int) -> Iterator[tuple[str, ...]]:
    module = calls.first
    out = value_text(module.out) if module.out is not None else "raised"
    parameters = quantity(calls.parameters) if calls.parameters else ""
    seconds = duration(calls.seconds) if calls.seconds is not None else ""
    yield "  " * depth + calls.title, arguments_text(module.input), out, parameters, seconds
    for each in folded_calls(module):
        yield from _calls(each, depth + 1)


def _parameters(observed: Observations) -> Iterator[tuple[str, str]]:
    """The parameters of the outermost modules."""
    for each in observed.modules:
        if each.model is not None:
            yield each.type, parameters_text(each.model, each.multiplications)


def _view() -> View:
    return View(os.getcwd(), _WIDTH, False, False, _source)  # noqa: PTH109


def _source(path: str) -> str | None:
    """The text of a file, or of the notebook cell with this name."""
    return "".join(linecache.getlines(path)) or None
