"""The site: its pages are made from the rule book, and mkdocs builds it without a dead link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import pytest

from shapefix.rulebook.error_pages import error_pages
from shapefix.rulebook.pages import pages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WEBSITE = ROOT / "shapefix/website"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    sys.path.insert(0, str(WEBSITE))
    try:
        return import_module("site_pages")
    finally:
        sys.path.remove(str(WEBSITE))


@pytest.fixture(scope="module")
def made(site: ModuleType) -> dict[str, str]:
    """The text of each made page by its place."""
    return {page.uri: page.text for page in site.made_pages()}


def test_every_rule_and_every_message_has_a_page(made: dict[str, str]) -> None:
    own = [page for page in pages() if page.plugin is None]
    assert {f"rules/{page.path.name}" for page in own} < made.keys()
    assert {f"errors/{page.name}.md" for page in error_pages()} < made.keys()
    for page in own:
        assert f"[{page.code}]({page.path.name})" in made["rules/index.md"]
    for message in error_pages():
        assert f"]({message.name}.md)" in made["errors/index.md"]


def test_a_page_of_a_message_has_what_people_search_for(made: dict[str, str]) -> None:
    found = next(
        text
        for text in made.values()
        if text.partition("```text\n")[2].startswith("mat1 and mat2 shapes cannot")
    )
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", found, flags=re.DOTALL), re.MULTILINE)
    assert headings[0].startswith("mat1 and mat2 shapes cannot be multiplied")
    assert headings[1:4] == ["Usual causes", "What to look at", "Example"]
    assert not re.search(r"\{\w+(:int)?\}", found)
    reports = [text for text in made.values() if "reports it before the run:\n\n```text\nerror[SF" in text]
    assert len(reports) > 50


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("SF101 fails", "[SF101](../rules/SF101-view-across-stride-gap.md) fails"),
        ("like `SF101` and (SF101)", "like `SF101` and (SF101)"),
        ("SF999 is not a rule", "SF999 is not a rule"),
        ("see `shapefix help ci`", "see [`shapefix help ci`](../ci.md)"),
        ("see `shapefix help check`", "see `shapefix help check`"),
        ("# about SF101", "# about SF101"),
        ("    x  # SF101", "    x  # SF101"),
        ("```\nSF101\n```", "```\nSF101\n```"),
        ("- one\n  two\n\n      code\n- three", "- one\n    two\n\n        code\n\n- three"),
        ("1. one\n\n   two\n\nthree\n   four", "1. one\n\n    two\n\nthree\n   four"),
        ("```\n- one\n  two\n```", "```\n- one\n  two\n```"),
    ],
)
def test_pages_are_adapted_to_the_site(site: ModuleType, row: str, expected: str) -> None:
    assert site.adapted(row, "rules/x.md") == expected


@pytest.mark.skipif(util.find_spec("material") is None, reason="mkdocs-material is not installed")
def test_the_site_is_built_without_a_dead_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "shapefix/website/mkdocs.yml"]
    ran = subprocess.run(
        [*command, "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.rglob("index.html"))) > 280
