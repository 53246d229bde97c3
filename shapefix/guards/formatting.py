"""The line length of a project, and whether it runs a formatter."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH113, PTH118, PTH120

from __future__ import annotations

import configparser
import os
import re
from typing import Any

from shapefix.light_dataclasses import dataclass
from shapefix.sources.bounded_toml import InvalidToml, parse_toml
from shapefix.sources.text import Unreadable, read_bytes

DEFAULT_LENGTH = 88
"""The default of ruff and black."""
_SHORTEST = 60
_LONGEST = 400
_TAB = 4
_FORMATTERS = ("black", "yapf", "autopep8")
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class CodeStyle:
    """How a project formats its code."""

    line_length: int = DEFAULT_LENGTH
    is_formatted: bool = False

    def width(self, row: str) -> int:
        """Return the width of a row in columns."""
        return len(row.expandtabs(_TAB))


def code_style(path: str, root: str) -> CodeStyle:
    """Return the style of the project of a file: of the nearest configuration up to its root."""
    folder = os.path.dirname(os.path.abspath(path))
    lengths: list[int] = []
    is_formatted = False
    while True:
        pyproject = _toml(os.path.join(folder, "pyproject.toml")).get("tool", {})
        for table in (_toml(os.path.join(folder, name)) for name in ("ruff.toml", ".ruff.toml")):
            lengths += _lengths(table.get("line-length"))
        if isinstance(pyproject, dict):
            is_formatted |= any(name in pyproject for name in _FORMATTERS)
            ruff = pyproject.get("ruff", {})
            is_formatted |= isinstance(ruff, dict) and "format" in ruff
            for name in ("ruff", "black"):
                table = pyproject.get(name, {})
                lengths += _lengths(table.get("line-length") if isinstance(table, dict) else None)
        for name in (".flake8", "setup.cfg", "tox.ini"):
            lengths += _flake8(os.path.join(folder, name))
        hooks = _text(os.path.join(folder, ".pre-commit-config.yaml"))
        is_formatted |= re.search(r"id:\s*(?:black|ruff-format|yapf|autopep8)\b", hooks) is not None
        if lengths or folder == root or folder == os.path.dirname(folder):
            return CodeStyle(lengths[0] if lengths else DEFAULT_LENGTH, is_formatted)
        folder = os.path.dirname(folder)


def _lengths(value: Any) -> list[int]:
    return [value] if isinstance(value, int) and _SHORTEST <= value <= _LONGEST else []


def _flake8(path: str) -> list[int]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(_text(path))
        return _lengths(parser.getint("flake8", "max-line-length", fallback=None))
    except (configparser.Error, ValueError):
        return []


def _toml(path: str) -> dict[str, Any]:
    try:
        return parse_toml(_text(path))
    except (InvalidToml, RecursionError):
        return {}


def _text(path: str) -> str:
    if not os.path.isfile(path):
        return ""
    try:
        return read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
    except (Unreadable, OSError):
        return ""
