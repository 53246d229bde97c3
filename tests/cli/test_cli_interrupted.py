"""Ctrl-C and SIGTERM during a check of many files: what is found so far is shown."""

from __future__ import annotations

import os
import signal

import pytest
from command_line import CLEAN, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.cli import terminal, watch
from shapefix.cli.check import check
from shapefix.cli.request import CheckRequest
from shapefix.engine.settings import CheckOptions

INTERRUPTED = 130


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def sends_after(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of finished files after which this process gets a signal."""
    limit = [1]

    def progress(bar: object, done: int, total: int) -> None:
        if done == limit[0]:
            limit[0] = -1
            os.kill(os.getpid(), request.param)

    monkeypatch.setattr(terminal.ProgressBar, "__call__", progress)
    return limit


def test_the_findings_so_far_are_shown(project: Project, sends_after: list[int]) -> None:
    project(a_bad=VIEW, b=VIEW, c=CLEAN)
    ran = shapefix("check", "--no-cache", "--jobs", "1")
    assert ran.code == INTERRUPTED
    assert "SF101" in ran.out
    assert "a_bad.py:5:8" in ran.out
    assert "b.py" not in ran.out
    assert ran.err == "warning: interrupted after 1 of 3 files; the output is incomplete\n"


@pytest.mark.parametrize("sends_after", [signal.SIGINT], indirect=True)
@pytest.mark.parametrize(
    "arguments", [["--output-format", "json"], ["--baseline", "x.json", "--write-baseline"]]
)
def test_programs_get_no_part_of_the_findings(
    project: Project, sends_after: list[int], arguments: list[str]
) -> None:
    folder = project(a_bad=VIEW, b=VIEW, c=CLEAN)
    ran = shapefix("check", "--no-cache", "--jobs", "1", *arguments)
    assert (ran.code, ran.out) == (INTERRUPTED, "")
    assert not (folder / "x.json").exists()


@pytest.mark.parametrize("sends_after", [signal.SIGINT], indirect=True)
def test_a_fix_that_is_interrupted_writes_nothing(project: Project, sends_after: list[int]) -> None:
    folder = project(a_bad=VIEW, b=VIEW)
    assert shapefix("fix", "--apply", "--no-cache", "--jobs", "1").code == INTERRUPTED
    assert (folder / "a_bad.py").read_text() == VIEW


@pytest.mark.parametrize("sends_after", [signal.SIGINT], indirect=True)
def test_an_interrupt_during_a_check_ends_the_watch(project: Project, sends_after: list[int]) -> None:
    project(a_bad=VIEW, b=VIEW)
    options = CheckOptions(jobs=1, use_cache=False)
    request = CheckRequest((".",), options, None, False, None, "auto", False, False)
    assert watch.watch(request, check) == INTERRUPTED


def test_a_comment_is_not_unused_where_other_files_are_unchecked(
    project: Project, sends_after: list[int]
) -> None:
    project(a="import torch\n\n\ndef f(x):\n    return x.view(-1)  # noqa: SF101\n", b=CLEAN)
    assert "SF001" not in shapefix("check", "--no-cache", "--jobs", "1", "--select", "SF").out


def test_an_interrupt_before_the_first_file_shows_nothing(project: Project, sends_after: list[int]) -> None:
    sends_after[0] = 0
    project(a=VIEW, b=CLEAN)
    ran = shapefix("check", "--no-cache", "--jobs", "1")
    assert (ran.code, ran.out) == (INTERRUPTED, "")
