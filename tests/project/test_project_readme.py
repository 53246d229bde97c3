"""What the README and the manual show is what shapefix prints."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from generated_docs import EXAMPLE, RELEASED, REPOSITORY, ROOT, TABLE, rule_table, updated

import shapefix
from shapefix.diagnostics import Applicability, Severity
from shapefix.rulebook.pages import pages

pytestmark = pytest.mark.slow

README = ROOT / "README.md"
GENERATED = sorted(
    path
    for path in (README, *(ROOT / "shapefix" / "docs").glob("*.md"))
    if not path.name.startswith("tutorial-")  # test_tutorials.py follows them
    and (EXAMPLE.search(text := path.read_text("utf-8")) or RELEASED.search(text))
)
UPDATE = "UPDATE_DOCS"


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_examples_are_real(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    # The README is read on GitHub, the manual in a terminal of 80 columns.
    fresh = updated(text, pages(), 100 if path == README else 78, tmp_path)
    if os.environ.get(UPDATE):
        path.write_text(fresh, "utf-8")
        return
    assert text == fresh, f"update the examples with `{UPDATE}=1 pytest tests/project/test_project_readme.py`"


def test_the_readme_and_the_manual_have_examples() -> None:
    assert README in GENERATED
    shown = {path.stem for path in GENERATED}
    assert {"findings", "fixes", "shapes", "probe", "repair", "confirm"} <= shown


def test_examples_of_configurations_have_the_version_and_the_repository(tmp_path: Path) -> None:
    old = "- repo: https://github.com/a/b    # here\n  rev: v0.0.9\n- uses: a/b/shapefix/ci@v0.0.9\n"
    name = REPOSITORY.removeprefix("https://github.com/")
    tag = f"v{shapefix.__version__}"
    assert updated(old, (), 78, tmp_path) == (
        f"- repo: {REPOSITORY}    # here\n  rev: {tag}\n- uses: {name}/shapefix/ci@{tag}\n"
    )
    extension = json.loads((ROOT / "shapefix/editors/vscode/package.json").read_text("utf-8"))
    assert extension["version"] == shapefix.__version__


def test_the_readme_is_short() -> None:
    rows = README.read_text("utf-8").splitlines()
    assert sum(not row.startswith("| [SF") for row in rows) <= 130  # beside the table of rules


def test_the_readme_lists_every_rule() -> None:
    table = TABLE.search(README.read_text("utf-8"))
    assert table is not None
    listed = re.findall(r"^\| \[(\w+)\]\((\S+)\) \| ([\w-]+) \| \S.* \|$", table[0], re.MULTILINE)
    assert listed == [(page.code, f"rules/{page.path.name}", page.name) for page in pages()]


def test_the_table_of_rules_comes_from_the_pages() -> None:
    page = next(page for page in pages() if page.code == "SF101")
    safe = replace(page, summary="a view fails", fix=Applicability.SAFE)
    off = replace(page, summary="a view may fail", fix=None, severity=Severity.INFO)
    link = f"[SF101](rules/{page.path.name}) | {page.name}"
    assert rule_table([safe, off]).splitlines()[2:] == [
        f"| {link} | a view fails | safe |",
        f"| {link} | a view may fail (off by default) |  |",
    ]
    assert rule_table([safe, replace(page, summary="")]) == ""


def test_links_lead_to_files() -> None:
    for path in (README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
            assert target.startswith("https://") or (ROOT / target).is_file(), target


def test_both_lines_of_the_set_up_are_there_and_ci_runs_the_second() -> None:
    readme = README.read_text("utf-8")
    assert (
        "    python -m venv .venv && .venv/bin/pip install . && .venv/bin/shapefix check fixtures\n" in readme
    )
    second = "python -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest\n"
    assert f"    {second}" in readme
    assert (ROOT / ".ci" / "run").read_text("utf-8").endswith(f"\n{second}")
