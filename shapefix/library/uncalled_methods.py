"""Statements with the name of a method, but without the parentheses of a call."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.uncalled_methods import MethodNotCalled
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.values import BoundMethod, LibraryObject, Reference, Unknown, Value
from shapefix.library.registry import derives

_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
METHODS = {
    "torch.optim.Optimizer": frozenset({"step", "zero_grad"}),
    "torch.optim.lr_scheduler.LRScheduler": frozenset({"step"}),
    "torch.nn.Module": frozenset(
        {"cpu", "cuda", "double", "eval", "half", "requires_grad_", "train", "zero_grad"}
    ),
    "torch.Tensor": frozenset({"backward", "detach_", "requires_grad_", "retain_grad", "zero_"}),
    "torch.amp.GradScaler": frozenset({"update"}),
}
"""Methods with an effect, by the class of their owner."""
FUNCTIONS = frozenset({"torch.cuda.empty_cache", "torch.cuda.synchronize"})
_OWNERS = {
    "backward": ("loss",),
    "eval": ("model", "net"),
    "step": ("optimizer", "optim", "opt", "scheduler"),
    "train": ("model", "net"),
    "zero_grad": ("",),
}
"""Ends of the names of unknown owners; nothing but optimizers and modules has a `zero_grad`."""


@hooks.idle_attribute
def note_uncalled(ev: Evaluator, node: cst.Expr, attribute: cst.Attribute, value: Value) -> None:
    """Report a method of torch in a statement of its own."""
    method = attribute.attr.value
    if _is_method(ev, attribute, value, method):
        owner = value.receiver if isinstance(value, BoundMethod) else None
        needs = method == "step" and isinstance(owner, LibraryObject) and derives(owner.kind, _PLATEAU)
        ev.emit(MethodNotCalled(ev.place(node), ev.calls, method, needs))


def _is_method(ev: Evaluator, attribute: cst.Attribute, value: Value, method: str) -> bool:
    if isinstance(value, Reference):
        return value.name in FUNCTIONS
    if isinstance(value, BoundMethod):
        function = value.function
        if not isinstance(function, Reference):
            return False
        kind = function.name.rpartition(".")[0]
        return any(method in names and derives(kind, base) for base, names in METHODS.items())
    if not isinstance(value, Unknown):
        return False
    name = dotted_name(attribute.value).lower()
    return bool(name) and name != "self" and name.endswith(_OWNERS.get(method, ()))
