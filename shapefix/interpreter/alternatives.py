"""Calls of one of several models or classes, chosen by an unknown condition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from functools import reduce

import libcst as cst

from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.joins import PATHS, join_paths, join_values
from shapefix.interpreter.journal import UNCHANGED, Changes
from shapefix.interpreter.modules import dotted_name, nodes
from shapefix.interpreter.records import fields_of_record
from shapefix.interpreter.silent_runs import rehearsal
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Imported,
    InstanceValue,
    LibraryObject,
    OneOf,
    OneOfItems,
    Unknown,
    Value,
    facts_of,
)
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import contiguous, is_contiguous, unknown_strides
from shapefix.tensors.polynomials import Size, every_symbol


@dataclass(eq=False, slots=True)
class Results:
    """Results of the calls of alternatives so far, by the node of the call."""

    by_node: dict[cst.CSTNode, Value] = field(default_factory=dict)


MOST = 6
"""Maximum number of alternatives that are followed."""
MOST_NESTED = 1
"""Maximum number of rehearsals around that of the layers in a list."""


@dataclass(frozen=True, slots=True)
class ChosenBy(Fact):
    """Names and texts in the conditions around the creation of an object, and whether a loop is around it."""

    names: frozenset[str]
    in_loop: bool


def chosen_by(ev: Evaluator) -> ChosenBy | None:
    """Return the names and texts in the open conditions; None without an open condition."""
    names = frozenset(_names_in_open_tests(ev))
    return ChosenBy(names, any(frame.loops for frame in ev.frames)) if names else None


def _names_in_open_tests(ev: Evaluator) -> Iterator[str]:
    """Yield the last part of each name, `model` for `args.model` and `self.config.model`, and each text.

    Functions may give an option another name: the texts that it is compared with are the same.
    """
    for frame in ev.frames:
        for test in frame.tests:
            for node in nodes(test):
                if isinstance(node, cst.SimpleString):
                    yield node.value.strip("'\"")
                elif isinstance(node, (cst.Name, cst.Attribute)) and (name := dotted_name(node)):
                    yield name.rpartition(".")[2]


def choices_of(value: Value) -> tuple[Value, ...]:
    """Return the alternatives of a value, or the value itself."""
    return value.choices if isinstance(value, OneOf) else (value,)


def united(left: Value, right: Value) -> tuple[Value, ...] | None:
    """Return the alternatives of two values together; None for too many."""
    choices = tuple(dict.fromkeys((*choices_of(left), *choices_of(right))))
    return choices if len(choices) <= MOST else None


@join_values
def join_classes(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join two classes of the project, or their names in other files; None for other values."""
    if depth != PATHS or not all(_is_class(choice) for side in (left, right) for choice in choices_of(side)):
        return None
    choices = united(left, right)
    return None if choices is None else OneOf(choices)


def _is_class(value: Value) -> bool:
    return isinstance(value, ClassValue) or (isinstance(value, Imported) and value.name is not None)


def call_choices(
    ev: Evaluator, function: OneOf, call: Callable[[Value], Value | None], node: cst.CSTNode
) -> Value | None:
    """Call each alternative on a path of its own, and join the results; None if that is not possible.

    call returns None for an alternative that does not take the arguments: a condition, not seen here, leaves
    it out. A condition around the call may leave out some for the same reason as it chose between them.
    Objects made in a loop, such as the layers of a model, may exist side by side.
    """
    if ev.steps > ev.allowance or _may_be_narrowed(ev, function):
        return None
    known = ev.state[Results].by_node
    if ev.rehearsals and node in known:
        # All alternatives once more, for each later iteration, would take too long.
        return known[node]
    paths: list[Changes] = []
    results: list[Value] = []
    refused = ev.refused
    for choice in function.choices:
        if not function.modules:
            # Each class makes a new object.
            result = call(choice)
            shared = UNCHANGED
            if isinstance(result, InstanceValue) and fields_of_record(result.cls) is None:
                result.facts.setdefault(ChosenBy, ChosenBy(frozenset(), in_loop=False))
        else:
            ev.journal.begin()
            result = call(choice)
            shared = _without_own(ev, ev.journal.undo(), choice)
        ev.refused = refused
        if result is not None:
            paths.append(shared)
            results.append(result)
    if not results:
        return None
    ev.journal.apply(paths)
    joined = reduce(join_paths, results)
    known[node] = joined if isinstance(joined, Value) else Unknown()
    return known[node]


