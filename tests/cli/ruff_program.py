"""Runs the real ruff, to compare the options that shapefix shares with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUFF = Path(sys.executable).with_name("ruff")


def ruff(*arguments: str | Path, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ruff in the current folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}
    return subprocess.run(
        [RUFF, *arguments],
        env=clean | environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
