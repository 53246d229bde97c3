"""`shapefix check --fix` and its relatives, with the exit codes of ruff."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import (  # noqa: F401
    CLEAN,
    REPAIRED_VIEW,
    SWAPPED,
    VIEW,
    Project,
    project_in_a_folder,
    shapefix,
)

TEXTS = {"fixable": VIEW, "mixed": VIEW + SWAPPED, "unfixable": SWAPPED, "clean": CLEAN}
RUFF_TEXTS = {
    "fixable": "import os\n",
    "mixed": "import os\n\nx = missing\n",
    "unfixable": "x = missing\n",
    "clean": "x = 1\n",
}
OPTIONS = (
    ["--fix"],
    ["--diff"],
    ["--fix-only"],
    ["--fix", "--exit-non-zero-on-fix"],
    ["--fix-only", "--exit-non-zero-on-fix"],
    ["--fix", "--exit-zero"],
    ["--diff", "--exit-zero"],
)


def _ruff(options: list[str], path: Path) -> int:
    command = [
        str(Path(sys.executable).with_name("ruff")),
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F",
    ]
    return subprocess.run([*command, *options, path], capture_output=True, check=False).returncode


@pytest.mark.parametrize("kind", TEXTS)
def test_exit_codes_and_writes_are_those_of_ruff(project: Project, kind: str) -> None:
    path = project(train=TEXTS[kind]) / "train.py"
    other = path.parent / "ruff" / "train.py"
    other.parent.mkdir()
    for options in OPTIONS:
        path.write_text(TEXTS[kind])
        other.write_text(RUFF_TEXTS[kind])
        code = _ruff(options, other)
        assert shapefix("check", "train.py", *options).code == code, options
        changed = other.read_text() != RUFF_TEXTS[kind]
        assert (path.read_text() != TEXTS[kind]) == changed, options


def test_check_fix_says_what_fix_apply_says(project: Project) -> None:
    path = project(train=VIEW + SWAPPED) / "train.py"
    applied = shapefix("fix", "--apply")
    repaired = path.read_text()
    path.write_text(VIEW + SWAPPED)
    assert shapefix("check", "--fix") == applied
    assert path.read_text() == repaired


def test_a_diff_is_all_that_diff_prints(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    ran = shapefix("check", "--diff", "--output-format", "json")
    assert ran.out == shapefix("fix").out
    assert ran.err == "Would repair 1 finding in 1 file.\n"
    assert (folder / "train.py").read_text() == VIEW


def test_fix_only_is_silent_about_what_remains(project: Project) -> None:
    project(train=VIEW, mix=SWAPPED)
    ran = shapefix("check", "--fix-only")
    assert ran.out.splitlines() == [
        "train.py: repaired 1 x SF101",
        "    5: flat = shift.reshape(-1, 8)",
        "Repaired 1 finding in 1 file.",
    ]
    assert (ran.code, ran.err) == (0, "")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapefix.cli.check.read_input", VIEW.encode)
    ran = shapefix("check", "-", "--diff", "--stdin-filename", "train.py")
    assert (ran.code, ran.out[:13]) == (1, "--- train.py\n")
    assert "+flat = shift.reshape(-1, 8)" in ran.out


def test_the_repaired_text_is_that_of_the_diff(project: Project) -> None:
    path = project(train=VIEW) / "train.py"
    diff = shapefix("check", "--diff").out
    subprocess.run(["git", "apply", "-p0"], input=diff.encode(), check=True)
    assert path.read_text() == REPAIRED_VIEW
