"""Graphs used by a second backward: of a loop's later pass, or of a later statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

import libcst as cst

from shapefix.domains.operations import InPlaceWrite
from shapefix.domains.saved_tensors import MadeAt, SavedTensors
from shapefix.domains.training import Backward, LossAccumulated
from shapefix.interpreter import hooks
from shapefix.interpreter.containers import elements
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place, children, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import Constant, Unknown, Value
from shapefix.light_dataclasses import dataclass

_DEEPEST = 3
_FEW = 8


@dataclass(frozen=True, eq=False, slots=True)
class GraphReused(Event):
    """A backward through a part of a graph already used by an earlier backward.

    backward is the second one, first the earlier one, the same in a loop. made is the operation of the shared
    part. loop is the loop with both; is_carried is whether a pass of it passes the part on to the next one.
    names are the variables with results in the shared part; for a state the one that carries it, a tuple if
    is_tuple. is_unset is whether the state is None in the first pass. kept is the write into the memory of a
    state or the assignment of an attribute, with the graph; None if it is not known.
    """

    backward: Backward
    first: Backward
    made: MadeAt
    loop: Loop | None
    is_carried: bool
    names: frozenset[str] = frozenset()
    is_tuple: bool = False
    is_unset: bool = False
    kept: Place | None = None


class _Rehearsed:
    """Backwards of the next pass of a loop and their graphs, recorded while it is rehearsed."""

    __slots__ = ("backwards",)

    def __init__(self) -> None:
        self.backwards: list[tuple[Backward, list[TensorValue]]] | None = None


@dataclass(eq=False, slots=True)
class _NextPass:
    """Rehearsal of the next pass of a loop; its copies for rehearsals share the record."""

    record: _Rehearsed = field(default_factory=_Rehearsed)


@dataclass(frozen=True, eq=False, slots=True)
class _Change:
    """Values of one place before and after the first pass of a loop; names of attributes begin with a dot.

    is_part is whether they are items of a tuple or list.
    """

    name: str
    old: Value
    new: TensorValue
    is_part: bool = False


@hooks.end_first_pass
def _note_later_passes(
    ev: Evaluator, loop: Loop, start: int, changes: list[tuple[str, Any, Any]], again: Callable[[], None]
) -> None:
    """Report each backward of a loop with the same graph in its next pass."""
    if ev.silenced or not any(True for _ in _backwards(ev, loop)):
        return
    unset = [each for each in changes if _is_unset(*each)]
    if unset:
        states = [(name, new) for name, _, new in unset if _is_read_and_set(loop, name)]
        if len(states) == 1:
            ((name, new),) = states
            is_tuple = not isinstance(new, TensorValue)
            _note_next_pass(ev, loop, again, _Kept(frozenset({name}), is_tuple, is_unset=True))
        return
    if _may_differ(loop, changes):
        return
    changed = list(_tensors(changes))
    is_found = False
    before = {id(change.old) for change in changed if isinstance(change.old, TensorValue)}
    results = ev.state[SavedTensors].results
    for backward in _backwards(ev, loop):
        loss = backward.loss
        if not isinstance(loss, TensorValue) or backward.keeps_graph:
            continue
        within = tuple(each.loop for each in backward.loops)
        found = [
            made
            for tensor in _graph(loss, before)
            if (made := results.get(tensor)) is not None
            and made.once
            and made.step < start
            and _is_prefix(made.loops, within[:-1])
        ]
        for made in found[:1]:
            names = _names_of(ev, _graph(loss, before))
            ev.emit(GraphReused(backward.place, backward.calls, backward, backward, made, loop, False, names))
        if found:
            is_found = True
            continue
        change, carried = _passed_on(ev, loop, loss, changed)
        if change is not None and carried is not None and carried.once and _is_prefix(carried.loops, within):
            names = frozenset({change.name}) if not _is_sum(ev, loop, change) else frozenset[str]()
            is_tuple, is_found = change.is_part, True
            kept = _assignments(ev, change.name[1:]) if change.name.startswith(".") else []
            ev.emit(
                GraphReused(
                    backward.place,
                    backward.calls,
                    backward,
                    backward,
                    carried,
                    loop,
                    True,
                    names,
                    is_tuple,
                    kept=kept[0] if len(kept) == 1 else None,
                )
            )
    if not is_found:
        _note_kept_graphs(ev, loop, changes, again)


def _note_kept_graphs(
    ev: Evaluator, loop: Loop, changes: list[tuple[str, Any, Any]], again: Callable[[], None]
) -> None:
    """Report the backwards of a next pass through a graph kept by an attribute or a memory."""
    is_written = any(name == ".graph" and new is True and not old for name, old, new in changes)
    attributes = {name[1:] for name, old, new in changes if name.startswith(".") and _gets_graph(old, new)}
    if not is_written and not attributes and not any(_gets_graph(old, new) for _, old, new in changes):
        return
    kept = _writes_of_graphs(ev, loop) if is_written else []
    kept += [place for name in sorted(attributes) for place in _assignments(ev, name)]
    names = [name for name, old, new in changes if not name.startswith(".") and _gets_graph(old, new)]
    if kept or len(names) != 1 or not _is_read_and_set(loop, names[0]):
        names = []
    state = frozenset(names)
    _note_next_pass(ev, loop, again, _Kept(state, place=kept[0] if len(kept) == 1 else None))


def _gets_graph(old: Any, new: Any) -> bool:
    """Whether a variable or attribute holds a tensor without a graph before a pass, and with one after it."""
    if not isinstance(new, TensorValue) or not requires_grad(new):
        return False
    return isinstance(old, TensorValue) and requires_grad(old) is False


def _writes_of_graphs(ev: Evaluator, loop: Loop) -> list[Place]:
    """Return the places of writes of tensors with graphs into others in a loop."""
    return list(
        {
            each.place.node: each.place
            for each in ev.events[loop.events :]
            if isinstance(each, InPlaceWrite) and each.tensor.storage.grafted
        }.values()
    )


def _assignments(ev: Evaluator, attribute: str) -> list[Place]:
    """Return the assignments of an attribute in the running file, outside of constructors."""
    module = ev.frame.module
    found = module.once(module.tree, _set_outside_init)
    return [Place(module, node) for name, node in found if name == attribute]


def _set_outside_init(tree: cst.Module) -> tuple[tuple[str, cst.CSTNode], ...]:
    found: list[tuple[str, cst.CSTNode]] = []
    waiting: list[cst.CSTNode] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)) and isinstance(node.target, cst.Attribute):
            found.append((node.target.attr.value, node.target))
        if not isinstance(node, cst.FunctionDef) or node.name.value != "__init__":
            waiting.extend(children(node))
    return tuple(found)


def _is_unset(name: str, old: Any, new: Any) -> bool:
    """Whether a variable is None before the first pass of a loop, and a result with a graph after it."""
    if name.startswith(".") or not isinstance(old, Constant) or old.value is not None:
        return False
    parts = elements(new) or (new,) if isinstance(new, Value) else ()
    return any(isinstance(part, TensorValue) and requires_grad(part) for part in parts)


@dataclass(frozen=True, slots=True)
class _Kept:
    """State kept by a pass of a loop for the next one, as in GraphReused."""

    names: frozenset[str]
    is_tuple: bool = False
    is_unset: bool = False
    place: Place | None = None


def _note_next_pass(ev: Evaluator, loop: Loop, again: Callable[[], None], kept: _Kept) -> None:
    """Report the backwards of the next pass through the graph of the first one."""
    firsts = [each for each in _backwards(ev, loop) if not each.keeps_graph]
    if not firsts:
        return
    record = ev.state[_NextPass].record
    found: list[tuple[Backward, list[TensorValue]]] = []
    record.backwards = found
    again()
    record.backwards = None
    results = ev.state[SavedTensors].results
    for first in firsts:
        used = [results[each] for each in _graph_of_value(first.loss) if each in results]
        freed = {_moment(made) for made in used if made.once}
        for backward, graph in found:
            if backward.place.node is not first.place.node or not backward.loops[-1].certain:
                continue
            known = [results[each] for each in graph if each in results]
            shared = [made for made in known if _moment(made) in freed]
            if shared:
                ev.emit(
                    GraphReused(
                        first.place,
                        first.calls,
                        first,
                        first,
                        shared[0],
                        loop,
                        True,
                        kept.names,
                        kept.is_tuple,
                        kept.is_unset,
                        kept.place,
                    )
                )
                break


def _graph_of_value(loss: Value | None) -> list[TensorValue]:
    return graph_of(loss) if isinstance(loss, TensorValue) else []


def note_second_backward(ev: Evaluator, backward: Backward) -> None:
    """Report a backward through a graph already used by an earlier one of the same function."""
    loss = backward.loss
    rehearsed = ev.state[_NextPass].record.backwards
    if rehearsed is not None:
        rehearsed.append((backward, _graph_of_value(loss)))
    if ev.silenced or not isinstance(loss, TensorValue):
        return
    results = ev.state[SavedTensors].results
    loops = tuple(each.loop for each in backward.loops)
    shared = [each for each in graph_of(loss) if each in results]
    earlier = [each for each in ev.events if isinstance(each, Backward) and each is not backward][-_FEW:]
    for first in earlier if shared else ():
        if first.keeps_graph or first.calls != backward.calls or not isinstance(first.loss, TensorValue):
            continue
        if tuple(each.loop for each in first.loops) != loops:
            continue
        again = first.place.node is backward.place.node
        if again and not (first.loops and first.loops[-1].certain and backward.loops[-1].certain):
            continue
        used = {_moment(results[each]) for each in graph_of(first.loss) if each in results}
        for tensor in shared:
            made = results[tensor]
            if _moment(made) in used and made.once and _is_prefix(made.loops, loops):
                loop = loops[-1] if again else None
                is_carried = again and made.loops == loops
                names, is_tuple = _names_of(ev, {*graph_of(first.loss)} & {*shared}), False
                if loop is not None and is_carried:
                    names, is_tuple = _state(ev, loop)
                ev.emit(
                    GraphReused(
                        backward.place,
                        backward.calls,
                        backward,
                        first,
                        made,
                        loop,
                        is_carried,
                        names,
                        is_tuple,
                    )
                )
                return


def _names_of(ev: Evaluator, tensors: Iterable[TensorValue]) -> frozenset[str]:
    """Return the variables of the running function bound to one of these tensors."""
    known = {id(each) for each in tensors}
    return frozenset(name for name, value in ev.frames[-1].scope.names.items() if id(value) in known)


def _state(ev: Evaluator, loop: Loop) -> tuple[frozenset[str], bool]:
    """Return the variable with the graph of a pass for the next one, and whether it is a tuple.

    None of them if there are several candidates.
    """
    found = [
        (name, not isinstance(value, TensorValue))
        for name, value in ev.frames[-1].scope.names.items()
        if any(isinstance(each, TensorValue) and requires_grad(each) for each in elements(value) or (value,))
        and _is_read_and_set(loop, name)
    ]
    if len(found) != 1:
        return frozenset(), False
    name, is_tuple = found[0]
    return frozenset({name}), is_tuple


def _passed_on(
    ev: Evaluator, loop: Loop, loss: TensorValue, changed: list[_Change]
) -> tuple[_Change | None, MadeAt | None]:
    """Return the state or sum with a graph used again by the next pass, and its operation."""
    used = graph_of(loss)
    results = ev.state[SavedTensors].results
    freed = {_moment(results[each]) for each in used if each in results}
    operands = {id(source) for each in used for source in each.sources}
    for change in changed:
        if _is_sum(ev, loop, change):
            if not any(each is change.new for each in used):
                continue
        elif id(change.old) not in operands or not _is_read_and_set(loop, change.name):
            continue
        elif _is_detached_in_place(change.old):
            # The next pass does the same to the new state.
            continue
        for tensor in graph_of(change.new):
            made = results.get(tensor)
            if made is None or _moment(made) not in freed:
                continue
            if not change.name.startswith(".") or _is_assigned(made, change.name[1:]):
                return change, made
    return None, None


def _is_detached_in_place(state: Value) -> bool:
    cut = state.cut if isinstance(state, TensorValue) else None
    return cut is not None and cut.operation.endswith("detach_")


def _is_assigned(made: MadeAt, attribute: str) -> bool:
    """Whether the file of an operation assigns an attribute of this name: a state of the project's own."""
    module = made.place.module
    return attribute in module.once(module.tree, _assigned_attributes)


