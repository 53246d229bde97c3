"""Public classes have names of their own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("cli", "engine", "report", "repair", "shapes", "sources")
"""Packages whose public classes share their name with no class of any package."""


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
