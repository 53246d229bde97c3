"""`ShapefixCallback` for Lightning: the report of the first training batch."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import ProbeReport

# Both packages exist, and a trainer accepts callbacks of its own one only.
_IS_OLD_NAME = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
_Callback: Any = import_module("pytorch_lightning" if _IS_OLD_NAME else "lightning.pytorch").Callback


class LightningProbeCallback(_Callback):  # type: ignore[misc]
    """Watches the first training batch, and logs its sizes, gradients and findings.

    html is a file for the report. stop ends the training if there are findings. ignore are codes or names of
    rules. report is that of the batch, None before it. Only the first rank reports.
    """

    def __init__(
        self,
        *,
        html: str | os.PathLike[str] | None = None,
        stop: bool = False,
        ignore: Collection[str] = (),
    ) -> None:
        from shapefix.runtime.first_batch import FirstBatchProbe

        super().__init__()
        self._stop = stop
        self._probe = FirstBatchProbe(None if html is None else os.fspath(html), ignore)

    @property
    def report(self) -> ProbeReport | None:
        return self._probe.report

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Begin to watch."""
        if trainer.is_global_zero:
            self._probe.start(pl_module)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End the watch; stop the training if there are findings and stop is set."""
        self._probe.end()
        if self._stop and self._probe.has_findings:
            trainer.should_stop = True

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the watch, and report the exception."""
        self._probe.end(exception)


ShapefixCallback = LightningProbeCallback
