"""Follows the tutorials of the manual: writes their files, types their commands, compares what is printed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fork_server

from shapefix.cli.main import run

FOLDER = Path(__file__).parents[1] / "shapefix" / "docs"
UPDATE = "UPDATE_DOCS"

BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<name>[^"]+)")?\n(?P<body>.*?)^```$', re.DOTALL | re.MULTILINE
)
"""A fenced block: a file with its name (or a cell, `train.ipynb: cell 2`), or commands with their output."""
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_MEASURED = re.compile(r"(?<=loss: )\d+\.\d+|\d+(?:\.\d+)?(?= s\b)")
_ENVIRONMENT = {
    "COLUMNS": "78",
    "NO_COLOR": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "you",
    "GIT_AUTHOR_EMAIL": "you@example.org",
    "GIT_COMMITTER_NAME": "you",
    "GIT_COMMITTER_EMAIL": "you@example.org",
}


@dataclass
class Reader:
    """A reader who follows one page in an empty folder."""

    folder: Path
    code: int = 0
    """The exit code of the last command."""
    cells: dict[str, list[str]] = field(default_factory=dict)

    def follow(self, page: str) -> str:
        """Return the page with what its commands print here. What differs in measured values only is kept."""
        return BLOCK.sub(self._block, page)

    def _block(self, block: re.Match[str]) -> str:
        name, body = block["name"], block["body"]
        if name is not None:
            self._write(name, body)
        elif block["kind"] == "console":
            body = _COMMAND.sub(lambda step: f"$ {step[1]}\n{_kept(self._typed(step[1]), step[2])}", body)
            return f"```console\n{body}```"
        return block[0]

    def _write(self, name: str, body: str) -> None:
        name, _, cell = name.partition(": cell ")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not cell:
            path.write_text(body, "utf-8")
            return
        cells = self.cells.setdefault(name, [])
        cells[int(cell) - 1 :] = [body]
        sources = [each.removesuffix("\n").splitlines(keepends=True) for each in cells]
        written: list[dict[str, object]] = [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
            for source in sources
        ]
        path.write_text(json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))

    def _typed(self, line: str) -> str:
        """Run a command line and return what it prints on both streams."""
        if line == "echo $?":
            return f"{self.code}\n"
        if line.startswith("shapefix "):
            words = shlex.split(line)[1:]
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                self.code = run(words[:-2] if words[-2:-1] == [">"] else words)
            if words[-2:-1] == [">"]:
                (self.folder / words[-1]).write_text(printed.getvalue(), "utf-8")
                return ""
            return printed.getvalue()
        python = Path(fork_server.interpreter()).parent
        environment = os.environ | {"PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.run(
            ["bash", "-c", f"exec 2>&1; {line}"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.code = ran.returncode
        return ran.stdout


@contextlib.contextmanager
def reading_in(folder: Path) -> Iterator[Reader]:
    """Make the folder the current one, with the environment of a terminal of 78 columns."""
    kept = {name: os.environ.get(name) for name in (*_ENVIRONMENT, "SHAPEFIX_NO_CACHE")}
    os.environ.update(_ENVIRONMENT, SHAPEFIX_NO_CACHE="1")
    try:
        with contextlib.chdir(folder):
            yield Reader(folder)
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _kept(printed: str, shown: str) -> str:
    """Return what the page shows if it differs in measured values only."""
    return shown if _MEASURED.sub("", printed) == _MEASURED.sub("", shown) else printed


def checked(path: Path, fresh: str) -> None:
    """Compare a page with its fresh text, or update it."""
    if os.environ.get(UPDATE):
        path.write_text(fresh, "utf-8")
    assert path.read_text("utf-8") == fresh, f"update the tutorial with `{UPDATE}=1 pytest {path.stem}`"
