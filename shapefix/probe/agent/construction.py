"""Where each module was constructed."""

from __future__ import annotations

import contextlib
import sys
import weakref
from types import CodeType
from typing import Any

from torch import nn

from . import frames


class Births:
    """Remembers, for each living module, the place in the user's code that asked for it."""

    def __init__(self) -> None:
        self._sites: weakref.WeakKeyDictionary[Any, tuple[CodeType, int, int]] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        """Watch the construction of modules from now on."""
        original, sites = nn.Module.__init__, self._sites

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            born = frames.construction(sys._getframe(1), self)
            if born is not None:
                with contextlib.suppress(TypeError):  # a class that compares by value has no hash
                    sites[self] = born

        nn.Module.__init__ = __init__

    def of(self, module: object) -> frames.Place | None:
        """Where a module was constructed; None where that is not known, as of a copy."""
        try:
            born = self._sites.get(module)
        except TypeError:
            return None
        return None if born is None else frames.place(*born)
