"""`shapefix check --watch`: again after each change."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CLEAN, ROOT, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.cli import watch
from shapefix.cli.request import CheckRequest
from shapefix.engine.settings import CheckOptions


@pytest.fixture
def request_() -> CheckRequest:
    return CheckRequest((".",), CheckOptions(), None, False, None, "auto", False, False)


def test_changes_of_files_and_configurations_are_noticed(project: Project, request_: CheckRequest) -> None:
    folder = project(train=VIEW, src__model=CLEAN)
    (folder / "base.toml").write_text("")
    (folder / "shapefix.toml").write_text("extend = 'base.toml'\n")
    (folder / "notes.txt").write_text("one")
    states = watch.file_states(request_)
    names = {Path(path).name for path in states}
    assert names == {"train.py", "model.py", "shapefix.toml", "base.toml"}
    for name in ("train.py", "base.toml"):
        before = watch.file_states(request_)
        (folder / name).write_text("# changed\n")
        assert watch.file_states(request_) != before, name
    before = watch.file_states(request_)
    (folder / "notes.txt").write_text("another")
    assert watch.file_states(request_) == before
    (folder / "new.py").write_text(CLEAN)
    assert watch.file_states(request_).keys() - before.keys() == {str(folder / "new.py")}
    (folder / "shapefix.toml").write_text("selct = []")
    assert [Path(path).name for path in watch.file_states(request_)] == ["shapefix.toml"]


def test_each_change_is_checked(
    project: Project,
    request_: CheckRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = project(train=CLEAN) / "train.py"
    texts = iter([VIEW, "x = (\n"])
    monkeypatch.setattr(time, "sleep", lambda seconds: path.write_text(next(texts)))
    seen: list[str] = []

    def check(request: CheckRequest) -> int:
        seen.append(path.read_text())
        return len(seen)

    assert watch.watch(request_, check, rounds=3) == 3
    assert seen == [CLEAN, VIEW, "x = (\n"]
    assert capsys.readouterr().err.splitlines()[0] == "Watching for changes; Ctrl-C ends."


def test_an_error_in_the_configuration_can_be_repaired(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text("selct = []\n")
    once = watch.watch

    def repaired(seconds: float) -> None:
        (folder / "shapefix.toml").write_text("preview = true\n")

    monkeypatch.setattr(time, "sleep", repaired)
    monkeypatch.setattr(watch, "watch", lambda request, check: once(request, check, rounds=2))
    ran = shapefix("check", "--watch", "--output-format", "concise")
    assert ran.code == 1
    assert ran.err.splitlines()[1].endswith("shapefix.toml: unknown key 'selct'; did you mean 'select'?")
    assert ran.err.splitlines()[2] == "Files changed."
    assert ran.out.startswith("train.py:5:8: SF101")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_cleared(
    project: Project, request_: CheckRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(train=VIEW)
    for stream, cleared in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        watch.watch(request_, lambda request: sys.stdout.write("report"), rounds=1)
        assert stream.getvalue().endswith("report")
        assert stream.getvalue().startswith("\x1b[2J") == cleared


def test_standard_input_cannot_be_watched() -> None:
    ran = shapefix("check", "--watch", "-")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --watch needs files, not standard input")


def test_an_interrupt_ends_it(project: Project) -> None:
    folder = project(train=CLEAN)
    process = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "check", "-w", "--output-format", "concise"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "Watching for changes; Ctrl-C ends.\n"
        time.sleep(0.1)
        (folder / "train.py").write_text(VIEW)
        while "Files changed" not in process.stderr.readline():
            pass
        assert process.stdout is not None
        while "SF101" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    finally:
        process.kill()
