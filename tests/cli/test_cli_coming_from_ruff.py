"""Each row of the page about ruff, run with both programs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import (  # noqa: F401
    CLEAN,
    ROOT,
    SWAPPED,
    VIEW,
    Project,
    program,
    project_in_a_folder,
    shapefix,
)
from ruff_program import ruff

PAGE = (ROOT / "shapefix" / "docs" / "coming-from-ruff.md").read_text("utf-8")
OURS = {"train.py": VIEW, "model.py": SWAPPED, "clean.py": CLEAN}
THEIRS = {
    "train.py": "import os\n",
    "model.py": "def f() -> None:\n    x = 1\n",
    "clean.py": "x = 1\n",
}
"""F401 with a safe fix, and F841 with an unsafe one."""


def table(title: str) -> list[list[str]]:
    """The rows of the table in a section, without its heading."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@dataclass(frozen=True)
class Outcome:
    """What a command line does: exit code, changed and reported files, and whether it prints anything."""

    code: int
    written: frozenset[str]
    reported: frozenset[str]
    prints: bool


def outcome(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Run a command line in a new folder with the files of its program."""
    words = shlex.split(line.strip("`"))
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    name, *arguments = words[len(variables) :]
    files = THEIRS if name == "ruff" else OURS
    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    (folder / "other.toml").write_text("exclude = ['train.py']\n")
    monkeypatch.chdir(folder)
    if name == "ruff":
        if "-" in arguments:
            arguments += ["--isolated"]
        ran = ruff(*arguments, **variables, stdin=files["train.py"])
        code, out = ran.returncode, ran.stdout
    else:
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr("shapefix.cli.check.read_input", lambda: files["train.py"].encode())
        ours = shapefix(*arguments)
        code, out = ours.code, ours.out
        for variable in variables:
            monkeypatch.delenv(variable)
    report = folder / "report.txt"
    shown = out + (report.read_text() if report.exists() else "")
    written = {path for path, text in files.items() if (folder / path).read_text() != text}
    reported = {path for path in files if path in shown}
    return Outcome(code, frozenset(written), frozenset(reported), bool(shown))


@pytest.mark.parametrize("row", table("Commands"), ids=lambda row: row[1].strip("`"))
def test_a_command_does_what_that_of_ruff_does(
    row: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours, code, what = row
    assert (
        theirs.split("ruff ", 1)[1].split()[:2] == ours.split("shapefix ", 1)[1].split()[:2] or "F" in theirs
    )
    expected = outcome(theirs, tmp_path / "theirs", monkeypatch)
    assert expected.code == int(code)
    found = outcome(ours, tmp_path / "ours", monkeypatch)
    assert found.code == int(code)
    assert found.written == expected.written
    assert bool(found.written) == ("writes" in what)
    if "writes" not in what and "settings" not in what:
        # The lists of repairs and of settings differ in form.
        assert found.reported == expected.reported
        assert found.prints == expected.prints or "clean" in ours


@pytest.mark.parametrize("row", table("Comments"), ids=lambda row: row[1].strip("`"))
def test_a_comment_does_what_that_of_ruff_does(project: Project, row: list[str]) -> None:
    theirs, ours, what = (cell.strip("`") for cell in row)
    folder = project()
    codes = []
    for name, comment in (("ruff", theirs), ("shapefix", ours)):
        text = "import os\n" if name == "ruff" else VIEW
        path = folder / f"{name}_code.py"
        is_for_file = "file" in what
        path.write_text(f"{text}{comment}\n" if is_for_file else f"{text[:-1]}  {comment}\n")
        if name == "ruff":
            # E501 would be an unused code, which is a finding, too.
            codes.append(ruff("check", "--no-cache", "--select", "F", path).returncode)
        else:
            codes.append(shapefix("check", "--no-cache", path).code)
    assert codes == [what == "nothing"] * 2
    theirs_code = ruff("check", "--no-cache", "--select", "F", "--ignore-noqa", "ruff_code.py").returncode
    assert shapefix("check", "--no-cache", "--ignore-noqa", "shapefix_code.py").code == theirs_code == 1


def test_the_keys_of_ruff_exist() -> None:
    section = PAGE.split("these exist:", 1)[1].split("`shapefix config`")[0]
    keys = re.findall(r"`([\w.-]+)`", section)
    assert len(keys) >= 14
    for key in keys:
        assert ruff("config", key).returncode == 0, key
        assert shapefix("config", key.removeprefix("lint.")).code == 0, key


@pytest.mark.parametrize("row", table("What differs"), ids=lambda row: row[0].strip("`"))
def test_differences(project: Project, row: list[str]) -> None:
    folder = project(broken="x = (\n")
    (folder / "empty").mkdir()
    line, theirs, ours = row
    arguments = shlex.split(line.strip("`"))
    assert ruff(*arguments, "--no-cache").returncode == int(theirs)
    assert shapefix(*arguments, "--no-cache").code == int(ours)
