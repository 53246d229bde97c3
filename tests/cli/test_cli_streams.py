"""Closed, full and vanished streams and folders: a clear line and exit code 2, never a traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from command_line import ROOT, VIEW, Project, project_in_a_folder  # noqa: F401

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.relu()


Net()(torch.zeros(2, 4))
"""
FINDING, CLEAN, FAILED, PIPE = 1, 0, 2, 141
COMMANDS: dict[str, int] = {
    "check train.py": FINDING,
    "fix train.py": FINDING,
    "shapes net.py": CLEAN,
    "explain SF101": CLEAN,
    "probe missing.py": FAILED,
    "nonsense": FAILED,
}
SHORT = ("check train.py", "nonsense")
"""Commands that stand for the others in the short run."""
SOME = [pytest.param(each, marks=() if each in SHORT else pytest.mark.long) for each in COMMANDS]
FULL = "error: output cannot be written: No space left on device\n"
CLOSED = "error: standard output is closed\n"


def ran(command: str, redirections: str) -> tuple[int, str, str]:
    """Run a command in a shell; return its exit code, its output and its errors."""
    words = shlex.join([sys.executable, "-m", "shapefix"])
    done = subprocess.run(
        ["bash", "-c", f"{words} {command} {redirections}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", SOME)
def test_streams_that_are_closed_or_full(project: Project, command: str) -> None:
    project(train=VIEW, net=NET)
    code = COMMANDS[command]
    _, out, err = ran(command, "")
    # A usage error is on stderr, and needs no output.
    full = (FAILED, "", FULL if out else err)
    assert ran(command, ">/dev/full") == full
    assert ran(command, ">&-") == (FAILED, "", CLOSED)
    assert ran(command, "2>&- <&-") == (code, out, "")


@pytest.mark.slow
@pytest.mark.parametrize("command", SOME)
def test_several_streams_that_are_closed_or_full(project: Project, command: str) -> None:
    project(train=VIEW, net=NET)
    code = COMMANDS[command]
    _, out, err = ran(command, "")
    assert ran(command, "2>&-") == (code, out, "")
    assert ran(command, "2>/dev/full") == (code, out, "")
    assert ran(command, ">/dev/full 2>/dev/full")[0] == FAILED
    assert ran(command, ">&- 2>&-") == (FAILED, "", "")
    assert ran(command, "<&-") == (code, out, err)
    assert ran(command, "<&- >&- 2>&-")[0] == FAILED
    gone, _, err = ran(command, "> >(exec true); exit $?")
    assert gone in (code, PIPE)
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in SOME if "nonsense" not in each.values])
def test_a_deleted_working_folder(
    project: Project, tmp_path_factory: pytest.TempPathFactory, command: str
) -> None:
    folder = project(train=VIEW, net=NET)
    gone = tmp_path_factory.mktemp("gone")
    for written in dict.fromkeys((command, command.replace("train.py", f"{folder}/train.py"))):
        done = subprocess.run(
            ["bash", "-c", f"cd {gone}; rmdir {gone}; {sys.executable} -m shapefix {written}"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        gone.mkdir()
        if command.partition(" ")[0] in ("check", "fix", "shapes", "probe"):
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == "error: the current folder does not exist any more\n"
        else:
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "redirection", "reason"),
    [
        ("check -", "<&-", "it is closed"),
        ("fix -", "<&-", "it is closed"),
        ("check -", "0>written", "bad file descriptor"),
    ],
)
def test_an_input_that_cannot_be_read(project: Project, command: str, redirection: str, reason: str) -> None:
    project(train=VIEW)
    assert ran(command, redirection) == (2, "", f"error: standard input cannot be read: {reason}\n")


@pytest.mark.slow
def test_repairs_are_written_where_the_output_is_lost(project: Project) -> None:
    folder = project(train=VIEW)
    assert ran("fix --apply train.py", ">/dev/full") == (2, "", FULL)
    assert (folder / "train.py").read_text().count("shift.reshape") == 1


@pytest.mark.slow
def test_a_reader_of_few_lines(project: Project) -> None:
    project(**{f"train{number}": VIEW for number in range(300)})
    for command in ("check", "fix", "rules"):
        code, out, err = ran(command, "| head -n 1; exit ${PIPESTATUS[0]}")
        assert code in (0, 1, PIPE)
        assert out.count("\n") == 1
        assert err == "" or "Traceback" not in err
