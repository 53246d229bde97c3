"""`shapefix explain`, `shapefix rules`, and what a start costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CLEAN, ROOT, VIEW, shapefix

import shapefix as package
from shapefix.rulebook.pages import page_of, pages


def imported(*arguments: str) -> set[str]:
    """The modules that a command line imports."""
    script = (
        "import sys; from shapefix.cli.main import run; run(sys.argv[1:]); "
        "sys.stderr.write('\\n'.join(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stderr.splitlines())


def test_version() -> None:
    ran = shapefix("--version")
    assert (ran.code, ran.out) == (0, f"shapefix {package.__version__}\n")


def test_the_version_costs_no_import_of_weight() -> None:
    heavy = {"libcst", "rich", "pathspec", "torch", "multiprocessing", "shapefix.engine.analysis", "json"}
    assert not heavy & imported("--version")


def test_a_warm_run_parses_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CLEAN)
    (tmp_path / "view.py").write_text(VIEW)
    arguments = ("check", "--cache-dir", str(tmp_path / "cache"), str(tmp_path))
    assert "libcst" in imported(*arguments)
    assert not {"libcst", "shapefix.engine.analysis"} & imported(*arguments)


def test_analysing_never_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "view.py").write_text(VIEW)
    libraries = {"torch", "numpy", "transformers", "datasets", "accelerate"}
    assert not libraries & imported("check", "--no-cache", str(tmp_path))


@pytest.mark.parametrize("name", ["SF101", "sf101", "view-across-stride-gap"])
def test_explain_prints_the_page(name: str) -> None:
    ran = shapefix("explain", name)
    assert ran.code == 0
    assert ran.out.startswith("# view-across-stride-gap (SF101)\n")
    assert (
        ran.out
        == (ROOT / "rules" / "SF101-view-across-stride-gap.md").read_text().split("---\n", 2)[2].lstrip()
    )


def test_rules_lists_every_rule() -> None:
    ran = shapefix("rules")
    first, *rest = ran.out.splitlines()
    assert first.split()[:4] == ["code", "name", "severity", "fix"]
    assert [line.split()[0] for line in rest] == [page.code for page in pages()]


def test_rules_for_programs_agree_with_the_pages() -> None:
    entries = json.loads(shapefix("rules", "--output-format", "json").out)
    assert [(entry["code"], entry["name"], entry["severity"]) for entry in entries] == [
        (page.code, page.name, page.severity) for page in pages()
    ]
    assert all(entry["summary"] for entry in entries)


def test_pages_are_found_by_code_and_name() -> None:
    page = page_of("SF101")
    assert page is not None
    assert page is page_of("view-across-stride-gap")
    assert page_of("SF000") is None
