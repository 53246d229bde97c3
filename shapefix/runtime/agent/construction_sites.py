"""The place of construction of each module, in the user's code."""

from __future__ import annotations

import itertools
import sys
import weakref
from types import CodeType, FrameType
from typing import Any

from torch import nn

from ..protocol import UserPlace
from . import frames

_CALLERS = 4


class ConstructionSites:
    """The construction site of each living module."""

    def __init__(self) -> None:
        # By identity: a module's own `__hash__` and `__eq__` may do anything, and must not be called.
        self._sites: dict[int, tuple[weakref.ref[Any], CodeType, int, int]] = {}
        self._callers: dict[int, list[tuple[CodeType, int, int]]] = {}
        self._numbers: dict[int, int] = {}
        self.count = 0

    def install(self) -> None:
        """Watch the construction of modules from now on."""
        original, constructions = nn.Module.__init__, self

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            constructions.count += 1
            site = frames.construction(sys._getframe(1), self)
            if site is not None:
                constructions._remember(self, site, _callers(sys._getframe(1), site))

        nn.Module.__init__ = __init__

    def site_of(self, module: object) -> UserPlace | None:
        """Place of construction of a module; None if it is not known, as for a copy."""
        known = self._sites.get(id(module))
        if known is None or known[0]() is not module:
            return None
        return frames.place(*known[1:])

    def callers_of(self, module: object) -> list[UserPlace]:
        """Places of the callers of a module's construction, the nearest first."""
        known = self._sites.get(id(module))
        if known is None or known[0]() is not module:
            return []
        return [frames.place(*each) for each in self._callers[id(module)]]

    def ordinal(self, module: object) -> int | None:
        """The number of modules constructed up to this one; None if it is not known."""
        known = self._sites.get(id(module))
        return None if known is None or known[0]() is not module else self._numbers[id(module)]

    def _remember(
        self, module: object, site: tuple[CodeType, int, int], outer: list[tuple[CodeType, int, int]]
    ) -> None:
        number, sites, numbers, callers = id(module), self._sites, self._numbers, self._callers

        def forget(gone: weakref.ref[Any]) -> None:
            known = sites.get(number)
            if known is not None and known[0] is gone:
                del sites[number], numbers[number], callers[number]

        numbers[number], callers[number] = self.count, outer
        sites[number] = (weakref.ref(module, forget), *site)


def _callers(frame: FrameType | None, site: tuple[CodeType, int, int]) -> list[tuple[CodeType, int, int]]:
    """The user's frames around a construction, the nearest first; site is that of the construction."""
    places = ((each.f_code, each.f_lasti, each.f_lineno) for each in frames.users(frame))
    return list(itertools.islice(itertools.dropwhile(lambda each: each != site, places), 1, 1 + _CALLERS))