def _assigned_attributes(tree: cst.CSTNode) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
            found.update(each.attr.value for each in nodes(node.target) if isinstance(each, cst.Attribute))
    return frozenset(found)


def _is_sum(ev: Evaluator, loop: Loop, change: _Change) -> bool:
    """Whether a variable adds up tensors over the passes of a loop, from a number before it."""
    if (
        change.name.startswith(".")
        or not isinstance(change.old, Constant)
        or _settings(loop, change.name) != (0, 1)
    ):
        return False
    return any(
        isinstance(event, LossAccumulated)
        and event.total is change.new
        and event.loops[-1].loop is loop
        and event.loops[-1].certain
        and isinstance(event.place.node, cst.AugAssign)
        for event in ev.events
    )


def _moment(made: MadeAt) -> tuple[int, int]:
    """Return a key shared by all results of one call."""
    return id(made.place.node), made.step


def _may_differ(loop: Loop, changes: list[tuple[str, Any, Any]]) -> bool:
    """Whether a later pass may take other branches, because of a changed flag."""
    flags = {name for name, old, _ in changes if isinstance(old, Constant) and name != "."}
    attributes = [new for name, old, new in changes if name.startswith(".") and name in flags]
    if any(isinstance(new, (Constant, Unknown)) for new in attributes):
        return True
    waiting: list[cst.CSTNode] = [loop.node.body]
    while flags and waiting:
        node = waiting.pop()
        if isinstance(node, (cst.If, cst.IfExp, cst.While)) and flags & set(_names(node.test)):
            return True
        waiting.extend(children(node))
    return False


