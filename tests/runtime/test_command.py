"""`shapefix probe` as a program: its exit codes, its streams, and an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from probing import runs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

ENVIRONMENT = {
    "COLUMNS": "100",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
    "VIRTUAL_ENV": sys.prefix,
}

WRONG = """\
import torch

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
model(torch.randn(4, 3, 8, 8)).sum().backward()
"""
RIGHT = WRONG.replace("64", "192") + "torch.optim.SGD(model.parameters(), 0.1).step()\n"


def shapefix(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapefix", "probe", *arguments],
        cwd=folder,
        env=os.environ | ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_finding(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRONG)
    ran = shapefix("train.py", "--", "--epochs", "3", folder=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "error[SF501] in-features: `1` (Linear) expects in_features=64 but gets f32[4, 192]" in ran.stdout
    assert "--> train.py:3:49" in ran.stdout
    assert "= fix (unsafe): torch.nn.Linear(192, 10)\n" in ran.stdout
    assert ran.stdout.endswith("Found 1 error. Try `shapefix probe --repair`.\n")
    assert ran.stderr == ""


def test_nothing_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    ran = shapefix("--timeout", "200", "train.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("train.py: 1 training step (Python ")
    assert ran.stdout.endswith("Nothing found.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "error: nowhere.py: no such file\n"),
        (["."], "error: .: is a directory without `__main__.py`; pass the training script in it\n"),
        (["--python", "no-python", "train.py"], "error: no-python: no such interpreter; "),
        ([], "error: missing argument 'SCRIPT'"),
    ],
    ids=["missing", "folder", "interpreter", "nothing"],
)
def test_what_cannot_be_run(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    ran = shapefix(*arguments, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(said)


def test_a_script_that_shows_nothing_ends_with_2_and_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('cannot find \\x1b[31mdata')\nsys.exit(1)\n")
    ran = shapefix("train.py", folder=tmp_path)
    assert ran.returncode == 2
    assert "last output\n  cannot find ␛[31mdata\n" in ran.stdout


def test_a_script_that_reads_standard_input_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("lr = float(input('learning rate? '))\n")
    ran = shapefix("train.py", folder=tmp_path)
    assert ran.returncode == 2
    assert "EOF when reading a line; under the probe, a script has no standard input" in ran.stdout
    assert "--> train.py:1:12" in ran.stdout


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="the note must be where the probe maps nothing")
@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["interrupted", "terminated", "killed"],
)
def test_an_end_of_the_probe_is_one_of_the_script(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    (tmp_path / "temporary").mkdir()
    script = "import os, time\nprint(os.getpid(), file=open(os.environ['NOTE'], 'w'))\ntime.sleep(200)\n"
    (tmp_path / "train.py").write_text(script)
    note = Path("/dev/shm") / f"shapefix-{os.getpid()}-{code}"
    process = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "probe", "train.py"],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT | {"NOTE": str(note), "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: note.exists() and bool(note.read_text().strip()), 100)
        child = int(note.read_text())
        process.send_signal(sent)
        process.wait(timeout=30)
    finally:
        process.kill()
        note.unlink(missing_ok=True)
    assert process.returncode == code
    wait_until(lambda: not runs(child), 20)
    assert not runs(child)
    if sent != signal.SIGKILL:  # which leaves nobody to clean up
        assert process.communicate()[1] == b""
        assert list((tmp_path / "temporary").iterdir()) == []


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(
    ("before", "command", "error"),
    [
        ("true", ">&-", "error: standard output is closed"),
        ("true", ">/dev/full", "error: output cannot be written: No space left on device"),
        (
            "true",
            "--output-format json >/dev/full",
            "error: output cannot be written: No space left on device",
        ),
        ("rmdir $PWD", "", "error: the current folder does not exist any more"),
        ("rmdir $PWD", "-m train", "error: the current folder does not exist any more"),
    ],
)
def test_an_output_or_folder_that_is_gone_is_one_line(
    tmp_path: Path, before: str, command: str, error: str
) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    (tmp_path / "inner").mkdir()
    script = "" if "-m" in command else "../train.py"
    run = f'cd inner; {before}; "$0" -m shapefix probe {script} {command}'
    ran = subprocess.run(
        ["sh", "-c", run, sys.executable],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", error + "\n")


def test_closed_input_and_errors_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    run = '"$0" -m shapefix probe train.py <&- 2>&-'
    ran = subprocess.run(
        ["sh", "-c", run, sys.executable],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stdout.endswith("Nothing found.\n")
