"""Run a file, a folder, a module, or the cells of a notebook, as Python or Jupyter would."""

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol import ScriptLine, SkippedMagicLine, SourceLine
from .fake_gpu.rewriting import apply_edits
from .handler_hooks import compile_with_hooks
from .session import Session


class NothingToRun(Exception):
    """The script does not exist or cannot be run; the message says why."""


@dataclass(frozen=True)
class Launch:
    """A script to run: name is a path, or a module's name; cells is a file with the cells of a notebook.

    edits are those of the script's file, texts are the files with other texts of cells, by their real paths.
    """

    name: str
    arguments: Sequence[str]
    module: bool = False
    cells: str | None = None
    edits: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


def run(launch: Launch, session: Session) -> None:
    """Run it to its end. Raises NothingToRun, and any exception of the script."""
    if launch.cells is not None:
        _notebook(launch, session)
    elif launch.module:
        _module(launch, session)
    else:
        _file(launch, session)


def _file(launch: Launch, session: Session) -> None:
    """Run a file, or a folder with a `__main__.py`, like `python script arguments…`."""
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
    """Run a module, or the `__main__` of a package, like `python -m module arguments…`."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    sys.argv = ["-m", *launch.arguments]  # as Python has it while parent packages are imported
    spec = _found(launch.name)
    if spec.submodule_search_locations is not None:
        inner = _found(f"{launch.name}.__main__", f"`{launch.name}` is a package without `__main__`")
        spec = inner
    path = spec.origin
    if path is None or not path.endswith(".py"):
        raise NothingToRun(f"`{launch.name}` is not written in Python")
    sys.argv = [path, *launch.arguments]
    names = _main(__file__=path, __loader__=spec.loader, __package__=spec.parent, __spec__=spec)
    _execute(path, launch, session, names)


def _found(name: str, otherwise: str | None = None) -> importlib.machinery.ModuleSpec:
    """Find a module. Raises NothingToRun, and exceptions of its parent packages."""
    spec = None
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    except ValueError:
        pass
    if spec is None:
        raise NothingToRun(otherwise or f"no module named `{name}` (searched from {os.getcwd()})")  # noqa: PTH109
    return spec


def _notebook(launch: Launch, session: Session) -> None:
    """Run one cell after the other in the notebook's folder, like Jupyter."""
    assert launch.cells is not None
    with open(launch.cells, encoding="utf-8") as file:  # noqa: PTH123
        cells = json.load(file)
    path = os.path.abspath(launch.name)  # noqa: PTH100
    sys.argv = [launch.name, *launch.arguments]
    sys.path.insert(0, os.path.dirname(path))  # noqa: PTH120
    os.chdir(os.path.dirname(path))  # noqa: PTH120
    session.sink.write(ScriptLine(kind="script", file=path))
    names = _main(__loader__=None, __package__=None)
    names.update(display=_display, get_ipython=lambda: _SHELL)
    for cell in cells:
        for row, text in cell["skipped"]:
            session.sink.write(SkippedMagicLine(kind="skipped_magic", file=cell["path"], row=row, text=text))
        text = _cell_text(cell, launch.texts)
        # Without a time, so that linecache does not look for a newer file.
        linecache.cache[cell["path"]] = len(text), None, text.splitlines(keepends=True), cell["path"]
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile_with_hooks(text.encode(), cell["path"], flags)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)


def _cell_text(cell: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    other = texts.get(os.path.realpath(cell["path"]))
    if other is None:
        return str(cell["text"])
    with open(other, encoding="utf-8", newline="") as file:  # noqa: PTH123
        return file.read()


class _Shell:
    """The result of `get_ipython()`: magics and commands without any effect."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


_SHELL = _Shell()


def _display(*shown: Any, **options: Any) -> None:
    for each in shown:
        print(each)


def _main(**known: Any) -> dict[str, Any]:
    """The globals of a new module `__main__`."""
    module = types.ModuleType("__main__")
    module.__dict__.update({"__builtins__": __builtins__, "__annotations__": {}}, **known)
    if "__file__" in known:
        module.__dict__["__cached__"] = None
    sys.modules["__main__"] = module
    return module.__dict__


def _execute(path: str, launch: Launch, session: Session, names: dict[str, Any]) -> None:
    """Run a file with edits in its source."""
    session.sink.write(ScriptLine(kind="script", file=path))
    with io.open_code(path) as file:
        data = file.read()
    record_source(session, path, data)
    exec(compile_with_hooks(apply_edits(data, launch.edits), path), names)


def record_source(session: Session, path: str, data: bytes) -> None:
    """Record an executed file of the user's, with its digest: it may change later."""
    session.sink.write(SourceLine(kind="source", file=path, sha256=hashlib.sha256(data).hexdigest()))
