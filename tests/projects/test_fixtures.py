"""Each project under fixtures/ really crashes, is really repaired, and then really learns."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from fixture_projects import FIXTURES, Finding, Project, load, sources, train

PROJECTS = [load(path.parent) for path in sorted(FIXTURES.glob("*/fixture.toml"))]
every_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.folder.name)


@dataclass(frozen=True)
class Repair:
    """One difference between before and after; undone is the repaired file with only this taken back."""

    file: str
    line: int
    was: str
    becomes: str
    undone: str


def repairs(project: Project) -> list[Repair]:
    """Every token that differs between before and after, each with the text in which only it is undone."""
    found = []
    before, after = sources(project.before), sources(project.after)
    assert before.keys() == after.keys()
    for file, text in before.items():
        tokens, repaired = re.findall(r"\w+|\s+|.", text), re.findall(r"\w+|\s+|.", after[file])
        for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, tokens, repaired, False).get_opcodes():
            if tag == "equal":
                continue
            undone = "".join([*repaired[:j], *tokens[i:i_end], *repaired[j_end:]])
            line = "".join(tokens[:i]).count("\n") + 1
            was, becomes = "".join(tokens[i:i_end]), "".join(repaired[j:j_end])
            found.append(Repair(file, line, was, becomes, undone))
    return found


EVERY_REPAIR = [(project, repair) for project in PROJECTS for repair in repairs(project)]


def shapefix(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would, from this checkout."""
    root = FIXTURES.parent
    return subprocess.run(
        [sys.executable, "-m", "shapefix", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def reported(folder: Path) -> list[Finding]:
    """What `shapefix check` reports for folder, at default severities, sorted."""
    answer = shapefix("check", "--output-format", "json", "--no-cache", folder)
    assert answer.returncode in (0, 1), answer.stderr
    found = json.loads(answer.stdout)
    assert bool(found) == bool(answer.returncode)
    return sorted(
        Finding(
            code=finding["code"],
            file=Path(finding["filename"]).resolve().relative_to(folder.resolve()).as_posix(),
            line=finding["location"]["row"],
        )
        for finding in found
    )


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to, ignore=shutil.ignore_patterns("__pycache__")))


def test_there_are_projects() -> None:
    assert len(PROJECTS) >= 5


@every_project
def test_before_dies_with_the_exception_stated(project: Project) -> None:
    run = train(project.command, project.before)
    assert run.returncode != 0
    last_line = run.stderr.strip().splitlines()[-1]
    assert last_line.startswith(f"{project.exception}: {project.message}")


@every_project
def test_before_dies_at_a_place_of_a_finding(project: Project) -> None:
    run = train(project.command, project.before)
    frames = re.findall(r'File "(.+?)", line (\d+)', run.stderr)
    own = [
        (Path(path).relative_to(project.before).as_posix(), int(line))
        for path, line in frames
        if Path(path).is_relative_to(project.before)
    ]
    assert own[-1] in {(finding.file, finding.line) for finding in project.findings}


@every_project
def test_after_trains(project: Project) -> None:
    run = train(project.command, project.after)
    assert run.returncode == 0, run.stderr
    losses = re.search(project.prints, run.stdout)
    assert losses is not None, run.stdout
    assert float(losses["last"]) < 0.7 * float(losses["first"])


@every_project
def test_after_differs_from_before_only_where_a_finding_is(project: Project) -> None:
    places = Counter((repair.file, repair.line) for repair in repairs(project))
    assert places == Counter((finding.file, finding.line) for finding in project.findings)
    assert {(repair.was, repair.becomes) for repair in repairs(project)} == {("view", "reshape")}


@pytest.mark.parametrize(
    ("project", "repair"),
    EVERY_REPAIR,
    ids=[
        f"{project.folder.name}-{repair.file}-{repair.line}-{i}"
        for i, (project, repair) in enumerate(EVERY_REPAIR)
    ],
)
def test_every_repair_is_needed(project: Project, repair: Repair, tmp_path: Path) -> None:
    copy = copied(project.after, tmp_path / "project")
    (copy / repair.file).write_bytes(repair.undone.encode("utf-8"))
    run = train(project.command, copy)
    assert run.returncode != 0
    assert f"{project.exception}: {project.message}" in run.stderr
    assert f'{repair.file}", line {repair.line}' in run.stderr


@every_project
def test_check_finds_what_is_stated(project: Project) -> None:
    assert reported(project.before) == list(project.findings)


@every_project
def test_check_is_silent_about_the_repaired_project(project: Project) -> None:
    assert reported(project.after) == []


@every_project
def test_fix_gives_after_byte_for_byte(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    answer = shapefix("fix", "--apply", "--no-cache", copy)
    assert answer.returncode in (0, 1), answer.stderr
    assert sources(copy) == sources(project.after)


@every_project
def test_fix_without_apply_writes_nothing(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    answer = shapefix("fix", "--no-cache", copy)
    assert answer.returncode in (0, 1), answer.stderr
    assert sources(copy) == sources(project.before)


def test_findings_do_not_depend_on_the_neighbours() -> None:
    """All projects at once, with their ten model.py and train.py side by side, give the same findings."""
    together = reported(FIXTURES)
    apart = [
        Finding(finding.code, f"{project.folder.name}/before/{finding.file}", finding.line)
        for project in PROJECTS
        for finding in project.findings
    ]
    assert together == sorted(apart)
