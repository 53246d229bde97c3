"""Where each module was constructed."""

from __future__ import annotations

import sys
import weakref
from types import CodeType
from typing import Any

from torch import nn

from . import frames


class Births:
    """Remembers, for each living module, the place in the user's code that asked for it."""

    def __init__(self) -> None:
        # By identity: a module's own `__hash__` and `__eq__` may be anything, and are not to be called.
        self._sites: dict[int, tuple[weakref.ref[Any], CodeType, int, int]] = {}
        self._numbers: dict[int, int] = {}
        self.count = 0

    def install(self) -> None:
        """Watch the construction of modules from now on."""
        original, births = nn.Module.__init__, self

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            births.count += 1
            born = frames.construction(sys._getframe(1), self)
            if born is not None:
                births._remember(self, born)

        nn.Module.__init__ = __init__

    def of(self, module: object) -> frames.Place | None:
        """Where a module was constructed; None where that is not known, as of a copy."""
        known = self._sites.get(id(module))
        if known is None or known[0]() is not module:
            return None
        return frames.place(*known[1:])

    def number(self, module: object) -> int | None:
        """How many modules had been constructed with this one; None where that is not known."""
        known = self._sites.get(id(module))
        return None if known is None or known[0]() is not module else self._numbers[id(module)]

    def _remember(self, module: object, born: tuple[CodeType, int, int]) -> None:
        number, sites, numbers = id(module), self._sites, self._numbers

        def forget(gone: weakref.ref[Any]) -> None:
            known = sites.get(number)
            if known is not None and known[0] is gone:
                del sites[number], numbers[number]

        numbers[number] = self.count
        sites[number] = (weakref.ref(module, forget), *born)
