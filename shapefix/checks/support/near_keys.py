"""Misspelled keys: `label` for `labels`."""

from __future__ import annotations

from collections.abc import Iterable


def near(keyword: str, named: Iterable[str]) -> str | None:
    """Return the name misspelled by a keyword, `labels` for `label`; None if it is ambiguous.

    A leading underscore says that a parameter is unused: `_labels` is not a misspelling.
    """
    names = {name for name in named if name == keyword or not name.startswith("_")}
    if keyword in names:
        return None
    wanted = _plain(keyword)
    same = [name for name in names if _plain(name) == wanted]
    if len(same) == 1:
        return same[0]
    close = [] if same else [name for name in names if _one_slip(keyword.lower(), name)]
    return close[0] if len(close) == 1 else None


def _plain(name: str) -> str:
    """Return a name without case, underscores and plurals."""
    return "".join(word.removesuffix("s") for word in name.lower().split("_"))


def _one_slip(keyword: str, name: str) -> bool:
    """Whether one word of a name differs by one added, missing, swapped or changed letter.

    A difference in a short word, a first letter or a number makes another name: `input_idx`, `labels_2`.
    """
    typed, meant = keyword.split("_"), name.split("_")
    if len(typed) != len(meant):
        return False
    slips = [(one, other) for one, other in zip(typed, meant, strict=True) if one != other]
    if len(slips) != 1 or min(map(len, slips[0])) < 4 or not slips[0][0].isalpha():
        return False
    one, other = sorted(slips[0], key=len)
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    if start == 0:
        return False
    if len(one) < len(other):
        return one == other[1:]
    return one[1:] == other[1:] or (one[:2] == other[1::-1] and one[2:] == other[2:])
