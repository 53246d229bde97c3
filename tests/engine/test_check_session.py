"""Runs over files: caches, processes and what is kept of the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from shapefix.diagnostics import (
    Applicability,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    Fix,
    Import,
    Severity,
    Span,
)
from shapefix.engine import analysis, batch
from shapefix.engine.merge import unique, with_imports
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.engine.syntax_errors import syntax_failure
from shapefix.interpreter.evaluator import Evaluator
from shapefix.report.folding import folded
from shapefix.sources.text import SourceText

MODEL = "import torch\n\n\ndef flatten(x):\n    return torch.relu(x.view(-1, x.size(-1)))\n"
SLICED = "import torch\nfrom model import flatten\n\nflatten(torch.zeros(4, 6, 8)[:, :-1])\n"
WHOLE = SLICED.replace("[:, :-1]", "")
VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def make(**files: str) -> None:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)

    return make


def examined(*paths: str, **options: object) -> CheckSession:
    return CheckSession(paths or (".",), Settings(CheckOptions(**options))).run()  # type: ignore[arg-type]


def places(session: CheckSession) -> list[tuple[str, int]]:
    return [(Path(finding.span.path).name, finding.span.row) for finding in session.findings()]


def test_a_second_run_answers_from_the_cache(write: Write) -> None:
    write(model=MODEL, train=SLICED, plain="x = 1\n")
    first, second = examined(), examined()
    assert (first.stats.cached, second.stats.cached) == (0, 3)
    assert places(first) == places(second) == [("model.py", 5)]
    assert first.findings() == second.findings()


def test_another_version_of_transformers_is_analysed_anew_and_reaches_the_evaluator(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Mapping[str, str]] = []

    def run_program(ev: Evaluator, *arguments: object) -> None:
        seen.append(ev.versions)

    monkeypatch.setattr(analysis, "run_program", run_program)
    write(train=VIEW)
    examined()
    examined(transformers_version="4.40")
    (tmp_path / "requirements.txt").write_text("transformers==4.57.6\n")
    examined()
    assert seen == [{}, {"transformers": "4.40"}, {"transformers": "4.57.6"}]
    assert examined().stats.cached == 1


def test_requirements_of_the_checked_folder_hold_for_parts_with_a_setup_file(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def run_program(ev: Evaluator, *arguments: object) -> None:
        seen.append(ev.oldest_versions.get("torch"))

    monkeypatch.setattr(analysis, "run_program", run_program)
    write(train=VIEW)
    part = tmp_path / "kernels"
    part.mkdir()
    (tmp_path / "train.py").rename(part / "train.py")
    (part / "setup.py").write_text("from setuptools import setup\n\nsetup(name='kernels')\n")
    (tmp_path / "README.md").write_text("    conda install pytorch=0.4.1 -c pytorch\n")
    examined()
    examined("kernels/train.py")
    assert "0.4.1" in seen


def test_a_change_in_an_imported_file_is_seen_through_the_cache(write: Write) -> None:
    write(model=MODEL, train=SLICED)
    assert places(examined()) == [("model.py", 5)]
    write(model=MODEL.replace(".view", ".reshape"))
    assert places(examined()) == []


def test_a_file_that_appears_is_seen_through_the_cache(write: Write) -> None:
    write(train=SLICED)
    assert places(examined("train.py")) == []
    write(model=MODEL)
    assert places(examined("train.py")) == [("model.py", 5)]


def test_the_cache_knows_which_rules_were_asked_for(write: Write) -> None:
    write(train=VIEW)
    assert places(examined(select=("SF103",))) == []
    assert places(examined()) == [("train.py", 3)]


def test_no_cache_leaves_nothing_behind(write: Write, tmp_path: Path) -> None:
    write(train=VIEW)
    examined(use_cache=False)
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_the_cache_folder_can_be_chosen_and_hides_from_git(write: Write, tmp_path: Path) -> None:
    write(train=VIEW)
    examined(cache_dir="kept")
    assert (tmp_path / "kept" / ".gitignore").read_text().splitlines()[-1] == "*"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "train.py"]


def test_the_cache_is_not_in_the_project(write: Write, tmp_path: Path, user_cache: Path) -> None:
    write(train=VIEW)
    examined()
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    (cached,) = {path.name for path in (user_cache / "shapefix").iterdir()} - {"key"}
    assert cached.startswith(f"{tmp_path.name}-")


def test_processes_find_what_one_finds(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(model=MODEL, **{f"train{number}": SLICED + VIEW for number in range(30)})
    monkeypatch.setattr(batch, "CHUNK", 500)
    alone = examined(jobs=1, use_cache=False)
    together = examined(jobs=3, use_cache=False)
    assert alone.findings() == together.findings()
    assert len(alone.findings()) == 31


def test_processes_fill_the_cache(write: Write) -> None:
    write(model=MODEL, train=SLICED)
    examined(jobs=2)
    assert examined(jobs=2).stats.cached == 2


def test_few_files_start_no_process(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*arguments: object) -> None:
        raise AssertionError("a process for one small file")

    write(train=VIEW)
    monkeypatch.setattr(batch.BatchRunner, "_in_workers", forbidden)
    assert places(examined()) == [("train.py", 3)]
    monkeypatch.setattr(batch, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(batch, "processors", lambda: 2)
    with pytest.raises(AssertionError, match="a process"):
        examined(use_cache=False)


def test_progress_is_told_for_every_file(write: Write) -> None:
    write(model=MODEL, train=SLICED, plain="x = 1\n")
    seen: list[tuple[int, int]] = []
    CheckSession(
        ["."], Settings(CheckOptions()), progress=lambda done, total: seen.append((done, total))
    ).run()
    assert list(dict.fromkeys(seen)) == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_repair_counts_for_the_files_repaired_after_it(write: Write, tmp_path: Path) -> None:
    write(model=MODEL, train=SLICED + VIEW)
    session = examined()
    repaired = {Path(each.new.path).name: each.new.text for each in session.repair(None)}
    assert repaired == {
        "model.py": MODEL.replace(".view", ".reshape"),
        "train.py": SLICED + VIEW.replace(".view", ".reshape"),
    }
    assert (tmp_path / "model.py").read_text() == MODEL


SPAN = Span("/a.py", 3, 1, 3, 9)


def finding(condition: str | None, steps: int, message: str = "merges") -> Diagnostic:
    step = Evidence(SPAN, "sliced here")
    when = None if condition is None else Condition(condition)
    return Diagnostic("SF101", "name", Severity.ERROR, message, SPAN, (step,) * steps, when)


def test_the_finding_that_always_holds_is_kept_and_then_the_one_with_the_longest_way() -> None:
    always, long, short = finding(None, 1), finding("B > 1", 3), finding("B > 1", 2)
    for order in ([always, long, short], [short, long, always]):
        assert unique(order) == [always]
    assert unique([short, long]) == unique([long, short]) == [long]


def test_findings_alike_but_for_their_words_are_chosen_whatever_their_order() -> None:
    one, other = finding(None, 1, "merges a"), finding(None, 1, "merges b")
    assert unique([one, other]) == unique([other, one])
    another = replace(one, evidence=(Evidence(SPAN, "transposed here"),))
    assert unique([one, another]) == unique([another, one])


def test_other_places_and_codes_stay_apart() -> None:
    elsewhere = Diagnostic("SF101", "name", Severity.ERROR, "merges", Span("/a.py", 4, 1, 4, 9))
    other = Diagnostic("SF103", "name", Severity.ERROR, "merges", SPAN)
    assert unique([finding(None, 1), elsewhere, other]) == [finding(None, 1), elsewhere, other]


def needing(wanted: Import) -> Diagnostic:
    edit = Edit(Span("/a.py", 2, 1, 2, 2), "F")
    fix = Fix(Applicability.SAFE, "use F", (edit,), (wanted,))
    return Diagnostic("SF101", "name", Severity.ERROR, "merges", SPAN, fixes=(fix,))


def test_imports_become_edits() -> None:
    fix = with_imports(needing(Import("torch.nn", "functional")), "import torch\nx\n").fix
    assert fix is not None
    assert fix.imports == ()
    assert [edit.content for edit in fix.edits] == ["F", "from torch.nn import functional\n"]


def test_a_fix_whose_import_is_impossible_is_only_shown() -> None:
    fix = with_imports(needing(Import("torch")), "torch = 1\nx\n").fix
    assert fix is not None
    assert (fix.applicability, len(fix.edits)) == (Applicability.DISPLAY, 1)
    assert "`torch` already means something else" in fix.message


def test_syntax_errors_are_told_in_the_words_of_python() -> None:
    failure = syntax_failure(SourceText("a.py", "print 'x'\n"))
    assert failure is not None
    assert failure.message.startswith("cannot be parsed: Missing parentheses in call to 'print'")
    assert (failure.row, failure.column) == (1, 1)


@pytest.mark.parametrize("text", ["type X = int\n", "def f[T](x: T) -> T: ...\n", "x = f'{d['a']}'\n", ""])
def test_later_pythons_are_no_syntax_error(text: str) -> None:
    assert syntax_failure(SourceText("a.py", text)) is None


def test_a_folder_that_is_given_is_a_project_where_nothing_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "model.py").write_text(MODEL)
    (tmp_path / "scripts" / "train.py").write_text(SLICED.replace("from model", "from lib.model"))
    assert places(examined(str(tmp_path), use_cache=False)) == [("model.py", 5)]
    assert places(examined(str(tmp_path / "scripts"), use_cache=False)) == []
    (tmp_path / "pyproject.toml").touch()
    assert places(examined(str(tmp_path / "scripts"), use_cache=False)) == [("model.py", 5)]


def test_a_habit_has_one_cause_in_all_files_and_in_all_runs(write: Write) -> None:
    loss = (
        "import torch\n\n\ndef update(x):\n    loss = x.sum()\n    other = x.mean()\n"
        "    print(loss.data[0], other.data[0])\n    return loss.data[0]\n"
    )
    write(
        steps=loss,
        train="import torch\nfrom steps import update\n\nupdate(torch.zeros(3))\n",
        other="import torch\n\nprint(torch.zeros(3).sum().data[0])\nx = torch.zeros(3).view(2)\n",
    )
    found = examined(select=("SF507",)).findings()
    habit = [each for each in found if each.habit]
    assert len(habit) == 4
    assert len({each.cause for each in habit}) == 1
    entries = folded(found)
    assert sorted(len(entry.others) for entry in entries) == [0, 3]
    assert folded(examined(select=("SF507",)).findings()) == entries
