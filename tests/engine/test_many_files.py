"""A folder of 100,000 files: the first sign of progress, and the memory of the whole run."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = 100_000
VIEW = """\
import torch

logits = torch.zeros(4, 6, 8)
shift = logits[:, :-1, :]
flat = shift.view(-1, 8)
"""
SECONDS = 2.0
MEGABYTES = 500


def processor_seconds(process: int) -> float:
    """Return the time of the processor that a running process has used; waiting for others does not count."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(("folders", "is_terminal"), [(1, True), (1_000, True), (1_000, False)])
def test_an_answer_begins_soon_and_memory_is_bounded(tmp_path: Path, folders: int, is_terminal: bool) -> None:
    tree = tmp_path / "tree"
    for number in range(FILES):
        path = tree / f"d{number % folders}" / f"f{number}.py"
        if number < folders:
            path.parent.mkdir(parents=True)
        path.write_text(VIEW if number < 3 else "import os\nx = 1\n")
    terminal, inside = pty.openpty() if is_terminal else os.pipe()
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "shapefix", "check", "--output-format", "concise", str(tree)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm"},
            stdout=out,
            stderr=inside,
        )
        os.close(inside)
        first = os.read(terminal, 1)
        used = processor_seconds(process.pid)
        with contextlib.suppress(OSError):  # the end of a terminal
            while os.read(terminal, 65_536):
                pass
        os.close(terminal)
        _, status, resources = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    print(f"first output after {used:.1f} s, {resources.ru_maxrss // 1024} MB")
    assert first
    assert process.returncode == 1
    assert (tmp_path / "out").read_text().count("SF101") == 3
    assert used <= SECONDS
    assert resources.ru_maxrss / 1024 <= MEGABYTES
