"""The broken projects of fixtures/: a run names the fault that `check` finds, and runs prove its repair."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
from probing import probed_file
from repairing import searched

from shapefix.runtime.repair.search import SearchResult
from shapefix.runtime.repair.writing import write_all

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

FAULTS = {
    "attention-merge-heads": [("SF101", "model.py", 31)],
    "broadcasting-loss": [("SF509", "train.py", 21)],
    "channels-last-image": [("SF101", "model.py", 21)],
    "custom-collator": [("SF303", "train.py", 21)],
    "embedding-projection": [("SF501", "train.py", 14)],
    "emotion-classifier": [("SF401", "trainer.py", 51)],
    "frozen-hidden-state": [("SF507", "train.py", 23)],
    "group-texts": [("SF307", "run_clm.py", 88)],
    "instruction-tuning": [("SF301", "train_optimized.py", 96)],
    "larger-images": [("SF507", "train.py", 36)],
    "lstm-tagger": [("SF101", "train.py", 71)],
    "perplexity-inf": [("SF101", "train.py", 41)],
    "pretraining-config": [("SF501", "model.py", 20)],
    "sliced-logits-eval": [("SF101", "train.py", 44)],
    "topk-accuracy": [("SF101", "train.py", 48)],
    "unet-skips": [("SF504", "unet.py", 30)],
}
"""What the first step or evaluation shows, and where; of the other projects one step shows nothing."""

SCRIPTS = {
    "emotion-classifier": "trainer.py",
    "group-texts": "run_clm.py",
    "instruction-tuning": "train_optimized.py",
}


def broken(by_hand: bool) -> list[str]:
    """The projects with something wrong; by_hand are those whose repair a person has to choose."""
    stated = {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in FIXTURES.glob("*/*.toml")}
    wrong = {name: each for name, each in stated.items() if "before" in each}
    return sorted(name for name, each in wrong.items() if each["after"].get("by_hand", False) is by_hand)


def shown(outcome: SearchResult) -> list[tuple[str, str, int]]:
    """What the run of the script as it is has found."""
    return [(each.code, Path(each.span.path).name, each.span.row) for each in outcome.first.found.diagnostics]


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


COSTLY = frozenset({"custom-collator", "emotion-classifier", "instruction-tuning"})
"""Projects with several runs of seconds each, left to the long run."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in COSTLY or number % 3 else ())
        for number, name in enumerate(broken(by_hand=False))
    ],
)
def test_runs_prove_the_repair_that_a_person_has_made(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / name / "before", tmp_path / "copy")
    outcome = searched(folder, SCRIPTS.get(name, "train.py"))
    assert shown(outcome) == FAULTS.get(name, []), outcome.first.run.process.output
    best = outcome.best.trial
    assert outcome.trains, best.run.process.output
    assert (best.run.trained, best.found.diagnostics) == (True, ())
    assert texts(folder) == texts(FIXTURES / name / "before")
    write_all(list(best.sources.changes()))
    assert texts(folder) == texts(FIXTURES / name / "after")


@pytest.mark.parametrize("name", broken(by_hand=True))
def test_where_a_person_has_to_choose_the_repair_there_is_none(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / name / "before", tmp_path / "copy")
    outcome = searched(folder, SCRIPTS.get(name, "train.py"))
    assert shown(outcome) == FAULTS.get(name, [])
    assert not outcome.trains
    assert list(outcome.best.trial.sources.changes()) == []


def test_nothing_is_found_in_a_project_with_nothing_wrong(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / "seq2seq-summaries" / "after", tmp_path / "copy")
    files = sorted(folder.rglob("*"))
    ran = probed_file(folder, "train.py")
    assert ran.found == [], ran.run.process.output
    assert ran.run.complete, ran.ending
    assert ran.run.trained
    assert "gradients for" in ran.text
    assert sorted(folder.rglob("*")) == files
