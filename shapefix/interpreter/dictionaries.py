"""Dictionaries: their keys, loops over them, and dictionaries made of others."""

from __future__ import annotations

from typing import Any

from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.values import Unknown, Value


class Entries(ListValue):
    """Keys, values or items of a dictionary, in order; known are the certain ones.

    It has items only if all of them are known.
    """

    __slots__ = ("known", "owner")

    def __init__(self, owner: DictValue, known: tuple[Value, ...], complete: bool, element: Value) -> None:
        super().__init__(known if complete else None, None if complete else element)
        self.owner = owner
        self.known = known


def certain_keys(ev: Evaluator, owner: DictValue) -> list[Any]:
    """Keys of a dictionary on every path."""
    return [key for key in owner.fields if not ev.journal.is_maybe_unbound(owner.fields, key)]


def is_complete(ev: Evaluator, owner: DictValue) -> bool:
    """Check whether the known keys certainly exist, and are all."""
    return owner.closed and len(certain_keys(ev, owner)) == len(owner.fields)


def update(ev: Evaluator, result: DictValue, added: Value) -> None:
    """Copy the entries of another dictionary into a new one, as `{**added}` does."""
    if not isinstance(added, DictValue) or not is_complete(ev, added):
        # Unknown keys may replace earlier entries.
        result.fields.update({key: Unknown() for key in result.fields})
        result.closed = False
    if isinstance(added, DictValue):
        result.fields.update((key, added.fields[key]) for key in certain_keys(ev, added))
        result.written.update(added.written)


def merged(ev: Evaluator, left: DictValue, right: Value) -> DictValue:
    """Evaluate `left | right`."""
    result = DictValue({}, kind=left.kind, absent=left.absent)
    update(ev, result, left)
    update(ev, result, right)
    return result
