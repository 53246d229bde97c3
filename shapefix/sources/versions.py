"""Versions of libraries, and the bounds of requirements on them."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 300
"""Characters in bounds, and in a version: longer ones are ignored, they would only take time."""


def is_version(text: str) -> bool:
    """Check whether the text is a version, as `4.57` or `5.0.0rc1`."""
    from packaging.version import InvalidVersion, Version

    if len(text) > LONGEST:
        return False
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def pinned(bounds: str) -> str | None:
    """Return the pinned version, if there is one."""
    exact = re.fullmatch(r"={2,3}\s*v?(\d+(?:\.\d+)*(?:\.?(?:a|b|rc|post|dev)\d+)*)(?:\+[\w.]+)?", bounds)
    return exact[1] if exact else None


def newest_within(bounds: str, known: list[str]) -> str | None:
    """Return the newest version within bounds; None for the latest, and for malformed bounds."""
    newest = first_within(bounds, reversed(known))
    return None if newest == known[-1] else newest


def first_within(bounds: str, versions: Iterable[str]) -> str | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(bounds)
    except InvalidSpecifier:
        return None
    # `~=4.40.1` lets a later 4.40 through, but not the first one.
    return next((each for each in versions if allowed.contains(each) or allowed.contains(f"{each}.99")), None)


def release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
