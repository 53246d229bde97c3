"""What the README shows of the probe is what it prints, apart from times, memory and versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def known_size(text: str) -> str:
    """A report without what differs from run to run and from machine to machine."""
    text = re.sub(r"\(Python .*?\)", "(Python)", text)
    text = re.sub(r"\d[\d.]* (s|ms|MiB|GiB)\b", r"# \1", text)
    return re.sub(r"^memory .*$", "memory", text, flags=re.MULTILINE)


def test_the_example_is_real() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = re.search(
        r"\(`shapefix (probe [^`]+)`\):\n\n```text\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE
    )
    assert shown is not None
    ran = subprocess.run(
        [sys.executable, "-m", "shapefix", *shown[1].split()],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "")
    assert known_size(ran.stdout) == known_size(shown[2])
