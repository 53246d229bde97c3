"""Signatures of Python, datasets and transformers, generated from the installed packages.

`library_signatures.json` is written by `tests/library/generate_library_signatures.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """Signatures of one package by qualified name, and the version of the package."""

    version: str
    signatures: Mapping[str, str]


@cache
def generated() -> Mapping[str, Package]:
    """Signatures of each package."""
    text = (files("shapefix.library") / "library_signatures.json").read_text(encoding="utf-8")
    return {name: Package(**package) for name, package in json.loads(text).items()}


@cache
def _by_name() -> Mapping[str, str]:
    return {name: text for package in generated().values() for name, text in package.signatures.items()}


def library_signature(name: str) -> str:
    """Parameters of a function, a constructor or a method, without self."""
    return _by_name()[name]
