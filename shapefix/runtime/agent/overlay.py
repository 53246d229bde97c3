"""Replace the texts of source files for one run.

This module imports the standard library only, so that its text can be run in the new interpreters that
multiprocessing starts.
"""

from __future__ import annotations

import _io
import importlib.machinery
import io
import json
import linecache
import os
import pathlib
import sys
import traceback
from typing import Any


def read(path: str) -> dict[str, str]:
    """Read an overlay: a JSON object from the real path of each source file to the path of its text."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        texts: dict[str, str] = json.load(file)
    return texts


def install(texts: dict[str, str]) -> None:
    """Import, run and quote each file in texts with its other text from now on."""
    original = _io.open_code

    def open_code(path: str) -> Any:
        return original(texts.get(os.path.realpath(path), path))

    _io.open_code = io.open_code = open_code
    loader = importlib.machinery.SourceFileLoader
    original_stats = loader.path_stats

    def path_stats(self: Any, path: Any) -> Any:
        if os.path.realpath(path) in texts:
            # Python then neither uses nor writes byte code.
            raise OSError(f"{path} is replaced in this run")
        return original_stats(self, path)

    loader.path_stats = path_stats  # type: ignore[method-assign]
    original_update = linecache.updatecache

    def updatecache(filename: str, module_globals: Any = None) -> list[str]:
        text = texts.get(os.path.realpath(filename))
        if text is None:
            return original_update(filename, module_globals)
        lines = original_update(text)
        linecache.cache[filename] = (sum(map(len, lines)), None, lines, filename)
        return lines

    linecache.updatecache = updatecache
    if sys.excepthook is sys.__excepthook__:
        # The default hook opens the files in C.
        sys.excepthook = traceback.print_exception
    _follow(texts)


def _follow(texts: dict[str, str]) -> None:
    """Install the overlay in the interpreters started by multiprocessing, before they import anything."""
    from multiprocessing import spawn

    original = spawn.get_preparation_data
    code = pathlib.Path(__file__).read_text("utf-8") + f"\ninstall({texts!r})\n"

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {**original(name), "shapefix": _RunsCode(code, __file__)}

    spawn.get_preparation_data = get_preparation_data


class _RunsCode:
    """An object running code on unpickling."""

    def __init__(self, code: str, file: str) -> None:
        self.code = code
        self.file = file

    def __reduce__(self) -> Any:
        return exec, (self.code, {"__name__": "shapefix_overlay", "__file__": self.file})
