"""Execution by torch: scripting, checkpointing, and wrappers without an effect on tensors."""

from __future__ import annotations

from shapefix.domains.gradients import require_grad
from shapefix.domains.training import CheckpointDetached, surroundings
from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import FALSE, TRUE, Constant, Integer, Number, Unknown, Value
from shapefix.library.python.builtins import PLAIN
from shapefix.library.registry import function
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import alias_of


@function("torch.jit.is_scripting")
def is_scripting(call: Call) -> Value:
    """False: a script run as Python is not inside of TorchScript."""
    return FALSE


@function("torch.is_tensor")
def is_tensor(call: Call) -> Value:
    given = arguments_of(call).value("obj")
    if isinstance(given, TensorValue):
        return TRUE if given.certain else Unknown()
    return FALSE if isinstance(given, PLAIN) else Unknown()


@function("torch.autograd.Variable")
def variable(call: Call) -> Value:
    given = call.value(0, "data") or Unknown()
    asked = call.constant(1, "requires_grad", False)
    if asked is False or not isinstance(given, TensorValue):
        return given
    made = alias_of(given)
    made.graph, made.cut = False, given.cut
    require_grad(call.ev, made, True if asked is True else None)
    return made


@function("torch.Size")
def sizes(call: Call) -> Value:
    items = elements(call.value(0))
    return Unknown() if items is None else TupleValue(items)


@function("torch.utils.checkpoint.checkpoint")
def checkpointed(call: Call) -> Value:
    """Call the function with the arguments, now and once more for the gradients."""
    own = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug")
    given = call.arguments
    if not given.positional:
        return Unknown()
    keywords = {name: value for name, value in given.keywords.items() if name not in own}
    arguments = Arguments(given.positional[1:], keywords, given.open, given.starred)
    made = call_value(call.ev, given.positional[0], arguments, call.place.node)
    # The default of torch 2.13 is still reentrant, with a warning.
    if call.constant(-1, "use_reentrant", True) is True:
        _cut_off(call, given.positional[0], arguments, made)
    return made


def _cut_off(call: Call, function: Value, arguments: Arguments, made: Value) -> None:
    """Report a reentrant checkpoint without gradients: none of its inputs requires one."""
    parts = [part for part in elements(made) or (made,) if isinstance(part, TensorValue)]
    cut = [part for part in parts if requires_grad(part) and not any(part is x for x in arguments.everything)]
    # Only the arguments themselves count; torch does not search lists.
    plain = (TensorValue, Constant, Integer, Number)
    known = not arguments.open and all(isinstance(value, plain) for value in arguments.everything)
    tensors = [value for value in arguments.everything if isinstance(value, TensorValue)]
    if not cut or not known or any(requires_grad(tensor) is not False for tensor in tensors):
        return
    ev = call.ev
    ev.emit(CheckpointDetached(call.place, ev.calls, surroundings(ev), ev.unfollowed, function))
    for part in cut:
        part.graph, part.sources = False, ()
