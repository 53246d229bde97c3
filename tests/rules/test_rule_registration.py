"""Rules and pages belong together one to one: a mismatch fails at import and names the file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shapefix.checks.rules  # noqa: F401
from shapefix.checks.registry import CHECKS, RULES
from shapefix.checks.registry import rule as register
from shapefix.domains.operations import Viewed
from shapefix.rulebook.pages import UnmatchedRule, pages

FILES = 12
_PROGRAM = """
import sys
from pathlib import Path
import shapefix.rulebook.pages as book
book._IN_CHECKOUT = Path(sys.argv[1])
from shapefix.cli.main import main
sys.argv = ["shapefix", "check", "--isolated", "--no-cache", sys.argv[2]]
sys.exit(main())
"""


def checked(rules: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `shapefix check` on enough scripts for worker processes, with the rule pages of another folder."""
    scripts = folder / "scripts"
    scripts.mkdir()
    for number in range(FILES):
        (scripts / f"train{number}.py").write_text("import torch\n\nx = torch.zeros(2).view(2)\n")
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(rules), str(scripts)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A copy of the rule pages."""
    folder = tmp_path / "rules"
    shutil.copytree(pages()[0].path.parent, folder)
    return folder


def test_every_rule_is_the_rule_of_its_page() -> None:
    assert [RULES[code].page for code in sorted(RULES)] == [
        page for page in pages() if not page.is_about_comments
    ]


def test_a_page_without_a_rule_is_an_error(rules: Path, tmp_path: Path) -> None:
    page = rules / "SF199-views-of-nothing.md"
    text = (rules / "SF101-view-across-stride-gap.md").read_text("utf-8")
    page.write_text(text.replace("code: SF101", "code: SF199"), "utf-8")
    ran = checked(rules, tmp_path)
    assert ran.returncode == 2
    assert ran.stdout.count(f"cannot be checked: {page}: no check is registered for rule SF199") == FILES
    assert "Traceback" not in ran.stderr


def test_a_rule_without_a_page_is_an_error(rules: Path, tmp_path: Path) -> None:
    (rules / "SF104-write-into-expanded.md").unlink()
    ran = checked(rules, tmp_path)
    assert ran.returncode == 2
    hint = "write_into_expanded.py: rule SF104 has no page; write rules/SF104-write-into-expanded.md"
    assert ran.stdout.count(hint) == FILES


@pytest.mark.parametrize(
    ("line", "replacement", "problem"),
    [
        ("since: 0.1.0\n", "", "the front matter lacks `since`"),
        (
            "raises: here\n",
            "raises: often\n",
            "the front matter has a wrong value: 'often' is not a valid Raises",
        ),
    ],
)
def test_a_page_with_wrong_metadata_is_an_error(
    rules: Path, tmp_path: Path, line: str, replacement: str, problem: str
) -> None:
    page = rules / "SF101-view-across-stride-gap.md"
    text = page.read_text("utf-8")
    assert line in text
    page.write_text(text.replace(line, replacement, 1), "utf-8")
    ran = checked(rules, tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == f"error: {page}: {problem}\n"


def test_registering_an_unknown_rule_changes_nothing() -> None:
    before = len(CHECKS)
    with pytest.raises(UnmatchedRule, match="rule SF999 has no page"):
        register("SF999", on=Viewed)(lambda event, context, rule: iter(()))
    assert len(CHECKS) == before
