"""Import libcst in less time, and without abstract classes."""

from __future__ import annotations

import abc
import dataclasses

from shapefix import light_dataclasses

is_own_process = False
"""Whether no other code uses the libcst of this process: set by the command line."""


class _Plain:
    """A base without a metaclass: `isinstance` calls no method of it."""

    __slots__ = ()


def import_libcst() -> None:
    """Import libcst; in a process of shapefix's own, its two hundred nodes are defined lightly.

    They are no abstract classes there: Python would look for virtual subclasses in each test of a type.
    """
    abstract = abc.ABC
    if is_own_process:
        dataclasses.dataclass = light_dataclasses.dataclass
        abc.ABC = _Plain  # type: ignore[misc, assignment]
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass = light_dataclasses.DEFINE
        abc.ABC = abstract  # type: ignore[misc]
