"""Loop-carried dependencies: after one pass, invalidate every value dependent on a change of that pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

import libcst as cst

from shapefix.interpreter.carried_kinds import KeptLayers, KeptRank
from shapefix.interpreter.containers import CONTENTS, Contents, DictValue, ListValue, RaggedDim, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.fields import ObjectFields
from shapefix.interpreter.forgotten_names import forget_items, forget_name, holder_of, without_facts
from shapefix.interpreter.joins import join, join_contents, without_length
from shapefix.interpreter.journal import MISSING, Changes, Container, Location, content
from shapefix.interpreter.loop_assignments import (
    ITEMS,
    RETURNED,
    assignments,
    every_name,
    lists_of_items,
    read_first,
    targets_of,
)
from shapefix.interpreter.per_item_sizes import along, rebound, with_others
from shapefix.interpreter.stability import has_new_sizes, is_stable
from shapefix.interpreter.tensor_values import Storage, TensorValue, other_memory
from shapefix.interpreter.values import Constant, InstanceValue, LibraryObject, Lost, Names, Unknown, Value
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.symbols import PerItemSize, Symbol

DEEPEST = 3
"""Maximum depth of the containers in an item of a loop."""


class LaterChanges(IntEnum):
    """Changes of a later iteration, by the objects with new contents."""

    NONE = 0
    OF_OTHERS = 1
    """Objects that no earlier iteration changed; it may have created them itself."""
    OF_KNOWN = 2


class LoopCarried:
    """State before a loop, at all locations written by its first iteration."""

    def __init__(
        self,
        ev: Evaluator,
        loop: cst.For | cst.While | cst.CompFor,
        paths: Sequence[Changes],
        axes: frozenset[RaggedDim],
        since: int,
        item: Value | None = None,
    ) -> None:
        self._axes = axes
        self._since = since
        self._module = ev.frame.module
        self._loop = loop
        self._returns = False
        self._before: dict[Location, tuple[Container, Any, Any]] = {}
        self._values: dict[Location, Any] = {}
        self._own = frozenset(_containers(item)) if item is not None else frozenset()
        self._unstable: dict[Location, tuple[Container, Any, Any]] = {}
        self._objects: dict[Location, Value] = {}
        self._seen: set[Location] = set()
        self._created: dict[int, Contents] = {}
        """Contents of lists that the first iteration created, by the identity of their holders."""
        self._kept: list[Changes] = []
        """Changes of later iterations, kept so that no new container gets the identity of an old one."""
        self.kept: tuple[KeptRank | KeptLayers, ...] = ()
        """Ranks of tensors and kinds of layers that are the same after each iteration."""
        self._note_created(paths)
        for path in paths:
            for location, (container, key, _) in path.written.items():
                self._before[location] = (container, key, _facts(content(container, key)))
                self._values[location] = content(container, key)

    def _note_created(self, paths: Sequence[Changes]) -> None:
        """Note the final contents of the lists created in the iteration."""
        names = self._module.once(self._loop, lists_of_items) if isinstance(self._loop, cst.For) else ()
        for path in paths if names else ():
            for container, key, after in path.written.values():
                if isinstance(container, Names) and key in names and isinstance(after, ListValue):
                    ended = path.written.get((id(after.fields), CONTENTS))
                    if ended is not None:
                        known = self._created.get(id(after.fields))
                        contents = ended[2] if known is None else join_contents(known, ended[2])
                        self._created[id(after.fields)] = contents

    def is_seen_elsewhere(self, ev: Evaluator, start: int) -> bool:
        """Check for changes visible in functions called since the step start, or in objects.

        Changes of the loop's own variables are followed by their names. Call in the state after the first
        iteration.
        """
        names: set[str] = set()
        changed = written = False
        for container, key, before in self._before.values():
            is_changed = before != _facts(content(container, key))
            changed = changed or is_changed
            written = written or type(container) in (dict, ObjectFields)
            if not isinstance(container, Names):
                written = written or is_changed
            elif is_changed and before != "missing":
                names.add(key)
        if changed and written:
            return True
        entered = [function for function, step in ev.entered.items() if step >= start]
        return any(not names.isdisjoint(self._module.once(node, every_name)) for node in entered)

    def begins_alike(self, ev: Evaluator, start: int) -> bool:
        """Check whether a later iteration begins with all facts of the first one.

        It then changes the same. Names that each iteration binds before it reads them do not matter, except
        to functions called since the step start. Call in the state after the first iteration.
        """
        own = ev.frame.scope
        read = self._module.once(self._loop, read_first)
        names: set[str] = set()
        for location, (container, key, before) in self._before.items():
            if id(container) in self._own or ev.undone_since(container, self._since):
                continue
            value, now = self._values[location], content(container, key)
            if now is value or (isinstance(now, Constant) and before == _facts(now)):
                continue
            if _is_bare(value) and _is_bare(now):
                continue
            if container is own.names and key not in read:
                names.add(key)
            elif value is not MISSING or not ev.undone_since(getattr(key, "fields", None), self._since):
                return False
        entered = [function for function, step in ev.entered.items() if step >= start] if names else ()
        return not any(self._module.once(node, every_name) & names for node in entered)

    def begin_later(self, ev: Evaluator) -> None:
        """Prepare the state for a later iteration.

        Its item is not the one that the first iteration changed. Lists of objects are empty, to see what it
        adds.
        """
        self.forget(ev)
        for location, (container, key, _) in self._before.items():
            if id(container) in self._own:
                ev.journal.write(container, key, self._values[location])
                continue
            value = content(container, key)
            if isinstance(value, Contents) and isinstance(value.element, (InstanceValue, LibraryObject)):
                self._objects[location] = value.element
                ev.journal.write(container, key, Contents(()))

    def note_later(self, ev: Evaluator, paths: Sequence[Changes], begun: int) -> LaterChanges:
        """Note the changes of a later iteration begun at a moment, and return the kind of the new ones.

        Call in the state before that iteration. Symbols created since the loop began are those of one
        iteration; the next one does not see the objects that this one creates.
        """
        since = self._since
        found = LaterChanges.NONE
        _restore_objects(ev, paths, begun)
        for path in paths:
            for location, (container, key, after) in path.written.items():
                if id(container) in self._own or ev.undone_since(container, begun):
                    continue
                before = content(container, key)
                if location in self._objects:
                    before, after = self._objects[location], without_length(after).element
                    if after is not None and not is_stable(before, after, since):
                        if location not in self._unstable:
                            found = LaterChanges.OF_KNOWN
                        self._unstable[location] = (container, key, Contents(None))
                    continue
                if isinstance(before, Contents) and isinstance(after, Contents):
                    if has_new_sizes(before.element, since):
                        # The items differ in these sizes, which says nothing about the others.
                        continue
                    # The items of all iterations have in common what their join has.
                    after = join_contents(without_length(before), without_length(after))
                elif location in self._unstable:
                    continue
                if before is MISSING and isinstance(key, (Storage, Value)):
                    # What is known of an object that this iteration created says nothing about others.
                    continue
                if before is MISSING or after is MISSING or not is_stable(before, after, since):
                    self._unstable[location] = (container, key, after)
                    known = location in self._before or location in self._seen
                    found = max(found, LaterChanges.OF_KNOWN if known else LaterChanges.OF_OTHERS)
        self._seen |= {location for path in paths for location in path.written}
        self._kept += paths
        return found

    def give_up(self, paths: Sequence[Changes]) -> None:
        """Note everything written by an iteration as changed by later ones."""
        for path in paths:
            for location, (container, key, _) in path.written.items():
                self._unstable[location] = (container, key, Contents(None) if key == CONTENTS else None)

    def note_returns(self, ev: Evaluator, values: Sequence[Value]) -> None:
        """Note the results of the function, returned by a later iteration."""
        first = ev.frame.returns
        stable = all(any(is_stable(one, value, self._since) for one in first) for value in values)
        if not stable and not self._returns:
            self._returns = True
            first.append(Lost())

    def creates(self, ev: Evaluator, container: Container) -> bool:
        """Check whether the iteration creates an object. Call in the state before it."""
        return ev.undone_since(container, self._since)

    def forget(self, ev: Evaluator) -> None:
        """Forget values dependent on changes of the first iteration; call in the state after it."""
        self._forget_dependent(ev)
        for container, key, later in self._unstable.values():
            self._forget_later(ev, container, key, later)
        for kept in self.kept:
            kept.write(ev)

    def _forget_later(self, ev: Evaluator, container: Container, key: Any, later: Any) -> None:
        """Forget a content changed by later iterations; a list keeps the common facts of all items."""
        value = content(container, key)
        if isinstance(later, Contents):
            ev.journal.write(container, key, later)
        elif isinstance(container, TensorValue):
            self._forget_content(ev, container, key)
        elif isinstance(container, Facts):
            ev.journal.write(container, key, None)
        else:
            ev.journal.write(container, key, without_facts(value) if isinstance(container, Names) else Lost())
            if value is MISSING and not isinstance(container, Names):
                ev.journal.doubt(container, key)

    def _forget_dependent(self, ev: Evaluator) -> None:
        changed = {
            location
            for location, (container, key, before) in self._before.items()
            if before != "missing" and _facts(content(container, key)) != before
        }
        if not changed:
            return
        # Lists made of lists that were created in the loop see what is left of those.
        for location in sorted(changed, key=lambda each: each[0] not in self._created):
            container, key, _ = self._before[location]
            removed = content(container, key) is MISSING
            own = id(container) in self._own and (removed or isinstance(self._loop, cst.CompFor))
            if not isinstance(container, Names) and not own:
                self._forget_content(ev, container, key)
        if isinstance(self._loop, cst.CompFor):
            return
        stated = self._module.once(self._loop, assignments)
        containers = {container for container, key in changed if key != "graph"}
        names = {name for entry in stated for name in entry.reads}
        if isinstance(self._loop, cst.For):
            # Each iteration binds these again before it reads them.
            names.difference_update(targets_of(self._loop.target))
        tainted = {name for name in names if _is_changed(ev, name, changed, containers)}
        lost: set[str] = set()
        growing = True
        while growing:
            growing = False
            for assignment in stated:
                if not assignment.reads.isdisjoint(tainted) and not lost.issuperset(assignment.targets):
                    lost.update(assignment.targets)
                    tainted.update(assignment.targets)
                    growing = True
        if RETURNED in lost and not self._returns:
            self._returns = True
            ev.frame.returns.append(Lost())
        for name in lost - {RETURNED}:
            if name.endswith(ITEMS):
                forget_items(ev, name.removesuffix(ITEMS))
            else:
                forget_name(ev, name)

    def _forget_content(self, ev: Evaluator, container: Container, key: Any) -> None:
        """Invalidate the content of a list, dictionary, object or tensor changed by each iteration."""
        value = content(container, key)
        if isinstance(container, TensorValue):
            ev.journal.write(container, key, other_memory(value) if isinstance(value, Storage) else None)
            if key == "layout":
                container.clear_sizes()
        elif isinstance(value, Contents):
            # The items added by the iterations range over the loop's dimensions.
            value = self._created.get(id(container), value)
            element = without_length(value).element
            for axis in self._axes:
                element = element and rebound(element, axis, self._since)
            length = self._length_of_one(value.length) if id(container) in self._created else None
            ev.journal.write(container, key, Contents(None, element, length, value.axes | self._axes))
        elif isinstance(value, Value) or (value is MISSING and not isinstance(container, Facts)):
            ev.journal.write(container, key, Lost())
        else:
            ev.journal.write(container, key, None)

    def _length_of_one(self, length: Size | None) -> Size | None:
        """Length of a list created in each iteration; None if it may depend on earlier iterations."""
        symbols = [] if length is None else [*every_symbol(length)]
        if length is None or len(symbols) != 1 or not isinstance(symbols[0], PerItemSize):
            return None
        if symbols[0].axis is None and symbols[0].serial > self._since and len(self._axes) == 1:
            known: dict[Symbol, int | Size] = {}
            return with_others(length, lambda symbol: along(symbol, next(iter(self._axes))), known)
        return length if symbols[0].axis in self._axes else None


def _restore_objects(ev: Evaluator, paths: Sequence[Changes], begun: int) -> None:
    """Fill the objects created by an undone iteration again: only values of that iteration refer to them."""
    for path in paths:
        for container, key, after in path.written.values():
            if after is MISSING or not isinstance(container, ObjectFields) or isinstance(container, Names):
                continue
            if ev.undone_since(container, begun):
                known = container.get(key, MISSING)
                container[key] = after if known is MISSING or known is after else join(known, after)


def _containers(value: Value | None, depth: int = 0) -> Iterator[int]:
    """Identify the containers in an item of a loop: another item has others."""
    if value is None or depth > DEEPEST:
        return
    if isinstance(value, TensorValue):
        yield id(value)
    elif isinstance(value, TupleValue):
        for part in value.items:
            yield from _containers(part, depth + 1)
    elif isinstance(value, ListValue):
        yield id(value.fields)
        for item in (*(value.items or ()), value.element):
            yield from _containers(item, depth + 1)
    elif isinstance(value, (DictValue, InstanceValue, LibraryObject)):
        yield id(value.fields)
        for held in list(value.fields.values()):
            if isinstance(held, Value):
                yield from _containers(held, depth + 1)
    elif isinstance(value, Unknown):
        yield id(value.attributes)
        yield from _containers(value.tensor, depth + 1)


def _is_changed(ev: Evaluator, name: str, changed: set[Location], containers: set[int]) -> bool:
    holder = holder_of(ev, name)
    if holder is None:
        return False
    if (id(holder[0]), holder[1]) in changed:
        return True
    value = holder[0].get(holder[1])
    if isinstance(value, (ListValue, DictValue)):
        return id(value.fields) in containers
    return isinstance(value, TensorValue) and id(value) in containers


def _is_bare(value: Any) -> bool:
    """Check for a lost value without any known fact."""
    return type(value) is Lost and value.tensor is None and value.used_as is None and not value.has_parts


def _facts(value: Any) -> Any:
    """Facts of a value in a comparable form."""
    if value is MISSING:
        return "missing"
    if isinstance(value, Constant):
        return type(value.value), value.value
    if isinstance(value, TensorValue):
        device = value.device
        where = None if device is None else (device.kind, device.name, device.symbol)
        return value.layout, value.dtype, value.contiguous, where
    return value
