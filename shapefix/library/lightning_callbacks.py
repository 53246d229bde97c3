"""Lightning's callbacks with a watched value, compared with the values logged by the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.domains.lightning_steps import MetricUnlogged
from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.classes import is_closed, lineage, member
from shapefix.interpreter.containers import elements
from shapefix.interpreter.modules import Place, dotted_name, nodes
from shapefix.interpreter.values import (
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Unknown,
    Value,
)
from shapefix.library.lightning import TRAINER
from shapefix.library.registry import function
from shapefix.library.signatures import bound
from shapefix.light_dataclasses import dataclass

_STOPPING, _CHECKPOINT = "EarlyStopping", "ModelCheckpoint"
_SIGNATURES = {
    _STOPPING: "monitor, min_delta=0.0, patience=3, verbose=False, mode='min', strict=True",
    _CHECKPOINT: (
        "dirpath=None, filename=None, monitor=None, verbose=False, save_last=None, save_top_k=1, "
        "save_on_exception=False, save_weights_only=False"
    ),
}
_MODULES = {_STOPPING: "early_stopping.", _CHECKPOINT: "model_checkpoint."}
_WITHOUT_METRICS = frozenset(
    {
        *(
            "DeviceStatsMonitor",
            "GradientAccumulationScheduler",
            "LearningRateMonitor",
            "ModelSummary",
            "Timer",
        ),
        *("RichModelSummary", "RichProgressBar", "StochasticWeightAveraging", "TQDMProgressBar"),
    }
)
"""Other callbacks of Lightning: they log nothing to watch."""
_ALWAYS_THERE = frozenset({"epoch", "step"})
"""Values that a ModelCheckpoint has beside the logged ones."""
_MOST_SHOWN = 3


def _constructor(kind: str) -> None:
    def construct(call: Call) -> Value:
        return LibraryObject(
            f"lightning.pytorch.callbacks.{kind}", bound(_SIGNATURES[kind], call.arguments), call.place
        )

    for package in ("lightning.pytorch", "pytorch_lightning"):
        for module in ("", _MODULES[kind]):
            function(f"{package}.callbacks.{module}{kind}")(construct)


for _kind in _SIGNATURES:
    _constructor(_kind)


@dataclass(frozen=True, slots=True)
class _Logged:
    """A value logged by a model: the pattern of its name, and the call."""

    pattern: str
    place: Place


@after_call
def note_unlogged(call: Call, result: Value) -> None:
    """Emit an event for each watched value never logged by the fitted model."""
    if call.name != f"{TRAINER}.fit" or not isinstance(call.receiver, LibraryObject):
        return
    model, callbacks = call.value(0, "model"), elements(call.receiver.arguments.get("callbacks"))
    if not isinstance(model, InstanceValue) or not callbacks or not all(map(_is_known, callbacks)):
        return
    logged = _logged(model)
    if logged is None:
        return
    for callback in callbacks:
        if not isinstance(callback, LibraryObject) or callback.place is None:
            continue
        metric = _watched(callback, model)
        if metric is not None and not any(re.fullmatch(each.pattern, metric) for each in logged):
            kind = callback.kind.rpartition(".")[2]
            shown = tuple(each.place for each in logged[:_MOST_SHOWN])
            call.ev.emit(MetricUnlogged(callback.place, (*call.ev.calls, call.place), kind, metric, shown))


def _is_known(callback: Value) -> bool:
    """Whether a callback is one of Lightning's: others may log values, too."""
    if isinstance(callback, LibraryObject):
        return callback.kind.rpartition(".")[2] in _SIGNATURES
    node = callback.origin.node if isinstance(callback, Unknown) and callback.origin is not None else None
    return isinstance(node, cst.Call) and dotted_name(node.func).rpartition(".")[2] in _WITHOUT_METRICS


def _watched(callback: LibraryObject, model: InstanceValue) -> str | None:
    """Name of the value needed by a callback; None if it needs none, or is not known."""
    fields = callback.arguments
    metric = fields.get("monitor")
    if not isinstance(metric, Constant) or not isinstance(metric.value, str):
        return None
    if callback.kind.endswith(_STOPPING):
        strict = fields.get("strict")
        return metric.value if isinstance(strict, Constant) and strict.value is True else None
    # Without a round of validation there is only a warning.
    validates = isinstance(member(model.cls, "validation_step"), FunctionValue)
    kept = fields.get("save_top_k")
    saves = isinstance(kept, Constant) and kept.value != 0
    return metric.value if validates and saves and metric.value not in _ALWAYS_THERE else None


def _logged(model: InstanceValue) -> list[_Logged] | None:
    """The values logged by the methods of a model; None if some names are not known."""
    if not is_closed(model.cls) or model.open:
        return None
    found: list[_Logged] = []
    for base in (each for each in lineage(model.cls) if isinstance(each, ClassValue)):
        for node in nodes(base.node.body):
            if isinstance(node, cst.Attribute) and node.attr.value in ("log", "log_dict"):
                if dotted_name(node.value) not in ("self", "torch", "math", "np", "numpy"):
                    return None
            if not isinstance(node, cst.Call):
                continue
            name = dotted_name(node.func)
            if name in ("self.log", "self.log_dict"):
                patterns = list(_patterns(node, name == "self.log_dict"))
                if not patterns or None in patterns:
                    return None
                found += [_Logged(each, Place(base.module, node)) for each in patterns if each is not None]
            elif any(isinstance(each.value, cst.Name) and each.value.value == "self" for each in node.args):
                # The function may log for the model.
                return None
    return found


def _patterns(call: cst.Call, is_dictionary: bool) -> Iterator[str | None]:
    """The patterns of the names in a call of `self.log` or `self.log_dict`; None for an unknown one."""
    given = call.args[0].value if call.args else None
    if not is_dictionary:
        yield _pattern(given)
    elif isinstance(given, cst.Dict):
        for element in given.elements:
            yield _pattern(element.key) if isinstance(element, cst.DictElement) else None


def _pattern(name: cst.BaseExpression | None) -> str | None:
    """The pattern of a logged name: Lightning adds the kind of the step, and the number of the loader."""
    text: str | None = None
    if isinstance(name, cst.SimpleString) and isinstance(name.evaluated_value, str):
        text = re.escape(name.evaluated_value)
    elif isinstance(name, cst.FormattedString):
        parts = [
            re.escape(part.value) if isinstance(part, cst.FormattedStringText) else ".*"
            for part in name.parts
        ]
        text = "".join(parts)
    return None if text is None else rf"{text}(_step|_epoch)?(/dataloader_idx_\d+)?"
