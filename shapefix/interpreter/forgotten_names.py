"""Names and items to forget after a loop: later iterations give them other values."""

from __future__ import annotations

from shapefix.interpreter.containers import CONTENTS, Contents, DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Lost, Unknown, Value


def holder_of(ev: Evaluator, name: str) -> tuple[dict[str, Value], str] | None:
    """Dictionary of a name, or of an attribute of a project object, and its key there."""
    first, _, attribute = name.partition(".")
    scope = ev.frame.scope.home(first)
    while first not in scope.names and scope.outer is not None:
        scope = scope.outer
    if not attribute:
        return scope.names, first
    owner = scope.names.get(first)
    return (owner.fields, attribute) if isinstance(owner, InstanceValue) else None


def forget_name(ev: Evaluator, name: str) -> None:
    """Forget the value of a name: another iteration has another one."""
    holder = holder_of(ev, name)
    if holder is None:
        return
    value = holder[0].get(holder[1])
    if isinstance(value, (ListValue, DictValue)):
        # Their contents are joined at the writes to them.
        return
    if value is not None:
        ev.journal.write(holder[0], holder[1], without_facts(value, name))


def without_facts(value: object, name: str = "") -> Value:
    """Another value of the same type: a tensor stays one."""
    if isinstance(value, TensorValue):
        return TensorValue(certain=value.certain)
    lost = Lost(name)
    if isinstance(value, Unknown) and value.tensor is not None:
        lost.tensor = TensorValue(certain=value.tensor.certain)
    return lost


_MADE = (TensorValue, InstanceValue, LibraryObject)
"""Values created for given sizes; the rows of a list keep what they have in common."""


def forget_items(ev: Evaluator, name: str) -> None:
    """Forget the items of a list or library container: later iterations store other ones."""
    holder = holder_of(ev, name)
    owner = holder[0].get(holder[1]) if holder is not None else None
    lists = [owner]
    if isinstance(owner, LibraryObject):
        lists += [field for field in owner.fields.values() if isinstance(field, ListValue)]
    for held in lists:
        if isinstance(held, ListValue) and any(
            isinstance(each, _MADE) for each in (*(held.items or ()), held.element)
        ):
            ev.journal.write(held.fields, CONTENTS, Contents(None, None, None, held.axes))
