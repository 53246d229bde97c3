"""Wording that messages share."""

from __future__ import annotations


def abbreviate(code: str, limit: int = 60) -> str:
    """Shorten code for a message by replacing its middle with an ellipsis."""
    return code if len(code) <= limit else f"{code[: limit // 2 - 1]}…{code[-(limit // 2) :]}"
