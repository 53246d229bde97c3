"""`probe --repair --apply` on the projects of fixtures/: each becomes the repaired one, byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"

SCRIPTS = {
    "emotion-classifier": "trainer.py",
    "group-texts": "run_clm.py",
    "instruction-tuning": "train_optimized.py",
}
BY_HAND = "unet-skips"
BROKEN = sorted(path.parent.name for path in FIXTURES.glob("*/before"))
REPAIRED = [name for name in BROKEN if name != BY_HAND]


def repair(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapefix", "probe", script, "--repair", *options],
        cwd=folder,
        env=os.environ
        | {"COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=500,
        check=False,
    )


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_project_is_repaired_as_the_person_did_who_made_it(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / name / "before", tmp_path / "project")
    ran = repair(folder, SCRIPTS.get(name, "train.py"), "--apply")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert texts(folder) == texts(FIXTURES / name / "after")
    assert "after   1 training step, loss " in ran.stdout
    assert ran.stderr.startswith("Repaired ")


def test_where_only_a_person_can_choose_the_repair_nothing_is_written(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / BY_HAND / "before", tmp_path / "project")
    ran = repair(folder, "train.py", "--apply")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert texts(folder) == texts(FIXTURES / BY_HAND / "before")
    assert "error[SF504]" in ran.stdout
    assert "= fix (by hand): crop `skip2` to (24, 24)" in ran.stdout
    assert ran.stderr.startswith("No repair is known that makes the script train. (1 run, ")
