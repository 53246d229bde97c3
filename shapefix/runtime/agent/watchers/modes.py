"""Models with dropout or batch norm, evaluated in training mode or trained in evaluation mode."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from ...protocol import UserPlace, WrongModeLine
from .. import frames
from ..session import Session

_CALLS = 8


@dataclass(frozen=True)
class ModeCall:
    """A call of a model in training mode without gradients, in a pass over a loader."""

    model: str
    active: Literal["dropout", "batch norm"]
    called_at: UserPlace
    pass_number: int


class Modes:
    """The modes of one session's models in training and evaluation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pending: set[int] = set()
        self._trained: set[int] = set()
        self._evaluated: set[int] = set()
        self._noisy: list[ModeCall] = []
        self._wrong: dict[str, WrongModeLine] = {}

    def called(self, module: Any, with_gradient: bool, caller: FrameType) -> None:
        """Note the call of an outermost module."""
        key, session = id(module), self._session
        if with_gradient:
            if module.training:
                self._pending.add(key)
            return
        if not module.training:
            self._evaluated.add(key)
            return
        tested = session.active_passes and session.pass_loader not in session.trained_loaders
        if not tested or key not in self._trained or len(self._noisy) >= _CALLS:
            return
        active, site = active_layer(module), frames.site(caller)
        if active is not None and site is not None and frames.is_users(caller.f_code.co_filename):
            self._noisy.append(ModeCall(type(module).__name__, active, site, session.pass_number))

    def backward(self) -> None:
        """Note a backward call: the models called before it in training mode are trained in it."""
        self._trained |= self._pending
        self._pending.clear()
        number = self._session.pass_number
        self._noisy = [each for each in self._noisy if each.pass_number != number]

    def trained_in_evaluation(self, module: Any, site: UserPlace) -> None:
        """Note that a backward call used the graph of a call in evaluation mode.

        That may be intended, unless the model was trained in training mode before, or evaluated.
        """
        inactive = _layer(module, training=False)
        known = id(module) in self._trained or id(module) in self._evaluated
        if inactive is not None and known and active_layer(module) is None:
            self._add("train", type(module).__name__, inactive, site)

    def report(self) -> None:
        """Write a line for each wrong mode."""
        for each in self._noisy:
            self._add("eval", each.model, each.active, each.called_at)
        for line in self._wrong.values():
            self._session.sink.write(line)

    def _add(self, missing: Literal["train", "eval"], model: str, layer: str, site: UserPlace) -> None:
        line = WrongModeLine(kind="wrong_mode", missing=missing, model=model, layer=layer, called_at=site)
        self._wrong.setdefault(str(site), line)


def active_layer(module: Any) -> Literal["dropout", "batch norm"] | None:
    """The kind of a mode-dependent layer of a module in training mode."""
    return _layer(module, training=True)


def _layer(module: Any, training: bool) -> Literal["dropout", "batch norm"] | None:
    for each in module.modules():
        if each.training is not training:
            continue
        if isinstance(each, _DropoutNd) and each.p > 0:
            return "dropout"
        if isinstance(each, _BatchNorm) and each.track_running_stats:
            return "batch norm"
        if isinstance(each, (nn.RNN, nn.LSTM, nn.GRU)) and each.dropout > 0 and each.num_layers > 1:
            return "dropout"
    return None
