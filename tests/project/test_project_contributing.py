"""CONTRIBUTING.md is true: its events, its paths, and its example of a rule."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import shapefix
from shapefix import domains, interpreter, library
from shapefix.interpreter.events import Event
from shapefix.report.formats import FINDING_FORMATS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")

ROW = re.compile(r"^\| `(\w+)` \| `([\w.]+)` \| (.+) \| ((?:`\w+`(?:, )?)+) \|$", re.MULTILINE)
PATH = re.compile(r"(?<![\w/.])(?:shapefix|tests|rules|fixtures|\.ci)/[\w./-]*[\w/]")
EXAMPLE_RULE = {
    "rules/SF516-unit-scores.md",
    "shapefix/checks/dimensions/unit_scores.py",
}
"""The files that the example of a rule creates."""


def events() -> dict[str, str]:
    """Return the module of every event of the package."""
    for package in (interpreter, domains, library):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    found: dict[str, str] = {}
    pending = [Event]
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            if kind.__module__.startswith(f"{shapefix.__name__}."):
                found[kind.__name__] = kind.__module__.removeprefix(f"{shapefix.__name__}.")
    return found


def test_every_event_is_in_the_table() -> None:
    assert {name: module for name, module, _, _ in ROW.findall(TEXT)} == events()


@pytest.mark.parametrize(("name", "module", "fields"), [(n, m, f) for n, m, _, f in ROW.findall(TEXT)])
def test_an_event_has_the_fields_of_the_table(name: str, module: str, fields: str) -> None:
    event = getattr(import_module(f"{shapefix.__name__}.{module}"), name)
    known = {field.name for field in dataclasses.fields(event)} - {"place", "calls"}
    assert set(re.findall(r"\w+", fields)) <= known


def paths() -> list[str]:
    """Return the paths in the text, without those of the example."""
    return sorted(set(PATH.findall(TEXT)) - EXAMPLE_RULE)


def test_the_paths_of_the_text_are_found() -> None:
    assert len(paths()) > 40
    assert {"shapefix/tensors/ops.py", "tests/benchmarks/speed.py", ".ci/run"} <= set(paths())


@pytest.mark.parametrize("path", paths())
def test_a_path_of_the_text_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    "package", sorted(path.name for path in (ROOT / "shapefix").iterdir() if (path / "__init__.py").exists())
)
def test_every_package_is_described(package: str) -> None:
    assert f"`shapefix/{package}/" in TEXT


@pytest.mark.parametrize("page", ["findings.md", "configuration.md"])
def test_the_manual_lists_every_format(page: str) -> None:
    text = (ROOT / "shapefix" / "docs" / page).read_text("utf-8")
    assert [name for name in FINDING_FORMATS if f"`{name}`" not in text] == []


def block(start: str) -> str:
    """Return the fenced block of the numbered steps whose first line is `start`."""
    found = re.search(
        rf"^   (`{{3,}})\w+\n(   {re.escape(start)}\n.*?)^   \1$", TEXT, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return textwrap.dedent(found[2])


@pytest.fixture
def with_example(tmp_path: Path) -> Path:
    """Return a copy of the package with the page and the check of the example, and nothing else."""
    for folder in ("shapefix", "rules"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    page, check = sorted(EXAMPLE_RULE)
    (tmp_path / page).write_text(block("---"), "utf-8")
    first = '"""SF516: a cross entropy gets scores of unit norm."""'
    (tmp_path / check).write_text(block(first), "utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_example_of_a_rule_works(with_example: Path) -> None:
    script = with_example / "script.py"
    script.write_text(
        textwrap.dedent(
            """\
            import torch
            import torch.nn as nn
            import torch.nn.functional as F

            scores, labels = torch.randn(8, 5), torch.randint(0, 5, (8,))
            F.cross_entropy(F.normalize(scores, dim=1), labels)
            nn.CrossEntropyLoss()(F.normalize(nn.Linear(5, 5)(scores)), labels)
            F.cross_entropy(scores, labels)
            F.nll_loss(F.log_softmax(scores, 1), labels)
            scores.softmax(1)
            """
        ),
        "utf-8",
    )
    command = [sys.executable, "-m", "shapefix", "check", "--no-cache", "--isolated", "-j", "1"]
    ran = subprocess.run(
        [*command, "--select", "SF516", "--output-format", "concise", str(script)],
        cwd=with_example,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    found = [(int(line.split(":")[1]), "SF516" in line) for line in lines if "script.py:" in line]
    assert found == [(6, True), (7, True)], ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"]], ids=" ".join)
def test_the_example_of_a_rule_is_linted(with_example: Path, command: list[str]) -> None:
    shutil.copy(ROOT / "pyproject.toml", with_example)
    ran = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:], max(EXAMPLE_RULE)],
        cwd=with_example,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
