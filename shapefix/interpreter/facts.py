"""Facts about an object beside its attributes, one of each class."""

from __future__ import annotations

from typing import TypeVar

from shapefix.interpreter.fields import ObjectFields


class Fact:
    """Base of the facts: small frozen dataclasses, attached to objects by domains and the library."""

    __slots__ = ()


Known = TypeVar("Known", bound=Fact)


class Facts(ObjectFields):
    """Facts of one object by their class; None for an invalidated fact.

    Written by `ev.journal.write(value.facts, Frozen, Frozen())`, so that branches are undone and joined.
    """

    @classmethod
    def of(cls, *facts: Fact) -> Facts:
        """Facts of a new object."""
        return cls((type(fact), fact) for fact in facts)

    def known(self, kind: type[Known]) -> Known | None:
        """Fact of this class; None without one, or if it is no longer known."""
        fact: Known | None = self.get(kind)
        return fact
