"""Faults of LightningModules in `Trainer.fit`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place, dotted_name, nodes
from shapefix.interpreter.values import ClassValue
from shapefix.light_dataclasses import dataclass

HOOKS = {
    f"{stage}_epoch_end": f"on_{name}_epoch_end"
    for stage, name in (("training", "train"), ("validation", "validation"), ("test", "test"))
}
"""Hooks that Lightning 2.0 rejects, with those of newer versions."""


WITHOUT_LOG = frozenset(
    {
        "configure_optimizers",
        "on_fit_end",
        "on_fit_start",
        "on_predict_batch_end",
        "on_predict_batch_start",
        "on_predict_end",
        "on_predict_epoch_end",
        "on_predict_epoch_start",
        "on_predict_start",
        "on_test_end",
        "on_train_end",
        "on_validation_end",
        "predict_step",
    }
)
"""Hooks without `self.log`."""


ARGUMENTS = {
    **{
        f"on_{stage}_{part}": ()
        for stage in ("fit", "train", "validation", "test", "predict")
        for part in ("start", "end", "epoch_start", "epoch_end")
        if not (stage == "fit" and part.startswith("epoch"))
    },
    "on_after_backward": (),
    "on_before_backward": ("loss",),
    "on_before_optimizer_step": ("optimizer",),
    "on_before_zero_grad": ("optimizer",),
    "on_train_batch_start": ("batch", "batch_idx"),
    "on_train_batch_end": ("outputs", "batch", "batch_idx"),
}
"""Hooks of Lightning 2.0 with the names of the arguments that they always get."""


class StepFault(Enum):
    """Fault of a method of a LightningModule."""

    HOOK = "hook"
    ARGUMENTS = "arguments"
    INDEX = "index"
    OPTIMIZERS = "optimizers"
    MANUAL = "manual"
    NOTHING = "nothing"
    KEYS = "keys"
    COLLECTED = "collected"
    UNRETURNED = "unreturned"
    LOGGED = "logged"
    IDLE = "idle"
    MONITOR = "monitor"
    IGNORED_KEY = "ignored key"
    BARE_PAIR = "bare pair"
    UNSAVED = "unsaved"


@dataclass(frozen=True, eq=False, slots=True)
class LightningStepFound(Event):
    """A method of a LightningModule with a fault; the place is the part of it to show.

    names are the arguments of a constructor that no checkpoint has.
    """

    fault: StepFault
    owner: ClassValue
    method: cst.FunctionDef
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class MetricUnlogged(Event):
    """Callback with a value never logged by the model; the place is the creation of the callback.

    kind is the class of the callback, metric the name of the value; logged are the calls of `self.log`.
    """

    kind: str
    metric: str
    logged: tuple[Place, ...]


def logged_losses(step: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Yield the values logged under the name of a loss: `self.log("train/loss", outputs.loss)`."""
    for node in nodes(step.body):
        if isinstance(node, cst.Call) and dotted_name(node.func) == "self.log" and len(node.args) > 1:
            name, value = node.args[0].value, node.args[1]
            text = name.evaluated_value if isinstance(name, cst.SimpleString) else ""
            if isinstance(text, str) and "loss" in text.lower() and value.keyword is None and not value.star:
                yield value.value
