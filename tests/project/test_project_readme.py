"""What the README shows is what shapefix prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def printed(*arguments: str) -> str:
    """What a command line prints in the checkout, 100 columns wide."""
    ran = subprocess.run(
        [sys.executable, "-m", "shapefix", *arguments],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


@pytest.mark.parametrize("command", re.findall(r"\(`shapefix ((?:check|fix|shapes) [^`]+)`\):\n", README))
def test_examples_are_real(command: str) -> None:
    _, _, after = README.partition(f"(`shapefix {command}`):\n")
    shown = re.match(r"\n```\w+\n(.*?)^```$", after, re.DOTALL | re.MULTILINE)
    assert shown is not None
    arguments = command.split()
    if arguments[0] != "shapes":
        arguments.append("--no-cache")
    assert shown[1] == printed(*arguments)


def test_there_are_examples() -> None:
    assert len(re.findall(r"\(`shapefix (?:check|fix|shapes) [^`]+`\):\n", README)) == 3


def test_both_lines_of_the_set_up_are_there_and_ci_runs_the_second() -> None:
    assert (
        "    python -m venv .venv && .venv/bin/pip install . && .venv/bin/shapefix check fixtures\n" in README
    )
    second = "python -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest\n"
    assert f"    {second}" in README
    assert (ROOT / ".ci" / "run").read_text("utf-8").endswith(f"\n{second}")
