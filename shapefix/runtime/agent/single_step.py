"""One watched forward and backward in a surviving process; everything is restored afterwards."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import rnn

from ..protocol import Line
from . import loss_calls
from .call_sites import CallSites
from .construction_sites import ConstructionSites
from .exceptions import MARK, ExceptionRecorder
from .module_calls import ModuleCalls
from .session import Session
from .training import TrainingWatcher
from .watchers.optimizer_parameters import OptimizerWatcher

_RESTORED = 2 << 30  # bytes; changed parameters of a larger model are only reported

LossArgument = Callable[[Any, Any], Any] | str | None


class MemorySink:
    """The lines of a surviving process, in a list."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def write(self, line: Line) -> None:
        """Add a line."""
        self.lines.append(line)


@dataclass(frozen=True)
class StepResult:
    """The result of a step: the agent's lines, the loss as a number, and the exception, if any.

    with_gradient and without_gradient have the names of parameters; both are None if there was no backward.
    changed has the names of parameters that could not be restored.
    """

    lines: tuple[Line, ...]
    loss: float | None
    error: Exception | None
    with_gradient: tuple[str, ...] | None = None
    without_gradient: tuple[str, ...] | None = None
    changed: tuple[str, ...] = ()


def run_step(model: nn.Module, batch: Any, loss: LossArgument) -> StepResult:
    """Call a model with a batch, and backward of its loss.

    Random numbers, gradients, parameters, buffers, modes, the batch and torch's functions are restored. Other
    state of the model may have changed. Raises BaseException that is not an Exception, as KeyboardInterrupt.
    """
    lazy = any(isinstance(each, nn.parameter.UninitializedTensorMixin) for each in model.parameters())
    if lazy:
        model = copy.deepcopy(model)  # its first call sets its sizes permanently
    watch = StepWatch()
    error: Exception | None = None
    value: float | None = None
    names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
    changed: list[str] = []
    same_model = contextlib.nullcontext() if lazy else _same_model(model, changed)
    with same_functions(), _same_random_numbers(), same_model:
        watch.install()
        try:
            with torch.enable_grad():
                value = _step(model, _copied(batch), loss)
            names = gradient_names(model) if value is not None else names
        except Exception as raised:
            error = raised
            watch.raised(raised)
    lines = watch.ended(error)
    return StepResult(lines, value, error, *names, tuple(changed))


class StepWatch:
    """The watchers of one step in a surviving process."""

    def __init__(self) -> None:
        self._sink = MemorySink()
        self._session = Session(self._sink, wanted_steps=sys.maxsize)
        self._exceptions = ExceptionRecorder(self._session)
        constructions, self._call_sites = ConstructionSites(), CallSites(self._session)
        self._modules = ModuleCalls(self._session, self._exceptions, constructions, self._call_sites)
        self._optimizers = OptimizerWatcher(constructions)

    def install(self) -> None:
        """Replace functions of torch by watched ones; the caller restores them."""
        self._modules.install()
        loss_calls.install(self._session, self._exceptions, self._call_sites)
        TrainingWatcher(
            self._session, self._exceptions, self._modules, self._optimizers, self._call_sites
        ).watch_backward()

    def is_idle(self) -> bool:
        """Whether no watched call is running."""
        return self._session.depth == 0

    def raised(self, error: Exception) -> None:
        """Note the exception at the end of the step."""
        self._session.end("uncaught", exceptions=self._exceptions.uncaught(error))

    def ended(self, error: Exception | None) -> tuple[Line, ...]:
        """Return the lines of the step."""
        _unmark(error)
        if error is None:
            self._session.end("finished")
        return tuple(self._sink.lines)


def _step(model: nn.Module, batch: Any, loss: LossArgument) -> float | None:
    """Run forward and backward; returns the loss, if there is one."""
    args, kwargs = _arguments(model, batch, only_required=callable(loss))
    out = model(*args, **kwargs)
    found = _loss(out, batch, loss)
    if found is None:
        return None
    found.backward()
    return float(found.detach()) if found.numel() == 1 else None


