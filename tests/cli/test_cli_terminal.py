"""What somebody at a terminal sees while they wait."""

from __future__ import annotations

import io
import os
import pty
import sys
from pathlib import Path

import pytest
from command_line import VIEW

from shapefix.cli.terminal import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgressBar, "PATIENCE", 0.0)
    monkeypatch.setattr(ProgressBar, "INTERVAL", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")


def progress(stream: io.StringIO) -> str:
    with ProgressBar("Checking", stream) as bar:
        for done in range(1, 4):
            bar(done, 3)
    return stream.getvalue()


def test_the_bar_counts_files_and_is_erased_at_the_end(patience: None) -> None:
    seen = progress(Terminal())
    assert "Checking" in seen
    assert "2/3" in seen
    assert "\x1b[2K" in seen.rpartition("3/3")[2]


def test_no_bar_where_nobody_sees_it(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress(io.StringIO()) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert progress(Terminal()) == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_says_that_very_many_files_are_checked(quiet: bool) -> None:
    stream = io.StringIO()
    with ProgressBar("Checking", stream, quiet) as bar:
        for done in range(3):
            bar(done, 100_000)
    assert stream.getvalue() == ("" if quiet else "Checking 100,000 files\n")


def test_no_bar_for_what_is_done_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert progress(Terminal()) == ""


def on_a_terminal(*arguments: str | Path) -> str:
    """What a command line shows on a terminal of 100 columns."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="100", PYTHONPATH=str(Path(__file__).parents[2]))
        os.environ.pop("NO_COLOR", None)
        os.execv(sys.executable, [sys.executable, "-m", "shapefix", *map(str, arguments)])
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.waitpid(child, 0)
    os.close(terminal)
    return shown.decode()


def test_findings_are_colored_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(VIEW)
    shown = on_a_terminal("check", "--no-cache", tmp_path)
    assert "\x1b[1;31merror[SF101]\x1b[0m" in shown


def test_pages_are_rendered_on_a_terminal_by_a_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "cat -n")
    shown = on_a_terminal("explain", "SF101")
    assert "view-across-stride-gap (SF101)" in shown
    assert "## " not in shown
    assert "shapefix explain SF101 --examples" in shown
    assert "    10\t" in shown
    assert "# view-across-stride-gap" not in shown
    assert "```" not in shown
