"""Names are predictable: a rule's module has the name of its page, and a class has a name of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shapefix.checks.rules
from shapefix.checks.registry import CHECKS
from shapefix.engine.suppression_findings import CODES as SUPPRESSION_CODES
from shapefix.rulebook.pages import Page, pages

PACKAGE = Path(shapefix.__file__).parent


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
def test_the_module_of_a_rule_has_the_name_of_its_page(page: Page) -> None:
    if page.is_about_comments:
        assert page.code in SUPPRESSION_CODES
        return
    modules = {check.__module__.rpartition(".")[2] for code, _, check in CHECKS if code == page.code}
    assert modules == {page.name.replace("-", "_")}


def test_a_module_has_the_checks_of_one_rule() -> None:
    rules: dict[str, set[str]] = {}
    for code, _, check in CHECKS:
        rules.setdefault(check.__module__, set()).add(code)
    assert {module: codes for module, codes in rules.items() if len(codes) > 1} == {}


def class_names() -> dict[str, list[str]]:
    """Return the modules that define each public class of the package."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_two_public_classes_share_a_name() -> None:
    names = class_names()
    assert len(names) > 200
    assert {name: modules for name, modules in names.items() if len(modules) > 1} == {}
