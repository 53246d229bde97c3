"""File name patterns of the configuration, matched as ruff matches them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from shapefix.sources.wildmatch import bracket


class Globs:
    """Patterns for paths below one folder.

    A pattern matches the name of a file or folder anywhere (`build`, `*_pb2.py`), or its path relative to
    root (`scripts/old/*.py`). `*` and `?` also match slashes, `**/` matches any number of folders,
    `[abc]`, `[!abc]` and `{one,two}` choose.
    """

    def __init__(self, root: str, patterns: Iterable[str]) -> None:
        self._root = root.rstrip(os.sep) + os.sep
        names: list[str] = []
        paths: list[str] = []
        for pattern in patterns:
            written = pattern.replace(os.sep, "/").removeprefix("./").rstrip("/")
            relative = written.removeprefix(self._root.replace(os.sep, "/"))
            paths.append(_expression(relative))
            if "/" not in written:
                names.append(_expression(written))
        self._names = re.compile("|".join(names) or r"(?!)", re.DOTALL)
        self._paths = re.compile("|".join(paths) or r"(?!)", re.DOTALL)

    def matches(self, path: str) -> bool:
        """Check whether the absolute path of a file or folder matches, regardless of its parents."""
        name = path[path.rfind(os.sep) + 1 :]
        if self._names.fullmatch(name):
            return True
        if not path.startswith(self._root):
            return False
        return self._paths.fullmatch(path[len(self._root) :].replace(os.sep, "/")) is not None


def _expression(pattern: str) -> str:
    """Translate a pattern to a regular expression; unclosed brackets and braces are literal."""
    parts: list[str] = []
    at = 0
    braces = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            if pattern.startswith("*/", at) and (at == 1 or pattern[at - 2] == "/"):
                parts.append("(?:.*/)?")
                at += 2
            else:
                parts.append(".*")
        elif character == "?":
            parts.append(".")
        elif character == "[" and (chosen := bracket(pattern, at)):
            parts.append(chosen[0])
            at = chosen[1]
        elif character == "{" and "}" in pattern[at:]:
            parts.append("(?:")
            braces += 1
        elif character == "}" and braces:
            parts.append(")")
            braces -= 1
        elif character == "," and braces:
            parts.append("|")
        else:
            parts.append(re.escape(character))
    # An inner brace may have taken the only closing one; open braces close here.
    return f"(?:{''.join(parts)}{')' * braces})"
