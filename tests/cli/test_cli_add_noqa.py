"""`shapefix check --add-noqa`: comments to suppress the findings of today."""

from __future__ import annotations

import pytest
from command_line import (  # noqa: F401
    CLEAN,
    SWAPPED,
    VIEW,
    Project,
    project_in_a_folder,
    shapefix,
)

HABIT = "import torch\n\nloss = torch.zeros(())\nprint(loss.data[0])\n"


@pytest.mark.parametrize(
    ("option", "end"), [("--add-noqa", ""), ("--add-noqa=as in the paper", " as in the paper")]
)
def test_every_finding_is_suppressed_and_no_other_byte_changes(
    project: Project, option: str, end: str
) -> None:
    folder = project(src__train=VIEW.replace("\n", "\r\n"), src__mix=SWAPPED, other=VIEW)
    ran = shapefix("check", option, "src")
    assert (ran.code, ran.out, ran.err) == (0, "", "Suppressed 2 findings in 2 files.\n")
    expected = VIEW.replace("(-1, 8)", f"(-1, 8)  # noqa: SF101{end}").replace("\n", "\r\n")
    assert (folder / "src" / "train.py").read_bytes() == expected.encode()
    assert (folder / "src" / "mix.py").read_text() == SWAPPED.replace("T)\n", f"T)  # noqa: SF103{end}\n")
    assert (folder / "other.py").read_text() == VIEW
    assert shapefix("check", "src").code == 0
    assert shapefix("check", option, "src").err == "Suppressed 0 findings in 0 files.\n"


def test_codes_join_those_of_the_line_and_its_reason(project: Project) -> None:
    path = project(train=VIEW.replace("view(-1, 8)", "view(-1, 8)  # noqa: E501 too long")) / "train.py"
    shapefix("check", "--add-noqa=unused")
    assert path.read_text().endswith("flat = shift.view(-1, 8)  # noqa: E501, SF101 too long\n")


def test_every_place_of_a_habit_gets_a_comment(project: Project) -> None:
    project(one=HABIT, two=HABIT)
    assert shapefix("check").code == 1
    assert shapefix("check", "--add-noqa").code == 0
    assert shapefix("check").code == 0


def test_the_comment_is_after_the_last_line_of_a_statement(project: Project) -> None:
    text = VIEW.replace("shift.view(-1, 8)", "\\\n    shift.view(-1, 8)")
    path = project(train=text) / "train.py"
    assert shapefix("check", "--add-noqa").code == 0
    assert path.read_text() == text[:-1] + "  # noqa: SF101\n"
    assert shapefix("check").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--add-noqa", "--fix"], "--add-noqa and fixes cannot be combined"),
        (["--add-noqa", "-"], "--add-noqa needs files, not standard input"),
        (["--add-noqa=a\nb"], "the reason of --add-noqa must be one line"),
    ],
)
def test_contradictions(project: Project, options: list[str], message: str) -> None:
    path = project(train=VIEW) / "train.py"
    ran = shapefix("check", *options)
    assert ran.code == 2
    assert message in ran.err
    assert path.read_text() == VIEW
