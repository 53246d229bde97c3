"""train() and eval(): modes of modules, and calls of modules in them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

import libcst as cst

from shapefix.domains.gradients import Gradients
from shapefix.domains.modes import ForwardCalled, ModeSwitched, ModuleModes
from shapefix.domains.tokens import Checkpoint
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import (
    FALSE,
    TRUE,
    Constant,
    InstanceValue,
    LibraryObject,
    ModulePart,
    Unknown,
    Value,
)
from shapefix.library.nn.module import MODULE, modules_in
from shapefix.library.optim.gradients import where
from shapefix.library.registry import Handler, derives, method, wrap_method
from shapefix.library.transformers.architectures import OwnClass, class_of


def mode_of(ev: Evaluator, module: Value) -> bool | None:
    """Check whether a module is in training mode; None if unknown."""
    if not isinstance(module, (InstanceValue, LibraryObject)):
        return None
    modes = ev.state[ModuleModes]
    if ev.entry_point and modes.set_in.get(module) != ev.entry_point:
        # The caller of this function may have switched it before.
        return None
    return truth(modes.switched_to.get(module) or _at_first(module))


def _at_first(module: InstanceValue | LibraryObject) -> Value:
    """Initial mode of a module: training, or evaluation after from_pretrained."""
    if isinstance(module, InstanceValue):
        return Unknown() if module.open else TRUE
    if module.place is None:
        # An argument: any module.
        return Unknown()
    return FALSE if Checkpoint in module.facts else TRUE


def switch(ev: Evaluator, root: Value, mode: Value) -> None:
    """Set the mode of a module and of all known modules below it."""
    modes = ev.state[ModuleModes]
    for module in modules_in(root):
        if isinstance(module, LibraryObject) and not derives(module.kind, MODULE):
            continue
        # The mode before any branch is the final one on paths that do not switch.
        modes.switched_to.setdefault(module, _at_first(module))
        ev.journal.write(modes.switched_to, module, mode)
        modes.set_in.setdefault(module, 0)
        ev.journal.write(modes.set_in, module, ev.entry_point)


@hooks.read_unknown
def _switch_any(ev: Evaluator, owner: Value, name: str) -> None:
    """Forget the modes of modules after `train` or `eval` of one of them."""
    if isinstance(owner, ModulePart) and name in ("train", "eval"):
        for module in owner.modules:
            switch(ev, module, Unknown())


@method(MODULE, "@training")
def training(call: Call) -> Value:
    """`self.training`, as far as the code sets it."""
    mode = mode_of(call.ev, call.receiver) if call.receiver is not None else None
    return Unknown("training") if mode is None else TRUE if mode else FALSE


_DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
WITH_DROPOUT = re.compile(
    r"(Bert|DistilBert|Roberta|XLMRoberta|Electra|DebertaV2|GPT2|OPT|T5|Bart)(Config|For|Model|LMHead)"
)
"""Architectures of transformers with a dropout above 0 by default, as executed with version 5.23."""
_MOODY = frozenset(
    f"torch.nn.{name}" for name in (*_DROPOUTS, "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
)


@wrap_method(MODULE, "__init__")
def made(call: Call, initialize: Handler) -> Value:
    if call.receiver is not None:
        call.ev.state[ModuleModes].set_in[call.receiver] = call.ev.entry_point
    return initialize(call)


@wrap_method(MODULE, "__call__")
def called(call: Call, call_module: Handler) -> Value:
    """Call the module, and report the call unless it is part of another module's forward."""
    ev = call.ev
    modes = ev.state[ModuleModes]
    is_inner = modes.open_calls or any(map(_is_forward, ev.running))
    if not modes.open_calls:
        modes.called = set()
    if call.receiver is not None:
        modes.called.add(call.receiver)
    modes.open_calls += 1
    unfollowed = ev.unfollowed
    try:
        result = call_module(call)
    finally:
        modes.open_calls -= 1
    if not is_inner and call.receiver is not None:
        _note_call(call, call.receiver, result, is_followed=ev.unfollowed == unfollowed)
    return result


def _is_forward(function: cst.CSTNode) -> bool:
    return isinstance(function, cst.FunctionDef) and function.name.value == "forward"


def _without_use(modules: Iterable[Value], ran: Container[Value]) -> set[Value]:
    """Layers of running modules of the project without a call, out of reach of forward."""
    owners = (each for each in modules if isinstance(each, InstanceValue) and each in ran)
    held = {each for owner in owners for each in owner.fields.values() if isinstance(each, LibraryObject)}
    return {each for each in held if each not in ran and each.kind in _MOODY}


def _note_call(call: Call, module: Value, result: Value, *, is_followed: bool) -> None:
    ev = call.ev
    inside = (
        each for each in modules_in(module) if isinstance(each, InstanceValue) or derives(each.kind, MODULE)
    )
    # In a fixed order: a finding names the first one.
    below = tuple(dict.fromkeys(inside))
    idle = _without_use(below, ev.state[ModuleModes].called) if is_followed else set()
    with_mode = tuple(
        each
        for each in below
        if isinstance(each, LibraryObject) and is_mode_dependent(each) and each not in idle
    )
    mode_dependent = tuple(each for each in with_mode if mode_of(ev, each))
    recording = ev.state[Gradients].recording is not False
    mode = mode_of(ev, module)
    as_loaded = (each for each in below if each not in ev.state[ModuleModes].switched_to)
    loaded = any(isinstance(each, LibraryObject) and Checkpoint in each.facts for each in as_loaded)
    called = frozenset(ev.state[ModuleModes].called)
    ev.emit(
        ForwardCalled(
            *where(call),
            module,
            mode,
            recording,
            frozenset(below),
            mode_dependent,
            result,
            loaded,
            called,
            with_mode,
        )
    )


def is_mode_dependent(module: LibraryObject) -> bool:
    """Check whether a module certainly computes something else in training than in evaluation."""
    if OwnClass in module.facts:
        return _has_dropout(module)
    share = module.fields.get("p")
    known = isinstance(share, Constant) and share.value != 0
    return module.kind in _MOODY and (known or module.kind.rpartition(".")[2] not in _DROPOUTS)


def _has_dropout(model: LibraryObject) -> bool:
    """Check whether a transformers model has dropout by default, and the code does not change it."""
    config = model.fields.get("config")
    stated = class_of(config) or class_of(model)
    if not isinstance(config, LibraryObject) or stated is None:
        return False
    asked = any(isinstance(key, str) and "drop" in key for key in config.fields)
    return not asked and WITH_DROPOUT.match(stated.rpartition(".")[2]) is not None


@method(MODULE, "train")
def train(call: Call) -> Value:
    """Switch the module to training mode, or out of it for `train(False)`; return it."""
    return _switched(call, call.value(0, "mode") or (Unknown() if call.arguments.open else TRUE))


@method(MODULE, "eval")
def evaluate(call: Call) -> Value:
    """Switch the module to evaluation mode; return it."""
    return _switched(call, FALSE)


def _switched(call: Call, mode: Value) -> Value:
    module = call.receiver
    if module is None:
        return Unknown()
    switch(call.ev, module, mode)
    call.ev.emit(ModeSwitched(*where(call), module, truth(mode)))
    return module
