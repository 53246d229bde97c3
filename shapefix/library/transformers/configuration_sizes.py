"""Default sizes of transformers configurations: tables generated from the library itself.

`data/configurations-*.json` hold the defaults of 4.57 and 5.24, see
tests/library/generate_configurations.py. A number is known if all versions with the class agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

_VERSIONS = ("4.57", "5.24")


def sizes_of(name: str, given: Iterable[str]) -> dict[str, int]:
    """Numbers of a configuration, `BertConfig`, created with arguments of these names only.

    Empty for an unknown class. Numbers derived from given arguments are not included.
    """
    described = [classes[name] for classes in map(_classes, _VERSIONS) if name in classes]
    if not described:
        return {}
    asked = frozenset(given)
    tables = [_without(one, asked) for one in described]
    return {key: number for key, number in tables[0].items() if all(t.get(key) == number for t in tables)}


def _without(described: Any, asked: frozenset[str]) -> dict[str, int]:
    follows: dict[str, str] = described["follows"]
    pairs = (pair.split("=") for pair in described["sizes"].split())
    return {
        name: int(number)
        for name, number in pairs
        if name not in asked and asked.isdisjoint(follows.get(name, "").split())
    }


@cache
def _classes(version: str) -> dict[str, Any]:
    text = (
        files("shapefix.library.transformers").joinpath("data", f"configurations-{version}.json").read_text()
    )
    classes: dict[str, Any] = json.loads(text)["classes"]
    return classes
