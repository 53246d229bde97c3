"""The report of the first training batch of a framework's loop, for the callbacks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapefix.diagnostics import Diagnostic
from shapefix.runtime.inprocess import ProbeReport, report_of
from shapefix.runtime.protocol import BackwardLine

if TYPE_CHECKING:
    from shapefix.runtime.agent.first_step import FirstStep
    from shapefix.runtime.agent.single_step import StepResult

_LOGGER = logging.getLogger("shapefix")


class FirstBatchProbe:
    """Watches the first batch of a training, and reports it.

    html is a file for the report; ignore are codes or names of rules. report is known after the batch.
    """

    def __init__(self, html: str | None, ignore: Collection[str]) -> None:
        self._html = html
        self._ignore = ignore
        self._step: FirstStep | None = None
        self.report: ProbeReport | None = None

    @property
    def has_findings(self) -> bool:
        return self.report is not None and bool(self.report.findings)

    def start(self, model: Any, within: Sequence[tuple[type, str]] = ()) -> None:
        """Watch from now on, the first time only. A compiled model is left alone.

        within are methods around the step, whose exceptions end the watch.
        """
        if self._step is not None:
            return
        from shapefix.runtime.agent.first_step import FirstStep

        self._step = FirstStep(model, self._ended, within)
        if any("torch._dynamo" in type(each).__module__ for each in model.modules()):
            _LOGGER.info("shapefix: the model is compiled, and its first batch not watched")
            return
        self._step.start()

    def end(self, error: BaseException | None = None) -> None:
        """End the watch, if the batch had no backward."""
        if self._step is not None:
            self._step.end(error if isinstance(error, Exception) else None)

    def _ended(self, result: StepResult) -> None:
        report = report_of(result)
        backward = report.observed.first(BackwardLine)
        found = tuple(each for each in report.findings if not {each.code, each.name} & set(self._ignore))
        self.report = replace(
            report, findings=found, loss=None if backward is None else backward.get("value")
        )
        self._log(self.report)

    def _log(self, report: ProbeReport) -> None:
        """Log the report: findings as a warning, since Python shows warnings without any configuration."""
        if report.findings:
            _LOGGER.warning("shapefix, first batch:\n%s", report)
        else:
            _LOGGER.info("shapefix, first batch:\n%s", report)
        if self._html is not None:
            try:
                Path(self._html).write_text(_page(report), "utf-8", "backslashreplace")
            except OSError as error:
                _LOGGER.warning("shapefix: %s cannot be written: %s", self._html, error.strerror)
        wandb = sys.modules.get("wandb")
        run = getattr(wandb, "run", None)
        if wandb is not None and run is not None:
            columns = ["code", "severity", "place", "message"]
            table = wandb.Table(columns=columns, data=[_row(each) for each in report.findings])
            page = wandb.Html(_page(report))
            run.log({"shapefix/findings": table, "shapefix/report": page}, commit=False)


def _row(finding: Diagnostic) -> list[str]:
    place = f"{finding.span.path}:{finding.span.row}"
    return [finding.code, finding.severity.value, place, finding.text]


def _page(report: ProbeReport) -> str:
    return f"<!doctype html>\n<meta charset='utf-8'>\n<title>shapefix</title>\n{report._repr_html_()}\n"
