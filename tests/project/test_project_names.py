"""Names are predictable: a rule's module has the name of its page, and a class has a name of its own."""

from __future__ import annotations

import pytest

import shapefix.checks.rules  # noqa: F401
from shapefix.checks.registry import CHECKS
from shapefix.rulebook.pages import Page, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
def test_the_module_of_a_rule_has_the_name_of_its_page(page: Page) -> None:
    modules = {check.__module__.rpartition(".")[2] for code, _, check in CHECKS if code == page.code}
    assert modules == {page.name.replace("-", "_")}


def test_a_module_has_the_checks_of_one_rule() -> None:
    rules: dict[str, set[str]] = {}
    for code, _, check in CHECKS:
        rules.setdefault(check.__module__, set()).add(code)
    assert {module: codes for module, codes in rules.items() if len(codes) > 1} == {}
