"""The broken projects of fixtures/: one run names the same fault as `check`; the repaired ones run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from probing import probed_file

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

FAULTS = {
    "attention-merge-heads": [("SF101", "model.py", 31)],
    "channels-last-image": [("SF101", "model.py", 21)],
    "custom-collator": [("SF303", "train.py", 21)],
    "emotion-classifier": [("SF401", "trainer.py", 51)],
    "group-texts": [("SF307", "run_clm.py", 88)],
    "instruction-tuning": [("SF301", "train_optimized.py", 96)],
    "lstm-tagger": [("SF101", "train.py", 71)],
    "sliced-logits-eval": [("SF101", "train.py", 44)],
    "topk-accuracy": [("SF101", "train.py", 48)],
}
"""The fault that the first step or evaluation meets, where it is met."""

SCRIPTS = {
    "emotion-classifier": "trainer.py",
    "group-texts": "run_clm.py",
    "instruction-tuning": "train_optimized.py",
}


@pytest.mark.parametrize("name", FAULTS)
def test_before(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / name / "before", tmp_path / "copy")
    ran = probed_file(folder, SCRIPTS.get(name, "train.py"))
    assert ran.places == FAULTS[name], ran.run.ended.output


@pytest.mark.parametrize("name", ["seq2seq-summaries", "emotion-classifier", "group-texts"])
def test_after(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / name / "after", tmp_path / "copy")
    files = sorted(folder.rglob("*"))
    ran = probed_file(folder, SCRIPTS.get(name, "train.py"))
    assert ran.found == [], ran.run.ended.output
    assert ran.run.complete, ran.ending
    assert ran.run.trained
    assert "gradients in" in ran.text
    assert sorted(folder.rglob("*")) == files
