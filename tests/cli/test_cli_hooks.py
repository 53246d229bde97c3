"""The hooks of pre-commit: the commands that it runs on changed files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import (  # noqa: F401
    CALLER,
    CLEAN,
    MODEL,
    REPAIRED_VIEW,
    SWAPPED,
    VIEW,
    Project,
    Ran,
    project_in_a_folder,
    shapefix,
)

HOOKS = {
    name: shlex.split(entry)
    for name, entry in re.findall(
        r"^- id: (\S+)$.*?^  entry: (.+?)$",
        (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
}


def hook(name: str, *changed: str) -> Ran:
    program, *arguments = HOOKS[name]
    assert program == "shapefix"
    return shapefix(*arguments, *changed)


def test_a_changed_model_is_checked_as_its_unchanged_importers_use_it(project: Project) -> None:
    folder = project(model=MODEL, train=CALLER)
    (folder / ".git").mkdir()
    ran = hook("shapefix", "model.py")
    assert (ran.code, "error[SF101]" in ran.out, "train.py" in ran.out) == (1, True, True)
    assert hook("shapefix-fix", "model.py").code == 0
    assert (folder / "model.py").read_text() == MODEL.replace("x.view", "x.reshape")
    assert (folder / "train.py").read_text() == CALLER
    assert hook("shapefix", "model.py").code == 0


@pytest.mark.parametrize(
    ("text", "repaired", "left"),
    [(CLEAN, CLEAN, 0), (VIEW, REPAIRED_VIEW, 0), (SWAPPED, SWAPPED, 1), (VIEW + SWAPPED, None, 1)],
)
def test_the_hook_that_repairs_leaves_failing_to_the_one_that_reports(
    project: Project, text: str, repaired: str | None, left: int
) -> None:
    folder = project(train=text)
    # pre-commit fails a hook that changes files, and hides the output of one that passes.
    assert hook("shapefix-fix", "train.py").code == 0
    assert (folder / "train.py").read_text() == (repaired or text.replace("shift.view", "shift.reshape"))
    assert hook("shapefix", "train.py").code == left


def test_files_that_cannot_be_read_fail_both_hooks(project: Project) -> None:
    project(train="import torch\ndef f(:\n")
    assert [hook(name, "train.py").code for name in sorted(HOOKS)] == [2, 2]


def test_excluded_files_are_left_alone_even_if_they_are_passed(project: Project) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('exclude = ["train.py"]\n')
    assert [hook(name, "train.py").code for name in sorted(HOOKS)] == [0, 0]
    assert (folder / "train.py").read_text() == VIEW
