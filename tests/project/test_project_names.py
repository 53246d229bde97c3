"""Names are predictable: a rule's module has the name of its page, and a class has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import shapefix.checks.rules  # noqa: F401
from shapefix.checks.registry import CHECKS
from shapefix.rulebook.pages import Page, pages

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("cli", "engine", "report", "repair", "shapes", "sources")
"""Packages whose public classes share their name with no class of any package."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
def test_the_module_of_a_rule_has_the_name_of_its_page(page: Page) -> None:
    modules = {check.__module__.rpartition(".")[2] for code, _, check in CHECKS if code == page.code}
    assert modules == {page.name.replace("-", "_")}


def test_a_module_has_the_checks_of_one_rule() -> None:
    rules: dict[str, set[str]] = {}
    for code, _, check in CHECKS:
        rules.setdefault(check.__module__, set()).add(code)
    assert {module: codes for module, codes in rules.items() if len(codes) > 1} == {}


def test_public_classes_do_not_share_a_name() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "shapefix").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(ROOT / "shapefix").as_posix())
    assert len(modules) > 200
    shared = {
        name: found
        for name, found in modules.items()
        if len(found) > 1 and any(each.startswith(PACKAGES) for each in found)
    }
    assert not shared
