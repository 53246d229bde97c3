"""The patterns of .gitignore as regular expressions, by git's rules (gitignore(5), wildmatch.c).

Characters are bytes, as for git: patterns and paths are decoded as Latin-1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Gap(Enum):
    """A part of a pattern for texts of any length; the value is its expression."""

    IN_NAME = "[^/]*?"
    ANY = ".*?"
    FOLDERS = "(?:.*?/)??"


def joined(parts: Sequence[str | Gap]) -> str:
    """Return an expression for a whole text; strings are expressions for one character.

    Beside IN_NAME, the other expressions match a slash always or never.
    Between two gaps the first place that fits is the best one: it leaves most to the rest. So each of them is
    an atomic group, and a pattern of many stars takes no longer than one of a few.
    """
    runs: list[list[str | Gap]] = [[]]
    for part in parts:
        if part in (Gap.ANY, Gap.FOLDERS):
            runs.append([part])
        else:
            runs[-1].append(part)
    first, *others = runs
    written = _run(first, is_last=not others)
    for run in others[:-1]:
        written += f"(?>{_run(run, is_last=False)})"
    return written + (_run(others[-1], is_last=True) if others else "")


def _run(parts: Sequence[str | Gap], is_last: bool) -> str:
    """Return an expression for parts without a gap across folders, except at their start."""
    pieces: list[list[str]] = [[]]
    for part in parts:
        if part is Gap.IN_NAME:
            pieces.append([])
        pieces[-1].append(part.value if isinstance(part, Gap) else part)
    first, *others = map("".join, pieces)
    open_end = others[-1:] if is_last else []
    return (
        first + "".join(f"(?>{piece})" for piece in others[: len(others) - len(open_end)]) + "".join(open_end)
    )


def expression(pattern: str, literal: int | None = None) -> str | None:
    """Return an expression for a whole path without a trailing slash; None if it matches nothing.

    pattern has no slash at its start. `*`, `?` and brackets do not match a slash; `**` between slashes, or
    between a slash and an end, matches any number of folders. git compares the first literal characters of a
    pattern before the rest, so that the rest starts like a pattern: `a**/b` matches `a/b` and `ac/d/b`.
    """
    starts = (0, literal_length(pattern) if literal is None else literal)
    parts: list[str | Gap] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            start = at - 1
            while pattern.startswith("*", at):
                at += 1
            is_wide = at - start > 1 and (start in starts or pattern[start - 1] == "/")
            if is_wide and pattern.startswith("/", at):
                parts.append(Gap.FOLDERS)
                at += 1
            elif is_wide and (at == len(pattern) or pattern.startswith("\\/", at)):
                parts.append(Gap.ANY)
            else:
                parts.append(Gap.IN_NAME)
        elif character == "?":
            parts.append("[^/]")
        elif character == "[":
            chosen = bracket(pattern, at)
            if chosen is None:
                return None
            parts.append(chosen[0])
            at = chosen[1]
        elif character == "\\":
            if at == len(pattern):
                return None
            parts.append(re.escape(pattern[at]))
            at += 1
        else:
            parts.append(re.escape(character))
    return joined(parts)


def literal_length(pattern: str) -> int:
    """Return the number of characters before the first special one."""
    special = re.search(r"[*?[\\]", pattern)
    return special.start() if special else len(pattern)


_CLASS = re.compile(r"\[:([^\]]*):\]")


def bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """Return the expression of a bracket with content at an index, and the index after it.

    None for an unclosed bracket, and for an unknown character class.
    """
    negated = pattern.startswith(("!", "^"), at)
    at += negated
    first = at
    chosen: list[str] = []
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        named = _CLASS.match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                return None
            chosen.append(_CLASSES[named[1]])
            at = named.end()
            continue
        if pattern[at] == "\\" and at + 1 == len(pattern):
            return None
        low, at = _character(pattern, at)
        high = low
        if pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] != "]":
            if pattern[at + 1] == "\\" and at + 2 == len(pattern):
                return None
            high, at = _character(pattern, at + 1)
        # `[z-a]` is z: the first character counts before the range is known.
        chosen.append(re.escape(low))
        if low < high:
            chosen.append(f"-{re.escape(high)}")
    if at >= len(pattern):
        return None
    if not chosen:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(chosen)}]", at + 1


def _character(pattern: str, at: int) -> tuple[str, int]:
    """Return the character at an index, unescaped, and the index after it."""
    if pattern[at] == "\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1
