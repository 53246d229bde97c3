"""The common part of the callbacks of Lightning and transformers."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import ProbeReport


class FirstBatchCallback:
    """Watches the first training batch, and logs its sizes, gradients and findings.

    html is a file for the report. stop ends the training if there are findings. ignore are codes or names of
    rules. report is that of the batch, None before it. Only the first process reports.
    """

    def __init__(
        self,
        *,
        html: str | os.PathLike[str] | None = None,
        stop: bool = False,
        ignore: Collection[str] = (),
    ) -> None:
        # A script that only imports its callback does not wait for the probe.
        from shapefix.runtime.first_batch import FirstBatchProbe

        super().__init__()
        self._stop = stop
        self._probe = FirstBatchProbe(None if html is None else os.fspath(html), ignore)

    @property
    def report(self) -> ProbeReport | None:
        return self._probe.report

    @property
    def _must_stop(self) -> bool:
        return self._stop and self._probe.has_findings
