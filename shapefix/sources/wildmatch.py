"""The patterns of .gitignore as regular expressions, by git's rules (gitignore(5), wildmatch.c)."""

from __future__ import annotations

import re

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def expression(pattern: str) -> str | None:
    """Return an expression for a whole path without a trailing slash; None if it matches nothing.

    pattern has no slash at its start or end either. `*`, `?` and brackets do not match a slash;
    `**` between slashes, or between a slash and an end, matches any number of folders.
    """
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            start = at - 1
            while pattern.startswith("*", at):
                at += 1
            starts_part = start == 0 or pattern[start - 1] == "/"
            if at - start == 2 and starts_part and pattern.startswith("/", at):
                parts.append("(?:.*/)?")
                at += 1
            elif at - start == 2 and starts_part and at == len(pattern) and start:
                parts.append(".+")
            else:
                parts.append("[^/]*")
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
    return "".join(parts)


def bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """Return the expression of a bracket with content at an index, and the index after it.

    None for an unclosed bracket, and for an unknown character class.
    """
    negated = pattern.startswith(("!", "^"), at)
    at += negated
    first = at
    chosen: list[str] = []
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        named = re.compile(r"\[:(\w+):\]").match(pattern, at)
        if named:
            if named[1] not in _CLASSES:
                return None
            chosen.append(_CLASSES[named[1]])
            at = named.end()
            continue
        low, at = _character(pattern, at)
        high = low
        if pattern.startswith("-", at) and at + 1 < len(pattern) and pattern[at + 1] != "]":
            high, at = _character(pattern, at + 1)
        if low <= high:
            chosen.append(f"{re.escape(low)}-{re.escape(high)}")
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
