"""`shapefix explain`, `shapefix rules`, and what a start costs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CLEAN, ROOT, VIEW, shapefix

import shapefix as package
from shapefix.rulebook.pages import Page, page_of, pages


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


@pytest.mark.parametrize("name", ["SF101", "sf101", "view-across-stride-gap", "View-Across-Stride-Gap"])
def test_explain_prints_the_page_up_to_more_examples(name: str) -> None:
    ran = shapefix("explain", name)
    assert ran.code == 0
    headings = [line for line in ran.out.splitlines() if line.startswith("# ") and "^" not in line]
    assert headings == ["# view-across-stride-gap (SF101)"]
    assert "## When to ignore" in ran.out
    assert "## More examples" not in ran.out


def test_explain_prints_more_examples_on_request() -> None:
    short, long = shapefix("explain", "SF101").out, shapefix("explain", "SF101", "--examples").out
    assert long.startswith(short)
    assert "### Reported" in long
    assert "### Not reported" in long


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
def test_explain_shows_no_test_syntax(page: Page) -> None:
    text = page.text()
    assert {line for line in text.splitlines() if line.startswith("```")} == {"```", "```python"}
    assert not re.search(r"# (error|warning|info): \[|# corrupts|# raises", text)
    assert re.search(r"# \^ (error|warning|info): \S", text)
    assert not [line for line in text.splitlines() if "reveal(" in line and "#" not in line]


@pytest.mark.parametrize(
    ("old", "code"),
    [("end-of-text-never-learnt", "SF206"), ("sequential-neighbours", "SF502"), ("blind-metric", "SF802")],
)
def test_former_names_of_rules_are_accepted(old: str, code: str, tmp_path: Path) -> None:
    page = page_of(old)
    assert page is not None
    assert page.code == code
    assert shapefix("explain", old).out == shapefix("explain", code).out
    (tmp_path / "train.py").write_text(CLEAN)
    ran = shapefix("check", "--no-cache", "--select", old, "--show-settings", str(tmp_path))
    assert f"rules = {code}\n" in ran.out


def test_a_comment_ignores_a_rule_by_its_former_name(tmp_path: Path) -> None:
    layers = "import torch\nimport torch.nn as nn\n\nlayers = nn.Sequential(nn.Linear(4, 8), nn.Linear(6, 2))"
    call = "layers(torch.zeros(3, 4))\n"
    assert "SF502" in checked(tmp_path, f"{layers}\n{call}")
    assert "SF502" in checked(tmp_path, f"{layers}  # shapefix: ignore[blind-metric]\n{call}")
    assert "SF502" not in checked(tmp_path, f"{layers}  # shapefix: ignore[sequential-neighbours]\n{call}")


def checked(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(text)
    return shapefix("check", "--no-cache", "--output-format", "concise", str(folder)).out


@pytest.mark.parametrize("prefix", ["SF5", "sf5"])
def test_explain_lists_the_rules_of_a_prefix(prefix: str) -> None:
    ran = shapefix("explain", prefix)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == [
        page.code for page in pages() if page.code.startswith("SF5")
    ]


def test_explain_says_that_a_code_of_another_linter_is_not_a_shapefix_rule() -> None:
    ran = shapefix("explain", "F401")
    assert ran.code == 2
    assert "'F401' is not a shapefix rule" in ran.err
    assert "unknown rule 'SF999'" in shapefix("explain", "SF999").err


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
