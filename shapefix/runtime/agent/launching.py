"""Runs what was named as python or Jupyter would: a file, a folder, a module, or the cells of a notebook."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import importlib.machinery
import importlib.util
import inspect
import io
import json
import linecache
import os
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .caught import compiled
from .fake_gpu.rewriting import rewritten
from .session import Session


class Missing(Exception):
    """There is nothing to run; the message says why."""


@dataclass(frozen=True)
class Launch:
    """What is run: name is a path, or that of a module; cells is a file with the code of a notebook's."""

    name: str
    arguments: Sequence[str]
    module: bool = False
    cells: str | None = None
    edits: Sequence[str] = ()


def run(launch: Launch, session: Session) -> None:
    """Run it to its end. Raises Missing, and whatever it raises."""
    if launch.cells is not None:
        _notebook(launch, session)
    elif launch.module:
        _module(launch, session)
    else:
        _file(launch, session)


def _file(launch: Launch, session: Session) -> None:
    """As `python script arguments…`: also a folder with a `__main__.py`."""
    sys.argv = [launch.name, *launch.arguments]
    path, package = os.path.abspath(launch.name), None  # noqa: PTH100
    if os.path.isdir(path):  # noqa: PTH112
        sys.path.insert(0, path)
        path, package = os.path.join(path, "__main__.py"), ""  # noqa: PTH118
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    names = _main(__file__=path, __loader__=loader, __package__=package)
    _execute(path, launch, session, names)


def _module(launch: Launch, session: Session) -> None:
    """As `python -m module arguments…`; of a package, its `__main__`."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    sys.argv = ["-m", *launch.arguments]  # what it is while the packages around it are imported
    spec = _found(launch.name)
    if spec.submodule_search_locations is not None:
        inner = _found(f"{launch.name}.__main__", f"`{launch.name}` is a package without `__main__`")
        spec = inner
    path = spec.origin
    if path is None or not path.endswith(".py"):
        raise Missing(f"`{launch.name}` is not written in Python")
    sys.argv = [path, *launch.arguments]
    names = _main(__file__=path, __loader__=spec.loader, __package__=spec.parent, __spec__=spec)
    _execute(path, launch, session, names)


def _found(name: str, otherwise: str | None = None) -> importlib.machinery.ModuleSpec:
    """Where a module is. Raises Missing, and what the packages around it raise when they are imported."""
    spec = None
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    except ValueError:
        pass
    if spec is None:
        raise Missing(otherwise or f"there is no module `{name}`, looked for from {os.getcwd()}")  # noqa: PTH109
    return spec


def _notebook(launch: Launch, session: Session) -> None:
    """As Jupyter: one cell after the other, in the notebook's folder."""
    assert launch.cells is not None
    with open(launch.cells, encoding="utf-8") as file:  # noqa: PTH123
        cells = json.load(file)
    path = os.path.abspath(launch.name)  # noqa: PTH100
    sys.argv = [launch.name, *launch.arguments]
    sys.path.insert(0, os.path.dirname(path))  # noqa: PTH120
    os.chdir(os.path.dirname(path))  # noqa: PTH120
    session.observations.write("script", file=path)
    names = _main(__loader__=None, __package__=None)
    names.update(display=_display, get_ipython=lambda: _SHELL)
    for cell in cells:
        for row, text in cell["left_out"]:
            session.observations.write("left out", file=cell["path"], row=row, text=text)
        rows = cell["text"].splitlines(keepends=True)
        # Without a time, so that nobody looks for a file that is newer.
        linecache.cache[cell["path"]] = len(cell["text"]), None, rows, cell["path"]
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compiled(cell["text"].encode(), cell["path"], flags)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)


class _Shell:
    """What `get_ipython()` returns: magics and commands that do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


_SHELL = _Shell()


def _display(*shown: Any, **options: Any) -> None:
    for each in shown:
        print(each)


def _main(**known: Any) -> dict[str, Any]:
    """The names of a new module `__main__`."""
    module = types.ModuleType("__main__")
    module.__dict__.update({"__builtins__": __builtins__, "__annotations__": {}}, **known)
    if "__file__" in known:
        module.__dict__["__cached__"] = None
    sys.modules["__main__"] = module
    return module.__dict__


def _execute(path: str, launch: Launch, session: Session, names: dict[str, Any]) -> None:
    """Run a file, with the edits made in its source."""
    session.observations.write("script", file=path)
    with io.open_code(path) as file:
        data = file.read()
    source(session, path, data)
    exec(compiled(rewritten(data, launch.edits), path), names)


def source(session: Session, path: str, data: bytes) -> None:
    """Write which file of the user's is run, and what it is then: it may be another one later."""
    session.observations.write("source", file=path, sha256=hashlib.sha256(data).hexdigest())