def _is_read_and_set(loop: Loop, name: str) -> bool:
    """Whether a variable is read by each pass of a loop, then set at one place; always for attributes."""
    if name.startswith("."):
        return True
    return _settings(loop, name) == (1, 0) and next(_uses(loop.node.body, name), None) is False


def _settings(loop: Loop, name: str) -> tuple[int, int]:
    """Return how often the body of a loop assigns a variable, and how often it adds to it."""
    assigned = added = 0
    waiting: list[cst.CSTNode] = [loop.node.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.AugAssign):
            added += isinstance(node.target, cst.Name) and node.target.value == name
        elif isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)):
            assigned += name in target_names(node.target)
        waiting.extend(children(node))
    return assigned, added


def _uses(node: cst.CSTNode, name: str) -> Iterator[bool]:
    """Yield each use of a variable in the order of evaluation: whether it is an assignment."""
    if isinstance(node, cst.Assign):
        yield from _uses(node.value, name)
        for target in node.targets:
            yield from (True for each in target_names(target.target) if each == name)
    elif isinstance(node, cst.Name):
        yield from (False for _ in range(node.value == name))
    elif not isinstance(node, (cst.Lambda, cst.FunctionDef)):
        for child in children(node):
            yield from _uses(child, name)


def _names(node: cst.CSTNode) -> Iterator[str]:
    """Return all names in an expression."""
    return (each.value for each in nodes(node) if isinstance(each, cst.Name))


