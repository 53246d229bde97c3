"""The place of construction of each module, in the user's code."""

from __future__ import annotations

import sys
import weakref
from types import CodeType
from typing import Any

from torch import nn

from ..protocol import UserPlace
from . import frames


class ConstructionSites:
    """The construction site of each living module."""

    def __init__(self) -> None:
        # By identity: a module's own `__hash__` and `__eq__` may do anything, and must not be called.
        self._sites: dict[int, tuple[weakref.ref[Any], CodeType, int, int]] = {}
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
                constructions._remember(self, site)

        nn.Module.__init__ = __init__

    def site_of(self, module: object) -> UserPlace | None:
        """Place of construction of a module; None if it is not known, as for a copy."""
        known = self._sites.get(id(module))
        if known is None or known[0]() is not module:
            return None
        return frames.place(*known[1:])

    def ordinal(self, module: object) -> int | None:
        """The number of modules constructed up to this one; None if it is not known."""
        known = self._sites.get(id(module))
        return None if known is None or known[0]() is not module else self._numbers[id(module)]

    def _remember(self, module: object, site: tuple[CodeType, int, int]) -> None:
        number, sites, numbers = id(module), self._sites, self._numbers

        def forget(gone: weakref.ref[Any]) -> None:
            known = sites.get(number)
            if known is not None and known[0] is gone:
                del sites[number], numbers[number]

        numbers[number] = self.count
        sites[number] = (weakref.ref(module, forget), *site)
