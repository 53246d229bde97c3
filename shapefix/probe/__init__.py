"""Runs one real batch of a user's script, in a process of the user's interpreter, and tells what happened."""

import sys
from types import ModuleType
from typing import Any

import shapefix

# Once this package is imported it stands where the function `shapefix.probe` stood: it is called as that.
_function = shapefix.probe


class _Package(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _function(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
