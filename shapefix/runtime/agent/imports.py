"""Call functions right after modules are imported for the first time."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class AfterImport(importlib.abc.MetaPathFinder):
    """Finds modules as the other finders do, and passes each to its function once it is imported."""

    def __init__(self, functions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._functions = functions
        self._searching: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._functions or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.discard(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            self._functions[fullname](module)

        loader.exec_module = exec_module
        return spec


def after(functions: dict[str, Callable[[ModuleType], None]]) -> None:
    """Call each function with the module of its name, now or when it is imported."""
    for name, function in functions.items():
        if name in sys.modules:
            function(sys.modules[name])
    sys.meta_path.insert(0, AfterImport(functions))
