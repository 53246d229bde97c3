"""Parameters missing from all optimizers, and optimizer parameters missing from all modules."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ...protocol import (
    OrphanedParameters,
    UncoveredParameter,
    UncoveredParameters,
    UnregisteredParametersLine,
    UserPlace,
)
from .. import frames
from ..construction_sites import ConstructionSites
from ..describe import describe

_NAMES = 50


class OptimizerWatcher:
    """The optimizers of a session, and the modules with loaded weights."""

    def __init__(self, constructions: ConstructionSites) -> None:
        self._constructions = constructions
        self._created: weakref.WeakKeyDictionary[Any, tuple[UserPlace | None, int]] = (
            weakref.WeakKeyDictionary()
        )
        self._loaded: dict[int, weakref.ref[Any]] = {}  # by identity, since modules may define `__eq__`

    def install(self) -> None:
        """Watch the creation of optimizers, and the loading of weights, from now on."""
        original, watcher = torch.optim.Optimizer.__init__, self
        load = nn.Module.load_state_dict

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            code = frames.construction(sys._getframe(1), self)
            site = None if code is None else frames.place(*code)
            watcher._created[self] = (site, watcher._constructions.count)

        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            watcher._loaded.update((id(each), weakref.ref(each)) for each in self.modules())
            return load(self, *args, **kwargs)

        torch.optim.Optimizer.__init__ = __init__
        nn.Module.load_state_dict = load_state_dict

    def parameters(self) -> Iterator[Any]:
        """The parameters of all living optimizers."""
        for optimizer in list(self._created):
            for group in getattr(optimizer, "param_groups", ()):
                yield from group["params"]

    def places(self) -> list[UserPlace]:
        """Places of the constructions of all living optimizers."""
        return [place for place, _ in self._created.values() if place is not None]

    def created_at(self, optimizer: Any) -> UserPlace | None:
        """Place of an optimizer's construction."""
        return self._created.get(optimizer, (None, 0))[0]

    def uncovered(self, roots: list[Any]) -> UncoveredParameters | None:
        """The parameters with a gradient in executed models, but in no optimizer, if any."""
        covered = {id(each) for each in self.parameters()}
        others = (each for root in roots for each in root.parameters() if id(each) not in covered)
        if all(each.grad is None or not each.requires_grad for each in others):
            return None
        last = max((count for _, count in self._created.values()), default=0)
        found: list[UncoveredParameter] = []
        seen: set[int] = set()
        covered_numel = 0
        for name, owner, parameter, pretrained in self._parameters_of(roots):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if id(parameter) in covered:
                covered_numel += parameter.numel()
            elif parameter.requires_grad and parameter.grad is not None:
                ordinal = self._constructions.ordinal(owner)
                found.append(
                    UncoveredParameter(
                        name=name,
                        numel=parameter.numel(),
                        late=ordinal is not None and ordinal > last,
                        pretrained=pretrained,
                        constructed_at=self._constructions.site_of(owner),
                    )
                )
        if not found:
            return None
        return UncoveredParameters(
            parameters=found[:_NAMES],
            count=len(found),
            numel=sum(each["numel"] for each in found),
            covered_numel=covered_numel,
            optimizers=[place for place, _ in self._created.values() if place is not None],
        )

    def unregistered(self, roots: list[Any], parameters: dict[int, Any]) -> UnregisteredParametersLine | None:
        """The parameters of losses without a model and without an optimizer, if any."""
        known = {id(each) for each in self.parameters()}
        covered_numel = sum({id(each): each.numel() for each in self.parameters()}.values())
        registered = {id(each) for root in roots for each in root.parameters()}
        lacking = {
            key: each
            for key, each in parameters.items()
            if key not in known and key not in registered and each.requires_grad and each.grad is not None
        }
        if not lacking or not known:
            return None
        found: dict[int, UncoveredParameter] = {}
        owners: list[Any] = []
        for module in _living_modules():
            for name, each in module._parameters.items():
                if id(each) in lacking and id(each) not in found:
                    owners.append(module)
                    found[id(each)] = UncoveredParameter(
                        name=f"{type(module).__name__}.{name}",
                        numel=each.numel(),
                        late=False,
                        pretrained=self._has_loaded_weights(module),
                        constructed_at=self._constructions.site_of(module),
                    )
        holder, holder_type = _holder(roots, [*owners, *lacking.values()])
        return UnregisteredParametersLine(
            kind="unregistered_parameters",
            parameters=list(found.values())[:_NAMES],
            count=len(lacking),
            numel=sum(each.numel() for each in lacking.values()),
            covered_numel=covered_numel,
            holder=holder,
            holder_type=holder_type,
            optimizers=[place for place, _ in self._created.values() if place is not None],
        )

    def _has_loaded_weights(self, module: Any) -> bool:
        known = self._loaded.get(id(module))
        return (known is not None and known() is module) or _pretrained(module)

    def orphaned(self, optimizer: Any) -> OrphanedParameters | None:
        """The parameters of an optimizer without a gradient and in no living module, if any."""
        lacking = {
            id(each): each
            for group in optimizer.param_groups
            for each in group["params"]
            if each.grad is None and each.requires_grad
        }
        for module in _living_modules() if lacking else ():
            for parameter in module.parameters(recurse=False):
                lacking.pop(id(parameter), None)
        if not lacking:
            return None
        return OrphanedParameters(
            parameters=[describe(each) for each in list(lacking.values())[:_NAMES]], count=len(lacking)
        )

    def _parameters_of(self, roots: list[Any]) -> Iterator[tuple[str, Any, Any, bool]]:
        """The parameters of models: name, owner, parameter, and whether its weights were loaded."""
        for root in roots:
            loaded: set[int] = set()
            for module in root.modules():
                if self._has_loaded_weights(module):
                    loaded.update(map(id, module.modules()))
            for prefix, module in root.named_modules():
                for name, parameter in module.named_parameters(recurse=False):
                    full = f"{prefix}.{name}" if prefix else name
                    yield full, module, parameter, id(module) in loaded


def _holder(roots: list[Any], parts: list[Any]) -> tuple[str | None, str | None]:
    """The attribute of a module with the parts in a list, a dictionary or a tuple, and its type."""
    wanted = {id(each) for each in parts}
    for root in roots:
        for module in root.modules():
            for name, value in vars(module).items():
                inner = value.values() if isinstance(value, dict) else value
                is_own = isinstance(value, (list, tuple)) or (isinstance(value, dict) and name[:1] != "_")
                if is_own and any(_is_among(each, wanted) for each in inner):
                    return f"{type(module).__name__}.{name}", type(value).__name__
    return None, None


def _is_among(value: Any, wanted: set[int]) -> bool:
    """Whether a value is one of the wanted objects, or a module around one."""
    if id(value) in wanted:
        return True
    return isinstance(value, nn.Module) and any(id(each) in wanted for each in value.modules())


def _living_modules() -> Iterator[Any]:
    """All modules still in memory."""
    return (each for each in gc.get_objects() if issubclass(type(each), nn.Module))


def _pretrained(module: Any) -> bool:
    """Whether a model of transformers was loaded with its weights."""
    config = getattr(module, "config", None)
    return bool(getattr(config, "_name_or_path", None) or getattr(config, "name_or_path", None))
