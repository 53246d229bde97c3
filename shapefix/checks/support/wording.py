"""Shared wording of messages."""

from __future__ import annotations

from collections.abc import Sequence


def abbreviate(code: str, limit: int = 60) -> str:
    """Shorten code for a message by replacing its middle with an ellipsis."""
    return code if len(code) <= limit else f"{code[: limit // 2 - 1]}…{code[-(limit // 2) :]}"


def listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