def rehearse_choices(
    ev: Evaluator, function: OneOfItems, call: Callable[[Value], Value], given: Collection[Value]
) -> Value | None:
    """Call each of several layers without events or lasting changes, and join the results; None if unknown.

    Only one of them gets these arguments, and it is not known which: not one that torch rejects them for.
    """
    if ev.rehearsed > ev.rehearsal_allowance or ev.steps > ev.allowance or ev.rehearsals > MOST_NESTED:
        return None
    results: list[Value] = []
    for choice in function.choices:
        rejected = ev.silent_rejections
        ev.journal.begin()
        with rehearsal(ev):
            result = call(choice)
            is_refused = ev.refused
        ev.journal.undo()
        if is_refused:
            return None
        if ev.silent_rejections == rejected:
            results.append(result)
        ev.silent_rejections = rejected
    return _of_any(reduce(_join_results, results), given) if results else None


def _of_any(result: Value, given: Collection[Value]) -> Value:
    """Result of any of several layers with other settings: of its sizes, those of the arguments stay.

    A layer represents others with settings of the same kinds, `nn.Linear(last, width)` in a loop.
    """
    layout = result.layout if isinstance(result, TensorValue) else None
    if layout is None or not isinstance(result, TensorValue):
        return result
    own = {symbol for value in given for size in _sizes_of(value) for symbol in every_symbol(size)}
    sizes = tuple(
        size if own.issuperset(every_symbol(size)) else Size.symbol(f"size({dim})")
        for dim, size in enumerate(layout.sizes)
    )
    if sizes == layout.sizes:
        return result
    strided = contiguous(sizes) if is_contiguous(layout) is True else unknown_strides(sizes)
    return TensorValue(strided, dtype=result.dtype, device=result.device)


def _sizes_of(value: Value) -> tuple[Size, ...]:
    tensor = value.tensor if isinstance(value, Unknown) else value
    layout = tensor.layout if isinstance(tensor, TensorValue) else None
    return () if layout is None else layout.sizes


def _join_results(left: Value, right: Value) -> Value:
    joined = join_paths(left, right)
    return joined if isinstance(joined, Value) else Unknown()


def _without_own(ev: Evaluator, changes: Changes, choice: Value) -> Changes:
    """Apply the changes of an alternative to its own attributes, and return all others.

    A run that chose another one does not read its attributes.
    """
    shared = Changes()
    own: set[int] | None = None
    for location, (container, key, value) in changes.written.items():
        if isinstance(container, dict):
            own = _contents(choice) if own is None else own
            if id(container) in own:
                ev.journal.write(container, key, value)
                continue
        shared.written[location] = container, key, value
    return shared


_MOST_PARTS = 2000


def _contents(choice: Value) -> set[int]:
    """Return the ids of the attributes and facts of an object, and of the objects in it."""
    found: set[int] = set()
    waiting = [choice.receiver if isinstance(choice, BoundMethod) else choice]
    while waiting and len(found) < _MOST_PARTS:
        value = waiting.pop()
        if isinstance(value, (InstanceValue, LibraryObject)) and id(value.fields) not in found:
            found |= {id(value.fields), id(value.facts)}
            waiting += (each for each in value.fields.values() if isinstance(each, Value))
        elif isinstance(value, (ListValue, TupleValue)):
            waiting += elements(value) or ()
    return found


def _may_be_narrowed(ev: Evaluator, function: OneOf) -> bool:
    """Check for an open condition on the choice between the alternatives, and for those made in a loop."""
    tested = frozenset(_names_in_open_tests(ev))
    for choice in function.choices:
        made = choice.receiver if isinstance(choice, BoundMethod) else choice
        chosen = facts_of(made).known(ChosenBy)
        if chosen is None:
            if tested or isinstance(made, InstanceValue):
                return True
        elif chosen.in_loop or not tested.isdisjoint(chosen.names):
            return True
    return not function.modules and any(frame.loops for frame in ev.frames)
