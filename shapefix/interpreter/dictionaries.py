"""Dictionaries made of others."""

from __future__ import annotations

from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.iteration import certain_keys, is_complete
from shapefix.interpreter.values import Unknown, Value


def take_over(ev: Evaluator, result: DictValue, added: Value) -> None:
    """Put what is in another dictionary into a new one, as `{**added}` does."""
    if not isinstance(added, DictValue) or not is_complete(ev, added):
        # What may be there besides the known keys may replace what an earlier entry says.
        result.fields.update({key: Unknown() for key in result.fields})
        result.closed = False
    if isinstance(added, DictValue):
        result.fields.update((key, added.fields[key]) for key in certain_keys(ev, added))
        result.written.update(added.written)


def merged(ev: Evaluator, left: DictValue, right: Value) -> DictValue:
    """`left | right`."""
    result = DictValue({}, kind=left.kind, absent=left.absent)
    take_over(ev, result, left)
    take_over(ev, result, right)
    return result
