"""Writes the longer names of the functions and classes of libraries, such as those of their own modules.

    python tests/library/generate_other_names.py

writes `shapefix/library/other_names.json` from the installed packages.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from shapefix.library import library
from shapefix.library.registry import BASES, FUNCTIONS, METHODS

FILE = Path(library.__file__).with_name("other_names.json")
PACKAGES = ("accelerate", "datasets", "lightning", "torch", "transformers")


def found(name: str) -> object | None:
    """Return the object of a qualified name; None if the installed package has none of this name."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last, None)
    except ImportError:
        return None


def other_names(name: str) -> Iterator[str]:
    """Yield all public names of an object in its own module and in the packages around it."""
    value = found(name)
    parts = getattr(value, "__module__", None) or ""
    last = name.rpartition(".")[2]
    while "." in parts:
        other = f"{parts}.{last}"
        if other != name and "._" not in f".{parts}" and found(other) is value:
            yield other
        parts = parts.rpartition(".")[0]


def written() -> str:
    """Return the content of the file: the public name by other name, package by package."""
    known = {*FUNCTIONS, *BASES, *METHODS}
    packages = {
        package: {
            "version": version(package).partition("+")[0],
            "names": {
                other: name
                for name in sorted(known, key=lambda each: (-each.count("."), each))
                if name.partition(".")[0] == package
                for other in sorted(other_names(name))
                if other not in known
            },
        }
        for package in PACKAGES
    }
    return json.dumps(packages, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
