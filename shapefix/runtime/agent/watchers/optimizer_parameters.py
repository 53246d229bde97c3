"""Which parameters optimizers hold: those that they miss, and those that belong to no module any more."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from .. import describe, frames
from ..construction import Births

_NAMES = 50


class Held:
    """The optimizers of a session, and which modules had their weights loaded."""

    def __init__(self, births: Births) -> None:
        self._births = births
        self._made: weakref.WeakKeyDictionary[Any, tuple[frames.Place | None, int]] = (
            weakref.WeakKeyDictionary()
        )
        self._loaded: dict[int, weakref.ref[Any]] = {}  # by identity, as modules may compare as they like

    def install(self) -> None:
        """Watch the construction of optimizers, and the loading of weights, from now on."""
        original, held = torch.optim.Optimizer.__init__, self
        load = nn.Module.load_state_dict

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            code = frames.construction(sys._getframe(1), self)
            held._made[self] = (None if code is None else frames.place(*code), held._births.count)

        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            held._loaded.update((id(each), weakref.ref(each)) for each in self.modules())
            return load(self, *args, **kwargs)

        torch.optim.Optimizer.__init__ = __init__
        nn.Module.load_state_dict = load_state_dict

    def parameters(self) -> Iterator[Any]:
        """The parameters of all living optimizers."""
        for optimizer in list(self._made):
            for group in getattr(optimizer, "param_groups", ()):
                yield from group["params"]

    def made(self, optimizer: Any) -> frames.Place | None:
        """Where an optimizer was made."""
        return self._made.get(optimizer, (None, 0))[0]

    def missed(self, roots: list[Any]) -> dict[str, Any] | None:
        """The parameters of models that ran that got a gradient, and that no optimizer has; None for none.

        late are those of modules constructed after the last optimizer; loaded, those whose numbers come
        from elsewhere.
        """
        held = {id(each) for each in self.parameters()}
        last = max((count for _, count in self._made.values()), default=0)
        found: list[dict[str, Any]] = []
        seen: set[int] = set()
        held_numbers = 0
        for name, owner, parameter, loaded in self._of(roots):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if id(parameter) in held:
                held_numbers += parameter.numel()
            elif parameter.requires_grad and parameter.grad is not None:
                number = self._births.number(owner)
                found.append(
                    {
                        "name": name,
                        "numel": parameter.numel(),
                        "late": number is not None and number > last,
                        "loaded": loaded,
                        "born": self._births.of(owner),
                    }
                )
        if not found:
            return None
        return {
            "parameters": found[:_NAMES],
            "count": len(found),
            "numel": sum(each["numel"] for each in found),
            "held": held_numbers,
            "optimizers": [place for place, _ in self._made.values() if place is not None],
        }

    def orphans(self, optimizer: Any) -> dict[str, Any] | None:
        """The parameters of an optimizer without gradient that no living module has; None for none."""
        lacking = {
            id(each): each
            for group in optimizer.param_groups
            for each in group["params"]
            if each.grad is None and each.requires_grad
        }
        for module in _living() if lacking else ():
            for parameter in module.parameters(recurse=False):
                lacking.pop(id(parameter), None)
        if not lacking:
            return None
        return {
            "parameters": [describe.describe(each) for each in list(lacking.values())[:_NAMES]],
            "count": len(lacking),
        }

    def _of(self, roots: list[Any]) -> Iterator[tuple[str, Any, Any, bool]]:
        """Each parameter of models: its name, the module that owns it, itself, and whether it was loaded."""
        for root in roots:
            loaded: set[int] = set()
            for module in root.modules():
                known = self._loaded.get(id(module))
                if (known is not None and known() is module) or _pretrained(module):
                    loaded.update(map(id, module.modules()))
            for prefix, module in root.named_modules():
                for name, parameter in module.named_parameters(recurse=False):
                    full = f"{prefix}.{name}" if prefix else name
                    yield full, module, parameter, id(module) in loaded


def _living() -> Iterator[Any]:
    """All modules that are there."""
    return (each for each in gc.get_objects() if issubclass(type(each), nn.Module))


def _pretrained(module: Any) -> bool:
    """Whether a model of transformers has come with its weights."""
    config = getattr(module, "config", None)
    return bool(getattr(config, "_name_or_path", None) or getattr(config, "name_or_path", None))
