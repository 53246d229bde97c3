"""Unified differences of rows of text.

`difflib.unified_diff` leaves frequent rows of long files out of its search, and so moves whole functions
where a single word changed. Here every row counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher


def unified_rows(old: Sequence[str], new: Sequence[str], context: int = 3) -> Iterator[str]:
    """Return the rows of a unified diff without its header; empty if both are equal.

    The rows keep their ends; context is the number of unchanged rows around a change.
    """
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    # Only the middle is searched: most repairs change a few rows of it.
    first = max(0, start - context)
    last = max(0, end - context)
    before, after = old[first : len(old) - last], new[first : len(new) - last]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        rows = _range(first + old_start, first + old_end), _range(first + new_start, first + new_end)
        yield f"@@ -{rows[0]} +{rows[1]} @@\n"
        for kind, one, other, there, beyond in group:
            if kind == "equal":
                yield from (f" {row}" for row in before[one:other])
                continue
            yield from (f"-{row}" for row in before[one:other])
            yield from (f"+{row}" for row in after[there:beyond])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal rows at the start of both."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _range(start: int, end: int) -> str:
    """Return the rows of a hunk as `first,count`, as diff writes them."""
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1 if count else start},{count}"
