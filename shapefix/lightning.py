"""`ShapefixCallback` for Lightning: the report of the first training batch."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from shapefix.runtime.first_batch_callback import FirstBatchCallback

# Both packages exist, and a trainer accepts callbacks of its own one only.
_IS_OLD_NAME = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
_Callback: Any = import_module("pytorch_lightning" if _IS_OLD_NAME else "lightning.pytorch").Callback


class LightningProbeCallback(FirstBatchCallback, _Callback):  # type: ignore[misc]
    """A callback with the report of the first training batch; see FirstBatchCallback for its options."""

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Begin to watch."""
        if trainer.is_global_zero:
            self._probe.start(pl_module)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End the watch; stop the training if there are findings and stop is set."""
        self._probe.end()
        if self._must_stop:
            trainer.should_stop = True

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the watch, and report the exception."""
        self._probe.end(exception)


ShapefixCallback = LightningProbeCallback
