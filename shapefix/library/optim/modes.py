"""train() and eval(): which mode a module is in, and who is called in it."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.training_events import Switched
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import FALSE, TRUE, InstanceValue, LibraryObject, Unknown, Value
from shapefix.library.added_tokens import CHECKPOINT
from shapefix.library.nn.module import MODULE, modules_in
from shapefix.library.optim.gradients import where
from shapefix.library.registry import derives, method


def mode_of(ev: Evaluator, module: Value) -> bool | None:
    """Whether a module is in training mode; None where that is not known."""
    if not isinstance(module, (InstanceValue, LibraryObject)):
        return None
    return truth(ev.training.get(module) or _at_first(module))


def _at_first(module: InstanceValue | LibraryObject) -> Value:
    """The mode in which a module comes: torch makes it for training, from_pretrained for evaluation."""
    if isinstance(module, InstanceValue):
        return Unknown() if module.open else TRUE
    if module.place is None:
        # It stands for any module: somebody's argument.
        return Unknown()
    return FALSE if CHECKPOINT in module.fields else TRUE


def switch(ev: Evaluator, root: Value, mode: Value) -> None:
    """Set the mode of a module and of all that are known to stand below it."""
    for module in modules_in(root):
        if isinstance(module, LibraryObject) and not derives(module.kind, MODULE):
            continue
        # What is there before any branch is what a path that does not switch ends with.
        ev.training.setdefault(module, _at_first(module))
        ev.journal.write(ev.training, module, mode)


@method(MODULE, "train")
def train(call: Call) -> Value:
    """The module itself, in training mode or, for `train(False)`, not."""
    return _switched(call, call.value(0, "mode") or (Unknown() if call.arguments.open else TRUE))


@method(MODULE, "eval")
def evaluate(call: Call) -> Value:
    """The module itself, in evaluation mode."""
    return _switched(call, FALSE)


def _switched(call: Call, mode: Value) -> Value:
    module = call.receiver
    if module is None:
        return Unknown()
    switch(call.ev, module, mode)
    call.ev.emit(Switched(*where(call), module, truth(mode)))
    return module
