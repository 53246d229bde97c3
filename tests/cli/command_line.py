"""Runs the command line, in this process or as a program, and the scripts that the tests give to it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from shapefix.cli.main import run

ROOT = Path(__file__).resolve().parents[2]

VIEW = """\
import torch

logits = torch.zeros(4, 6, 8)
shift = logits[:, :-1, :]
flat = shift.view(-1, 8)
"""
"""One SF101 at 5:8, with a safe fix."""

REPAIRED_VIEW = VIEW.replace("shift.view", "shift.reshape")

CLEAN = "import torch\n\nx = torch.zeros(4, 6).view(-1)\n"

SWAPPED = """\
import torch


def mix(x: torch.Tensor):
    B, T, C = x.shape
    return x.view(B, C, T)
"""
"""One SF103 at 6:12, a warning with an unsafe fix."""

MODEL = """\
import torch


def flatten(x):
    return torch.relu(x.view(-1, x.size(-1)))
"""
"""A view that is legal or not depending on the caller."""

CALLER = """\
import torch
from model import flatten

flatten(torch.zeros(4, 6, 8)[:, :-1])
"""


Project: TypeAlias = Callable[..., Path]
"""Writes files into an empty folder, which it returns: `project(src__train="...")` makes src/train.py."""


@pytest.fixture(name="project")
def project_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A Project; test modules import this function to have the fixture `project`."""
    monkeypatch.chdir(tmp_path)

    def make(**files: str | bytes) -> Path:
        for name, content in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return make


@dataclass(frozen=True)
class Ran:
    """What a command line wrote, and its exit code."""

    code: int
    out: str
    err: str


def shapefix(*arguments: str | Path) -> Ran:
    """Run a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def program(
    *arguments: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "shapefix", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | (environment or {}),
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