def _arguments(model: nn.Module, batch: Any, only_required: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments from a batch: a mapping by its keys, a tuple by position, anything else alone.

    With only_required, parts that forward has no parameter for are left out, since the loss gets the batch.
    """
    parameters = inspect.signature(model.forward).parameters.values()
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    if isinstance(batch, Mapping) or (hasattr(batch, "keys") and hasattr(batch, "__getitem__")):
        named = {str(key): batch[key] for key in batch.keys()}  # noqa: SIM118
        known = [each.name for each in parameters]
        return (), {
            key: each for key, each in named.items() if not only_required or takes_all or key in known
        }
    if not isinstance(batch, (tuple, list)):
        return (batch,), {}
    if any(each.kind is each.VAR_POSITIONAL for each in parameters) and not only_required:
        return tuple(batch), {}
    by_position = [each for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
    required = [each for each in by_position if each.default is each.empty]
    return tuple(batch[: max(len(required if only_required else by_position), 1)]), {}


def _loss(out: Any, batch: Any, loss: LossArgument) -> Any:
    """The tensor to call backward on. Raises KeyError, AttributeError or TypeError for a wrong name."""
    if callable(loss):
        found = loss(out, batch)
    elif loss is not None:
        found = out[loss] if isinstance(out, Mapping) else getattr(out, loss)
    else:
        found = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
        parts = out if isinstance(out, (tuple, list)) else [out]
        if found is None:
            found = next((each for each in parts if isinstance(each, torch.Tensor) and each.dim() == 0), None)
    if loss is not None and not isinstance(found, torch.Tensor):
        raise TypeError(f"the loss is a {type(found).__name__}, not a tensor")
    return found


def _copied(value: Any) -> Any:
    """Copy a batch, so that the model cannot write into the user's."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        parts = [_copied(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return {key: _copied(value[key]) for key in value.keys()}  # noqa: SIM118
    return value


def gradient_names(model: nn.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the trained parameters with a gradient, and of those without."""
    trained = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    with_gradient = tuple(name for name, each in trained if each.grad is not None)
    return with_gradient, tuple(name for name, each in trained if each.grad is None)


def _unmark(error: BaseException | None) -> None:
    """Remove the recorder's ids from an exception and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__dict__.pop(MARK, None)
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def same_functions() -> Iterator[None]:
    """Restore torch's functions after a replacement in between."""
    saved: list[tuple[Any, str, Any]] = [
        (functional, name, getattr(functional, name)) for name in loss_calls.NAMES
    ]
    saved += [(nn.Module, "__call__", nn.Module.__dict__["__call__"])]
    saved += [(torch.autograd, "backward", torch.autograd.backward)]
    saved += [(rnn, "pad_sequence", rnn.pad_sequence)]
    try:
        yield
    finally:
        for owner, name, function in saved:
            setattr(owner, name, function)


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    own, numpys = random.getstate(), numpy.random.get_state() if numpy else None
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(own)
            if numpy is not None:
                numpy.random.set_state(numpys)


@contextlib.contextmanager
def _same_model(model: nn.Module, changed: list[str]) -> Iterator[None]:
    """Restore the gradients, parameters, buffers and modes of a model.

    Parameters of a large model are only compared; the names of those that changed are added to changed.
    """
    parameters = dict(model.named_parameters())
    gradients = {name: each.grad for name, each in parameters.items()}
    size = sum(each.numel() * each.element_size() for each in parameters.values())
    values = {name: each.detach().clone() for name, each in parameters.items()} if size <= _RESTORED else {}
    versions = {name: each._version for name, each in parameters.items()}
    modules = [
        (
            each,
            each.training,
            dict(each._buffers),
            {k: b.clone() for k, b in each._buffers.items() if b is not None},
        )
        for each in model.modules()
    ]
    for each in parameters.values():
        each.grad = None
    try:
        yield
    finally:
        for module, training, buffers, kept in modules:
            module.training = training
            module._buffers.update(buffers)
            for name, value in kept.items():
                _restore(buffers[name], value)
        for name, each in parameters.items():
            each.grad = gradients[name]
            if name in values:
                _restore(each, values[name])
            elif each._version != versions[name]:
                changed.append(name)


def _restore(tensor: Any, value: torch.Tensor) -> None:
    """Restore a changed value, invisibly for graphs with the tensor."""
    if tensor.shape != value.shape:
        tensor.data = value
    elif not torch.equal(tensor.detach(), value):
        tensor.data.copy_(value)
