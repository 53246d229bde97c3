"""Execute texts with real torch, and describe the values that they end with.

As a program, it reads a list of texts as JSON from a file, with the modules that they import, and writes
their outcomes to another one. With `gpu` as the third argument it runs them on a fake GPU, whose tensors have
sizes but no values.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fork_server
from value_descriptions import FOLDER, described_names

TEXT = "<text>"
SUPPORT = Path(__file__).resolve().parents[1] / "rules"


@dataclass(frozen=True)
class Texts:
    """The text of a program, and those of the modules that it imports, by name."""

    main: str
    modules: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([self.main, *(f"# {name}\n{text}" for name, text in self.modules.items())])


@dataclass(frozen=True)
class Outcome:
    """The exception that ended a text, what raised it, and the described values of the text's names.

    place is the name of the module, or "" for the text itself, and the line.
    """

    error: str | None
    place: tuple[str, int]
    values: dict[str, Any]


def outcomes(texts: Sequence[Texts], gpu: bool = False) -> list[Outcome]:
    """Execute all texts in one process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "texts.json"), Path(folder, "outcomes.json")
        asked.write_text(json.dumps([[each.main, dict(each.modules)] for each in texts]), encoding="utf-8")
        paths = [str(SUPPORT), str(SUPPORT.parent), str(SUPPORT.parents[1])]
        environment = os.environ | fork_server.STARTUP | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [
            fork_server.interpreter(), __file__, str(asked), str(answered), *(["gpu"] if gpu else [])
        ]  # fmt: skip
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        return [
            Outcome(each["error"], (each["place"][0], each["place"][1]), each["values"])
            for each in json.loads(answered.read_text("utf-8"))
        ]


@contextlib.contextmanager
def _importable(modules: Mapping[str, str]) -> Iterator[None]:
    """Make texts importable as modules, and their packages."""
    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        for name, text in modules.items():
            path = Path(folder, *name.split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        names = {part for name in modules for part in (name, name.split(".")[0])}
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(folder)
            for name in names:
                sys.modules.pop(name, None)


def _place(raised: Exception, modules: Mapping[str, str]) -> tuple[str, int]:
    """The last line of the text or of its modules that the exception passed."""
    paths = {TEXT: ""}
    for name in modules:
        if name in sys.modules:
            paths[str(sys.modules[name].__file__)] = name
    rows = [row for row in traceback.extract_tb(raised.__traceback__) if row.filename in paths]
    return (paths[rows[-1].filename], rows[-1].lineno or 0) if rows else ("", 0)


def _executed(text: str, modules: Mapping[str, str]) -> dict[str, Any]:
    import numpy as np
    import torch

    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    names: dict[str, Any] = {"__name__": "__main__"}
    error, place = None, ("", 0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(_importable(modules))
        if any("transformers" in each for each in (text, *modules.values())):
            from tiny import tiny_things

            stack.enter_context(tiny_things())
        if any("load_dataset" in each for each in (text, *modules.values())):
            from tiny import tiny_datasets

            stack.enter_context(tiny_datasets())
        try:
            exec(compile(text, TEXT, "exec", dont_inherit=True), names)
        except Exception as raised:
            error, place = f"{type(raised).__name__}: {raised}", _place(raised, modules)
        finally:
            # The next text may create a group of its own.
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()
        values = described_names(names)
    return {"error": error, "place": place, "values": values}


if __name__ == "__main__":
    if sys.argv[3:] == ["gpu"]:
        from pretended_gpu import install

        install()
    asked, answered = map(Path, sys.argv[1:3])
    found = []
    for number, (text, modules) in enumerate(json.loads(asked.read_text("utf-8"))):
        found.append(_executed(text, modules))
        if number % 20 == 0:
            gc.collect()
    answered.write_text(json.dumps(found), encoding="utf-8")
