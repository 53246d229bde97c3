"""Journal of all writes to variables, containers and objects, to undo and join branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shapefix.interpreter.facts import Facts
from shapefix.interpreter.fields import ObjectFields
from shapefix.interpreter.joins import join_paths
from shapefix.interpreter.tensor_values import TensorValue

Container = dict[Any, Any] | TensorValue
Location = tuple[int, Any]

MISSING: Any = object()


class Changes:
    """Writes of one path through the code: for each location its container, key, and last value."""

    __slots__ = ("written",)

    def __init__(self) -> None:
        self.written: dict[Location, tuple[Container, Any, Any]] = {}


def content(container: Container, key: Any) -> Any:
    """Content of container[key]; MISSING without one."""
    if isinstance(container, dict):
        return container.get(key, MISSING)
    return getattr(container, key)


def _put(container: Container, key: Any, value: Any) -> None:
    if isinstance(container, TensorValue):
        setattr(container, key, value)
    elif value is MISSING:
        container.pop(key, None)
    else:
        container[key] = value


UNCHANGED = Changes()
"""Path without writes."""


class Journal:
    """Record of writes since each open branch began, to undo and join them."""

    def __init__(self, maybe_unbound: dict[int, tuple[Container, set[Any]]] | None = None) -> None:
        self._logs: list[dict[Location, tuple[Container, Any, Any]]] = []
        self.maybe_unbound = {} if maybe_unbound is None else maybe_unbound
        """Containers by their ids, with the keys set on only some paths."""

    @property
    def depth(self) -> int:
        return len(self._logs)

    def write(self, container: Container, key: Any, value: Any) -> None:
        """Set container[key]; the keys of a tensor are "layout" and "graph"."""
        if self._logs:
            log = self._logs[-1]
            location = (id(container), key)
            if location not in log:
                log[location] = (container, key, content(container, key))
        if value is not MISSING and not isinstance(container, TensorValue):
            container[key] = value
        else:
            _put(container, key, value)

    def delete(self, container: dict[Any, Any], key: Any) -> None:
        self.write(container, key, MISSING)

    def is_maybe_unbound(self, container: Container, key: Any) -> bool:
        """Check whether key of container may be missing on some path."""
        return id(container) in self.maybe_unbound and key in self.maybe_unbound[id(container)][1]

    def doubt(self, container: Container, key: Any) -> None:
        """Mark key of container as missing on some path."""
        self.maybe_unbound.setdefault(id(container), (container, set()))[1].add(key)

    def begin(self) -> None:
        self._logs.append({})

    def undo(self) -> Changes:
        """Close the innermost branch as if it had not run, and return its changes."""
        changes = Changes()
        written = changes.written
        log = self._logs.pop()
        # Every branch ends here: calls of content and _put would take half of its time.
        for location, (container, key, old) in log.items():
            if isinstance(container, TensorValue):
                written[location] = (container, key, getattr(container, key))
                setattr(container, key, old)
                continue
            written[location] = (container, key, container.get(key, MISSING))
            if old is MISSING:
                container.pop(key, None)
            else:
                container[key] = old
        return changes

    def keep(self, ended: Container | None = None) -> None:
        """Close the innermost branch and keep its writes.

        ended are the names of a scope that was created and left in this branch: they are never undone.
        """
        log = self._logs.pop()
        if self._logs:
            outer = self._logs[-1]
            for location, entry in log.items():
                if entry[0] is not ended:
                    outer.setdefault(location, entry)

    def since(self, depth: int) -> Changes:
        """Writes since the branch opened at depth; nothing is undone."""
        changes = Changes()
        for log in self._logs[depth:]:
            for location, (container, key, _) in log.items():
                changes.written[location] = (container, key, content(container, key))
        return changes

    def apply(self, paths: Sequence[Changes]) -> None:
        """Join the states after several alternative paths."""
        if len(paths) == 1:
            for container, key, value in paths[0].written.values():
                self.write(container, key, value)
            return
        done: set[Location] = set()
        for path in paths:
            for location, (container, key, value) in path.written.items():
                if location not in done:
                    done.add(location)
                    self.write(container, key, self._meet(paths, location, container, key, value))

    def _meet(
        self, paths: Sequence[Changes], location: Location, container: Container, key: Any, first: Any
    ) -> Any:
        """Join of the content of a location over all paths."""
        before = MISSING
        after = first
        missing = False
        for path in paths:
            entry = path.written.get(location)
            if entry is not None:
                value = entry[2]
            else:
                value = before = content(container, key) if before is MISSING else before
            # A value missing on one path can only be read after another one.
            missing = missing or value is MISSING
            if value is not MISSING and value is not after:
                after = value if after is MISSING else join_paths(after, value)
        if missing and after is not MISSING and type(container) in (dict, ObjectFields, Facts):
            self.doubt(container, key)
        return after
