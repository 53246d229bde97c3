"""`ShapefixCallback` for the Trainer of transformers: the report of the first training batch."""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import ProbeReport

_TRANSFORMERS: Any = import_module("transformers")
_TrainerCallback: Any = _TRANSFORMERS.TrainerCallback


class TrainerProbeCallback(_TrainerCallback):  # type: ignore[misc]
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
        from shapefix.runtime.first_batch import FirstBatchProbe

        super().__init__()
        self._stop = stop
        self._probe = FirstBatchProbe(None if html is None else os.fspath(html), ignore)

    @property
    def report(self) -> ProbeReport | None:
        return self._probe.report

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to watch."""
        if state.is_world_process_zero and kwargs.get("model") is not None:
            self._probe.start(kwargs["model"], [(_TRANSFORMERS.Trainer, "training_step")])

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the watch after the first of several accumulated batches."""
        self._probe.end()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the watch; stop the training if there are findings and stop is set."""
        self._probe.end()
        if self._stop and self._probe.has_findings:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the watch of a training without a step."""
        self._probe.end()


ShapefixCallback = TrainerProbeCallback
