"""File name patterns of the configuration, matched as ruff matches them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from shapefix.sources.wildmatch import Gap, bracket, joined

MOST_CHOICES = 100
"""Choices of one pattern, after its braces are expanded."""
DEEPEST = 20
"""Braces in braces."""
MOST_PATTERNS = 10_000
"""Patterns of one setting."""


class Globs:
    """Patterns for paths below one folder.

    A pattern matches the name of a file or folder anywhere (`build`, `*_pb2.py`), or its path relative to
    root (`scripts/old/*.py`). `*` and `?` also match slashes, `**/` matches any number of folders,
    `[abc]`, `[!abc]` and `{one,two}` choose. Raises TooManyChoices.
    """

    def __init__(self, root: str, patterns: Iterable[str]) -> None:
        self._root = root.rstrip(os.sep) + os.sep
        names: list[str] = []
        paths: list[str] = []
        for pattern in patterns:
            if len(paths) == MOST_PATTERNS:
                raise TooManyChoices(f"there are more than {MOST_PATTERNS:,} patterns")
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
    """Translate a pattern to a regular expression; unclosed brackets and braces are literal.

    Raises TooManyChoices.
    """
    return f"(?:{'|'.join(joined(parts) for parts in _choices(pattern, 0, depth=0)[0])})"


class TooManyChoices(Exception):
    """A pattern has too many choices in its braces."""


_Parts = list[str | Gap]


def _choices(pattern: str, at: int, depth: int) -> tuple[list[_Parts], int]:
    """Return the choices of a pattern, from an index to its end or that of its braces.

    depth is the number of braces around the index.
    """
    if depth > DEEPEST:
        raise TooManyChoices(f"the braces of {pattern[:40]!r} are nested more than {DEEPEST} deep")
    last = pattern.rfind("}")
    done: list[_Parts] = []
    current: list[_Parts] = [[]]
    while at < len(pattern):
        character = pattern[at]
        at += 1
        options: list[_Parts]
        if character == "*":
            if pattern.startswith("*/", at) and (at == 1 or pattern[at - 2] == "/"):
                options = [[Gap.FOLDERS]]
                at += 2
            else:
                options = [[Gap.ANY]]
        elif character == "?":
            options = [["."]]
        elif character == "[" and (chosen := bracket(pattern, at)):
            options = [[chosen[0]]]
            at = chosen[1]
        elif character == "{" and at <= last:
            options, at = _choices(pattern, at, depth + 1)
        elif character == "}" and depth:
            return done + current, at
        elif character == "," and depth:
            done += current
            current = [[]]
            continue
        else:
            options = [[re.escape(character)]]
        if len(done) + len(current) * len(options) > MOST_CHOICES:
            raise TooManyChoices(f"the braces of {pattern[:40]!r} have more than {MOST_CHOICES} choices")
        if len(options) == 1:
            for each in current:
                each += options[0]
        else:
            current = [[*prefix, *option] for prefix in current for option in options]
    # An inner brace may have taken the only closing one; open braces close here.
    return done + current, at
