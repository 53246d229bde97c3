"""`shapefix check --changed`: findings in the lines changed since a commit."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import (  # noqa: F401
    CALLER,
    CLEAN,
    MODEL,
    SWAPPED,
    VIEW,
    Project,
    project_in_a_folder,
    shapefix,
)

SECOND = "\nwide = logits[:, 1:, :]\nlost = wide.view(-1, 4)\n"


def git(*arguments: str) -> None:
    """Run git in the current folder, without the settings of this machine."""
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], env=os.environ | quiet, check=True, capture_output=True)


def committed() -> None:
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")


def places(*arguments: str) -> list[str]:
    """The places and codes of the findings of a run, whose exit code fits them."""
    ran = shapefix("check", "--no-cache", "--output-format", "concise", *arguments)
    found = re.findall(r"^(\S.*?: SF\d+) ", ran.out, re.MULTILINE)
    assert ran.code == bool(found), ran
    return found


def test_only_changed_lines_count(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    committed()
    assert places("--changed") == []
    path = folder / "train.py"
    path.write_text("# moved\n" + VIEW + SECOND)
    assert places() == ["mix.py:6:12: SF103", "train.py:6:8: SF101", "train.py:9:8: SF101"]
    assert places("--changed") == places("--changed", ".") == ["train.py:9:8: SF101"]
    ran = shapefix("check", "--changed")
    assert ran.err.startswith("note: 2 findings in unchanged lines not shown\n")
    assert shapefix("check", "--changed", "-q").err == ""
    git("add", "-A")
    assert places("--changed") == ["train.py:9:8: SF101"]
    git("commit", "-qm", "second")
    assert places("--changed") == []
    assert places("--changed=HEAD~1") == ["train.py:9:8: SF101"]


def test_lines_changed_in_another_branch_do_not_count(project: Project) -> None:
    folder = project(train=VIEW)
    committed()
    git("checkout", "-qb", "mine")
    (folder / "new.py").write_text(VIEW)
    git("add", "-A")
    git("commit", "-qm", "mine")
    git("checkout", "-q", "main")
    (folder / "train.py").write_text("# theirs\n" + VIEW.replace("view(-1, 8)", "view(-1, 4)"))
    git("commit", "-qam", "theirs")
    git("checkout", "-q", "mine")
    assert places("--changed=main") == ["new.py:5:8: SF101"]


def test_new_and_renamed_files(project: Project) -> None:
    folder = project(train=VIEW, ignored=VIEW)
    (folder / ".gitignore").write_text("ignored.py\n")
    committed()
    (folder / "new file\nü.py").write_text(VIEW)
    assert len(places("--changed")) == 1
    (folder / "new file\nü.py").unlink()
    git("mv", "train.py", "renamed.py")
    (folder / "renamed.py").write_text(VIEW + SECOND)
    assert places("--changed") == ["renamed.py:8:8: SF101"]
    assert places("ignored.py", "--changed") == []


def test_the_whole_project_is_analyzed(project: Project) -> None:
    folder = project(model=MODEL, train=CALLER.replace("[:, :-1]", ""))
    committed()
    (folder / "train.py").write_text(CALLER)
    # The finding is in a line that is not new, and a step of its evidence in one that is.
    assert places("--changed") == ["model.py:5:23: SF101"]
    git("commit", "-qam", "caller")
    (folder / "train.py").write_text(CALLER + "print()\n")
    assert places("--changed") == []


def test_a_line_next_to_a_deleted_one_counts(project: Project) -> None:
    fixed = VIEW.replace("flat =", "shift = shift.contiguous()\nflat =")
    path = project(train=fixed) / "train.py"
    committed()
    path.write_text(VIEW)
    assert places("--changed") == ["train.py:5:8: SF101"]


def test_cells_of_a_notebook(project: Project) -> None:
    path = project() / "train.ipynb"

    def written(*sources: str) -> None:
        cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        cells = [cell | {"id": str(number), "source": source} for number, source in enumerate(sources)]
        path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    written(VIEW)
    committed()
    written("print()", VIEW)
    assert places("--changed") == []
    written("print()", VIEW, SECOND.strip())
    assert places("--changed") == ["train.ipynb:cell 3:2:8: SF101"]


def test_with_a_baseline(project: Project) -> None:
    folder = project(train=VIEW)
    committed()
    shapefix("check", "--baseline", "known.json", "--write-baseline")
    (folder / "train.py").write_text(VIEW.replace("logits =", "logits  =") + SECOND)
    assert places("--changed", "--baseline", "known.json") == ["train.py:8:8: SF101"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--changed=nowhere"], "--changed: 'nowhere' is not a commit of this repository"),
        (["--changed=--output=x"], "--changed: '--output=x' is not a commit of this repository"),
        (["--changed=other"], "--changed: HEAD and 'other' have no commit in common (a shallow clone needs"),
        (["--changed", "/"], "--changed: git: not a git repository"),
        (["--changed", ".", "../outside.py"], "outside.py is not in the repository"),
        (["--changed", "-"], "--changed needs files, not standard input"),
        (["--changed", "--fix"], "--fix and --changed cannot be combined"),
        (["--changed", "--baseline", "b.json", "--write-baseline"], "--changed and --write-baseline cannot"),
    ],
)
def test_errors_of_git_are_one_line(project: Project, arguments: list[str], message: str) -> None:
    folder = project(repository__train=CLEAN, outside=VIEW) / "repository"
    os.chdir(folder)
    committed()
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-qm", "other")
    git("checkout", "-q", "main")
    ran = shapefix("check", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.splitlines()[-1]
    assert len(ran.err.splitlines()) == 1


def test_without_git(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project(train=CLEAN)
    monkeypatch.setenv("PATH", "")
    ran = shapefix("check", "--changed")
    assert (ran.code, ran.err) == (2, "error: --changed: git cannot be run: no such file or directory\n")


def test_in_a_hook(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project(src__train=CLEAN)
    committed()
    Path("src/new.py").write_text(VIEW)
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert places("--changed", "src") == ["src/new.py:5:8: SF101"]


def test_no_driver_or_monitor_of_the_repository_runs(project: Project) -> None:
    folder = project(train=VIEW)
    committed()
    program = folder / ".git" / "program"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    (folder / ".gitattributes").write_text("*.py diff=mine filter=mine\n")
    for key in ("core.fsmonitor", "diff.external", "diff.mine.textconv", "diff.mine.command"):
        git("config", key, str(program))
    (folder / "train.py").write_text(VIEW + SECOND)
    assert places("--changed") == ["train.py:8:8: SF101"]
    assert not (folder / "ran").exists()
