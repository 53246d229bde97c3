"""Shared wording of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_OPENING, _CLOSING = "([{", ")]}"


def abbreviate(code: str, limit: int = 60) -> str:
    """Shorten code for a message: `…` for the last arguments of a call, or else for its middle.

    Of all ways to omit arguments of one call, or items of one list, that with the most code left is taken.
    """
    if len(code) <= limit:
        return code
    shorter = [text for text in _without_arguments(code) if len(text) <= limit]
    if shorter:
        return max(shorter, key=len)
    return f"{code[: limit // 2 - 1]}…{code[-(limit // 2) :]}"


def _without_arguments(code: str) -> Iterator[str]:
    """Yield code with the last parts of one of its brackets omitted, from one part to all of them."""
    open_brackets: list[list[int]] = []
    quote = ""
    for position, character in enumerate(code):
        if quote:
            escaped = code[position - 1] == "\\"
            quote = "" if character == quote and not escaped else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            open_brackets.append([position + 1])
        elif character == "," and open_brackets:
            open_brackets[-1].append(position)
        elif character in _CLOSING and open_brackets:
            first, *commas = open_brackets.pop()
            if position == first:
                continue
            yield f"{code[:first]}…{code[position:]}"
            for comma in commas:
                yield f"{code[:comma]}, …{code[position:]}"


def counted(number: int | str, noun: str) -> str:
    """Return `1 channel` or `3 channels`."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
