"""Optimizers: the modules of their parameters, and their steps."""

from __future__ import annotations

from shapefix.domains.stepped_weights import note_certain_step
from shapefix.domains.training import OptimizerCreated, OptimizerStepped, Owners, PendingGradients
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Call
from shapefix.interpreter.refused_calls import report_wrong_count
from shapefix.interpreter.values import NONE, Constant, LibraryObject, Unknown, Value
from shapefix.library.nn.module import modules_in
from shapefix.library.optim.gradients import known_gradients, remember, where, zeroed
from shapefix.library.optim.parameters import owners_of
from shapefix.library.optim.rejected_parameters import note_rejected
from shapefix.library.registry import declare, function, method

OPTIMIZER = "torch.optim.Optimizer"

_TORCH = (
    "Adafactor",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "AdamW",
    "ASGD",
    "LBFGS",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
)
_BITSANDBYTES = (
    "Adam",
    "Adam8bit",
    "Adam32bit",
    "PagedAdam",
    "PagedAdam8bit",
    "PagedAdam32bit",
    "AdamW",
    "AdamW8bit",
    "AdamW32bit",
    "PagedAdamW",
    "PagedAdamW8bit",
    "PagedAdamW32bit",
    "SGD",
    "SGD8bit",
    "SGD32bit",
    "Lion",
    "Lion8bit",
    "Lion32bit",
    "PagedLion",
    "PagedLion8bit",
    "RMSprop",
    "RMSprop8bit",
    "Adagrad",
    "Adagrad8bit",
    "LAMB",
    "LAMB8bit",
    "LARS",
    "LARS8bit",
)
_TRANSFORMERS = ("Adafactor", "AdamW")
"""Optimizers of transformers (AdamW until version 5)."""
_KINDS = (
    *(f"torch.optim.{name}" for name in _TORCH),
    *(f"bitsandbytes.optim.{name}" for name in _BITSANDBYTES),
    *(f"transformers.{inner}{name}" for name in _TRANSFORMERS for inner in ("", "optimization.")),
    "torch.optim.Optimizer",
)

declare(OPTIMIZER, "builtins.object")
for _kind in _KINDS:
    if _kind != OPTIMIZER:
        declare(_kind, OPTIMIZER)


@function(*_KINDS)
def optimizer(call: Call) -> Value:
    """Optimizer of the given parameters."""
    given = call.value(0, "params")
    note_step(call.ev, StepKind.MADE, call.place.node)
    if call.name.startswith("torch.optim."):
        note_rejected(call, given)
    owners = None if call.arguments.open else owners_of(given)
    made = LibraryObject(call.name, dict(call.arguments.keywords), call.place)
    if owners is not None:
        made.facts[Owners] = Owners(owners)
    _note_modules(call, made, owners, given)
    return made


def _note_modules(
    call: Call, made: LibraryObject, owners: frozenset[Value] | None, given: Value | None
) -> None:
    below = frozenset(module for owner in owners or () for module in modules_in(owner))
    call.ev.emit(OptimizerCreated(*where(call), made, below, given))


@method(OPTIMIZER, "__init__")
def initialise(call: Call) -> Value:
    return NONE


@method(OPTIMIZER, "add_param_group")
def add_group(call: Call) -> Value:
    if isinstance(call.receiver, LibraryObject):
        given = call.value(0, "param_group")
        before, more = call.receiver.facts.known(Owners), owners_of(given)
        together = None if before is None or more is None else Owners(before.modules | more)
        call.ev.journal.write(call.receiver.facts, Owners, together)
        _note_modules(call, call.receiver, more, given)
    return NONE


@method(OPTIMIZER, "zero_grad")
def zero(call: Call) -> Value:
    return zeroed(call)


@method(OPTIMIZER, "step")
def step(call: Call) -> Value:
    """Update the weights; return the result of the closure, if there is one."""
    closure = call.value(0, "closure")
    has_closure = call.arguments.open or not (
        closure is None or (isinstance(closure, Constant) and closure.value is None)
    )
    kind = call.receiver.kind if isinstance(call.receiver, LibraryObject) else ""
    if (
        kind == "torch.optim.LBFGS"
        and closure is None
        and not (call.arguments.open or call.arguments.keywords)
    ):
        report_wrong_count(call.ev, call.place, "LBFGS", "step", ("closure",), 1, 0)
        return NONE
    note_optimizer_step(call, call.receiver, None, has_closure)
    return Unknown("loss") if has_closure else NONE


def note_optimizer_step(
    call: Call, stepped: Value | None, scaler: Value | None, closure: bool = False
) -> None:
    """Report an optimizer's step, and record it."""
    gradients = known_gradients(call)
    event = OptimizerStepped(*where(call), stepped, scaler, gradients, closure)
    call.ev.emit(event)
    note_certain_step(call.ev, event)
    if closure:
        remember(call, Unknown())
    elif isinstance(gradients, PendingGradients) and stepped is not None:
        remember(call, gradients.after(stepped=stepped))
