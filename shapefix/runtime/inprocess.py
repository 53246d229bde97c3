"""`shapefix.probe(model, batch)`: one step in the process of who asks, and the report that it returns."""

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
from shapefix.rulebook.pages import names_and_severities
from shapefix.runtime.findings.collect import findings
from shapefix.runtime.observations import Module, Observations
from shapefix.runtime.report import text_report
from shapefix.runtime.report.formatting import arguments, duration, words

if TYPE_CHECKING:
    from shapefix.runtime.agent.single_step import Once

_WIDTH = 100
_NAMES = 6
_ROWS = 200
_STYLE = "text-align:left; font-family:monospace; white-space:pre"


@dataclass(frozen=True)
class Report:
    """What one forward and backward has shown.

    findings are faults, as those of `check`; error is the exception that the model or the loss has raised;
    loss is its value, None where there is none. A notebook shows the report as a table, print as text.
    """

    findings: tuple[Diagnostic, ...]
    error: Exception | None
    loss: float | None
    observed: Observations
    _facts: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        view = _view()
        rows = list(text_report.modules(self.observed, view.relative, _WIDTH))
        text = painter(False)([[(visible(each), style) for each, style in row] for row in rows])
        text += "".join(f"{name} {fact}\n" for name, fact in self._facts)
        return f"{text}\n{self._found(view)}" if text else self._found(view)

    def __repr__(self) -> str:
        return f"<shapefix report: {self._counted()}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='{_STYLE}'>{each}</th>" for each in ("module", "in", "out", "time"))
        calls = chain.from_iterable(_calls(each, 0) for each in self.observed.modules)
        rows = [row for row, _ in zip(calls, range(_ROWS), strict=False)]
        table = "".join(
            "<tr>" + "".join(f"<td style='{_STYLE}'>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        facts = "".join(f"<div>{escape(name)} {escape(fact)}</div>" for name, fact in self._facts)
        found = f"<pre>{escape(self._found(_view()))}</pre>"
        return f"<div><table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>{facts}{found}</div>"

    def _found(self, view: View) -> str:
        if self.findings:
            return "".join(full.render(self.findings, (), view))
        return "Nothing found.\n" if self.error is None else f"{type(self.error).__name__}: {self.error}\n"

    def _counted(self) -> str:
        number = len(self.findings)
        said = "nothing found" if not number else f"{number} finding{'' if number == 1 else 's'}"
        return said if self.loss is None else f"{said}, loss {self.loss:.4g}"


def probe(model: Any, batch: Any, loss: Callable[[Any, Any], Any] | str | None = None) -> Report:
    """Call a model with a batch, and backward of its loss, here and now, and report what happened.

    A mapping is handed over by its keys, a tuple or list by position, anything else alone. loss is a function
    of the output and the batch, the name of a key or attribute of the output, or None for `output.loss` or a
    number among the outputs; with a function, what forward does not ask for is left to it. What the model
    raises is in the report, and is not raised. Afterwards everything is as before: parameters, buffers and
    gradients, the modes of modules, random numbers, the batch. Raises TypeError for what is no model.
    """
    from shapefix.runtime.agent.single_step import once

    if not callable(getattr(model, "named_parameters", None)):
        raise TypeError(f"shapefix.probe takes a torch.nn.Module and a batch, not {type(model).__name__}")
    done = once(model, batch, loss)
    observed = Observations(done.lines)
    known = findings(observed, names_and_severities())
    return Report(known.diagnostics, done.error, done.loss, observed, tuple(_facts(done)))


def _facts(done: Once) -> Iterator[tuple[str, str]]:
    if done.loss is not None:
        yield "loss", f"{done.loss:.4g}"
    elif done.error is None:
        yield (
            "loss",
            "none: forward only; name it with loss=…" if done.given is None else "of several elements",
        )
    if done.given is not None and done.missing is not None:
        more = f" and {len(done.missing) - _NAMES} more" if len(done.missing) > _NAMES else ""
        without = f"; without: {', '.join(done.missing[:_NAMES])}{more}" if done.missing else ""
        yield (
            "gradients",
            f"in {len(done.given)} of {len(done.given) + len(done.missing)} parameters{without}",
        )
    if done.changed:
        yield "changed", f"{', '.join(done.changed[:_NAMES])}: the model writes into its own parameters"


def _calls(module: Module, depth: int) -> Iterator[tuple[str, str, str, str]]:
    name = module.name if module.name == module.type else f"{module.name} {module.type}"
    out = words(module.out) if module.out is not None else "raised"
    seconds = duration(module.seconds) if module.seconds is not None else ""
    yield "  " * depth + name, arguments(module.input), out, seconds
    for each in module.children:
        yield from _calls(each, depth + 1)


def _view() -> View:
    return View(os.getcwd(), _WIDTH, False, False, _source)  # noqa: PTH109


def _source(path: str) -> str | None:
    """The text of a file, or of the cell of a notebook that IPython knows by this name."""
    return "".join(linecache.getlines(path)) or None
