"""`ShapefixCallback` for the Trainer of transformers: the report of the first training batch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shapefix.runtime.first_batch_callback import FirstBatchCallback

_TRANSFORMERS: Any = import_module("transformers")
_TrainerCallback: Any = _TRANSFORMERS.TrainerCallback


class TrainerProbeCallback(FirstBatchCallback, _TrainerCallback):  # type: ignore[misc]
    """A callback with the report of the first training batch; see FirstBatchCallback for its options."""

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
        if self._must_stop:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the watch of a training without a step."""
        self._probe.end()


ShapefixCallback = TrainerProbeCallback
