"""The base of all values."""

from __future__ import annotations


class Value:
    """Anything that an expression can evaluate to."""

    __slots__ = ()
