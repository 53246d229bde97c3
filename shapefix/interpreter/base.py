"""Base of all values."""

from __future__ import annotations


class Value:
    """Result of evaluating an expression."""

    __slots__ = ()
