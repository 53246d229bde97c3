"""Each project under fixtures/ really crashes, is really repaired, and then really learns.

Those that go wrong without a crash learn far less before their repair than after it, or grow in each step.

Those with nothing wrong learn as they are, and shapefix has nothing to say about them.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from fixture_projects import FIXTURES, Death, Finding, Place, Project, load, sources, train

from shapefix.cli import main

PROJECTS = [load(path.parent) for path in sorted(FIXTURES.glob("*/fixture.toml"))]
every_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.folder.name)
BROKEN = [(project, project.death) for project in PROJECTS if project.death]
every_broken = pytest.mark.parametrize(
    ("project", "death"), BROKEN, ids=[project.folder.name for project, _ in BROKEN]
)


def some(projects: Iterable[Project]) -> pytest.MarkDecorator:
    """Run a test with each of these projects."""
    chosen = list(projects)
    return pytest.mark.parametrize("project", chosen, ids=[project.folder.name for project in chosen])


WRONG = [project for project in PROJECTS if project.findings]
every_wrong = some(WRONG)


@dataclass(frozen=True)
class Repair:
    """One difference between before and after; undone is the repaired file with only this taken back."""

    place: Place
    was: str
    becomes: str
    undone: str


def differences(was: list[str], becomes: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The pieces was[i:i_end] and becomes[j:j_end] that differ; as many against as many are as many pairs."""
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, was, becomes, False).get_opcodes():
        if tag == "replace" and i_end - i == j_end - j:
            yield from ((i + n, i + n + 1, j + n, j + n + 1) for n in range(i_end - i))
        elif tag != "equal":
            yield i, i_end, j, j_end


def repairs(project: Project, piece: str) -> list[Repair]:
    """Every piece that differs between before and after, each with the text in which only it is undone."""
    found = []
    before, after = sources(project.before), sources(project.after)
    assert before.keys() == after.keys()
    for file, text in before.items():
        pieces, repaired = re.findall(piece, text), re.findall(piece, after[file])
        for i, i_end, j, j_end in differences(pieces, repaired):
            undone = "".join([*repaired[:j], *pieces[i:i_end], *repaired[j_end:]])
            place = Place(file, "".join(pieces[:i]).count("\n") + 1)
            found.append(Repair(place, "".join(pieces[i:i_end]), "".join(repaired[j:j_end]), undone))
    return found


TOKEN, LINE = r"\w+|\s+|.", r".*\n"


def in_layouts(project: Project) -> bool:
    """Whether all that is wrong with a project are views, each repaired by one word."""
    return all(finding.code.startswith("SF1") for finding in project.findings)


def repairs_of(project: Project) -> list[Repair]:
    """What differs between before and after: by words where only views are wrong, else by lines."""
    return repairs(project, TOKEN if in_layouts(project) else LINE)


EVERY_REPAIR = [
    (project, death, repair)
    for project, death in BROKEN
    for repair in repairs_of(project)
    if repair.place not in project.honest
]