def _backwards(ev: Evaluator, loop: Loop) -> Iterator[Backward]:
    """Yield the backwards certain in each pass of a loop, outside of its inner loops."""
    for event in ev.events[loop.events :]:
        if isinstance(event, Backward) and event.loops and event.loops[-1].loop is loop:
            if event.loops[-1].certain:
                yield event


def _graph(loss: TensorValue, stops: set[int]) -> list[TensorValue]:
    """Return the tensors certainly reached by gradients, up to those in stops."""
    if not requires_grad(loss) or id(loss) in stops:
        return []
    found, seen = [loss], {id(loss)}
    for each in found:
        for source in each.sources:
            if id(source) not in seen and id(source) not in stops and requires_grad(source):
                seen.add(id(source))
                found.append(source)
    return found


def graph_of(loss: TensorValue) -> list[TensorValue]:
    """Return the tensors certainly reached by gradients of a loss."""
    return _graph(loss, set())


def _is_prefix(loops: tuple[Loop, ...], others: tuple[Loop, ...]) -> bool:
    return others[: len(loops)] == loops


def _tensors(changes: list[tuple[str, Any, Any]], depth: int = 0) -> Iterator[_Change]:
    """Yield the changed tensors, with the items of tuples and lists one by one."""
    for name, old, new in changes:
        if isinstance(new, TensorValue):
            if isinstance(old, Value):
                yield _Change(name, old, new, depth > 0)
            continue
        olds = elements(old) if isinstance(old, Value) else None
        news = elements(new) if isinstance(new, Value) else None
        if olds is not None and news is not None and len(olds) == len(news) and depth < _DEEPEST:
            parts = [(name, one, other) for one, other in zip(olds, news, strict=True)]
            yield from _tensors(parts, depth + 1)
