"""torch.autograd.Function: objects of its classes cannot be called."""

from __future__ import annotations

from shapefix.domains.autograd_functions import FunctionObjectCalled
from shapefix.interpreter.calls import Call
from shapefix.interpreter.classes import member
from shapefix.interpreter.values import FunctionValue, InstanceValue, Unknown, Value
from shapefix.library.registry import declare, method
from shapefix.library.required_versions import is_at_least

FUNCTION = "torch.autograd.Function"
_SINCE = "1.5"
"""First version of torch without calls of objects."""
declare(FUNCTION, "builtins.object")


@method(FUNCTION, "__call__")
def call_object(call: Call) -> Value:
    """Emit an event: torch raises here."""
    made = call.receiver
    if isinstance(made, InstanceValue) and is_at_least(call.ev, _SINCE, "torch"):
        forward = member(made.cls, "forward")
        if isinstance(forward, FunctionValue):
            call.ev.emit(FunctionObjectCalled(call.place, call.ev.calls, made.cls, forward))
    return Unknown()


@method(FUNCTION, "save_for_backward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads")
def noted(call: Call) -> Value:
    return Unknown()