def shapefix(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in this process."""
    command = list(map(str, arguments))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(command)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


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


def test_the_report_on_all_projects_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(FIXTURES.parent)
    rows = shapefix("check", "--no-cache", FIXTURES.name).stdout.splitlines()
    shown = {Path(row.split("--> ")[1]).parts[1] for row in rows if " --> " in row or row.startswith("-->")}
    assert shown == {project.folder.name for project in WRONG}
    assert len(rows) <= 350
    assert max(map(len, rows)) <= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("project", "death"),
    [
        pytest.param(*each, id=each[0].folder.name, marks=pytest.mark.long if number % 3 else ())
        for number, each in enumerate(BROKEN)
    ],
)
def test_before_dies_with_the_exception_and_at_the_place_stated(project: Project, death: Death) -> None:
    run = train(project.command, project.before)
    assert run.returncode != 0
    last_line = run.stderr.strip().splitlines()[-1]
    assert last_line.startswith(f"{death.exception}: {death.message}")
    frames = re.findall(r'File "(.+?)", line (\d+)', run.stderr)
    own = [
        Place(Path(path).relative_to(project.before).as_posix(), int(line))
        for path, line in frames
        if Path(path).is_relative_to(project.before)
    ]
    assert own[-1] in death.raised


@pytest.mark.slow
@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, id=each.folder.name, marks=pytest.mark.long if number % 2 else ())
        for number, each in enumerate(PROJECTS)
    ],
)
def test_after_trains(project: Project) -> None:
    run = train(project.command, project.after)
    assert run.returncode == 0, run.stderr
    losses = re.search(project.prints, run.stdout)
    assert losses is not None, run.stdout
    assert float(losses["last"]) < 0.7 * float(losses["first"])


@pytest.mark.slow
@some(project for project in WRONG if project.grows)
def test_what_grows_in_each_step_does_not_after_the_repair(project: Project) -> None:
    assert project.grows is not None
    growth, losses = [], []
    for folder in (project.before, project.after):
        run = train(project.command, folder)
        assert run.returncode == 0, run.stderr
        grown, learnt = re.search(project.grows, run.stdout), re.search(project.prints, run.stdout)
        assert grown is not None, run.stdout
        assert learnt is not None, run.stdout
        growth.append(float(grown["last"]) - float(grown["first"]))
        losses.append(learnt["last"])
    assert growth[0] > 20
    assert growth[1] < 0.1 * growth[0]
    assert losses[0] == losses[1]


@pytest.mark.slow
@some(project for project in WRONG if project.death is None and not project.grows)
def test_what_goes_wrong_without_a_crash_learns_less(project: Project) -> None:
    """The last loss of the repaired project, which it computes as it should, is far below what was told."""
    last = []
    for folder in (project.before, project.after):
        run = train(project.command, folder)
        assert run.returncode == 0, run.stderr
        losses = re.search(project.prints, run.stdout)
        assert losses is not None, run.stdout
        last.append(float(losses["last"]))
    assert last[1] < 0.2 * last[0]


@every_wrong
def test_after_differs_from_before_only_at_the_places_stated(project: Project) -> None:
    repaired = repairs_of(project)
    assert Counter(repair.place for repair in repaired) == Counter(project.repaired + project.honest)
    if in_layouts(project):
        assert {(repair.was, repair.becomes) for repair in repaired} == {("view", "reshape")}


def _each_repair() -> Iterator[ParameterSet]:
    """Yield the repairs, in the short run the first one of every third project."""
    names = sorted({project.folder.name for project, _, _ in EVERY_REPAIR})
    shown = set(names) - set(names[::3])
    for number, (project, death, repair) in enumerate(EVERY_REPAIR):
        name = project.folder.name
        yield pytest.param(
            project,
            death,
            repair,
            id=f"{name}-{repair.place.file}-{repair.place.line}-{number}",
            marks=pytest.mark.long if name in shown else (),
        )
        shown.add(name)


@pytest.mark.slow
@pytest.mark.parametrize(("project", "death", "repair"), _each_repair())
def test_every_repair_is_needed(project: Project, death: Death, repair: Repair, tmp_path: Path) -> None:
    copy = copied(project.after, tmp_path / "project")
    (copy / repair.place.file).write_bytes(repair.undone.encode("utf-8"))
    run = train(project.command, copy)
    assert run.returncode != 0
    last_line = run.stderr.strip().splitlines()[-1]
    if in_layouts(project):
        assert f"{death.exception}: {death.message}" in run.stderr
        assert f'{repair.place.file}", line {repair.place.line}' in run.stderr
    else:  # one half of a repair leaves a name without its import
        whole = f"{death.exception}: {death.message}"
        assert last_line.startswith((whole, project.half or whole, "NameError: name "))


@every_wrong
def test_check_finds_what_is_stated(project: Project) -> None:
    assert reported(project.before) == list(project.findings)


@every_project
def test_check_is_silent_about_a_project_with_nothing_wrong(project: Project) -> None:
    assert reported(project.after) == []


@some(project for project in WRONG if not project.by_hand)
def test_fix_gives_after_byte_for_byte(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    unsafe = ["--unsafe-fixes"] if project.unsafe or project.honest else []
    answer = shapefix("fix", "--apply", *unsafe, "--no-cache", copy)
    assert answer.returncode in (0, 1), answer.stderr
    assert sources(copy) == sources(project.after)


@pytest.mark.slow
@some(project for project in WRONG if project.honest)
def test_fix_without_unsafe_fixes_trains_and_is_not_honest_yet(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    answer = shapefix("fix", "--apply", "--no-cache", copy)
    assert answer.returncode == 1, answer.stderr
    half = replace(project, folder=tmp_path)
    shutil.copytree(project.before, half.before)
    shutil.copytree(copy, half.after)
    assert {repair.place for repair in repairs_of(half)} == set(project.repaired)
    assert train(project.command, copy).returncode == 0


@pytest.mark.slow
@some(project for project in WRONG if project.honest)
def test_what_is_hidden_comes_to_light_where_nothing_else_is_repaired(
    project: Project, tmp_path: Path
) -> None:
    """With the honest lines alone, the project dies where the other findings are."""
    copy = copied(project.before, tmp_path / "project")
    answer = shapefix("fix", "--apply", "--unsafe-fixes", "--select", "SF801", "--no-cache", copy)
    assert answer.returncode == 0, answer.stderr
    run = train(project.command, copy)
    assert run.returncode != 0
    frames = re.findall(r"line (\d+), in", run.stderr)
    assert any(str(finding.line) in frames for finding in project.findings if finding.code != "SF801")


@some(project for project in WRONG if project.unsafe or project.by_hand)
def test_fix_makes_no_repair_that_nobody_asked_for(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    unsafe = ["--unsafe-fixes"] if project.by_hand else []
    answer = shapefix("fix", "--apply", *unsafe, "--no-cache", copy)
    assert answer.returncode in (0, 1), answer.stderr
    assert sources(copy) == sources(project.before)


@every_project
def test_fix_leaves_a_project_with_nothing_wrong_as_it_is(project: Project, tmp_path: Path) -> None:
    copy = copied(project.after, tmp_path / "project")
    answer = shapefix("fix", "--apply", "--unsafe-fixes", "--no-cache", copy)
    assert answer.returncode == 0, answer.stderr
    assert sources(copy) == sources(project.after)


@every_wrong
def test_fix_without_apply_writes_nothing(project: Project, tmp_path: Path) -> None:
    copy = copied(project.before, tmp_path / "project")
    answer = shapefix("fix", "--no-cache", copy)
    assert answer.returncode in (0, 1), answer.stderr
    assert sources(copy) == sources(project.before)


@pytest.mark.long
@pytest.mark.slow
def test_findings_do_not_depend_on_the_neighbours() -> None:
    """All projects at once, with their many model.py and train.py side by side, give the same findings."""
    together = reported(FIXTURES)
    apart = [
        Finding(finding.code, f"{project.folder.name}/before/{finding.file}", finding.line)
        for project in PROJECTS
        for finding in project.findings
    ]
    assert together == sorted(apart)
