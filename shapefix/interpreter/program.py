"""Run of a file: its top level as a script, then every function without known callers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter import blocks, expressions, loops, statements
from shapefix.interpreter.classes import fixtures_of, lineage, loosen, member
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.functions import run_uncalled
from shapefix.interpreter.large_literals import condensed
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.names import scope_of
from shapefix.interpreter.records import fields_of_record
from shapefix.interpreter.refused_calls import run_top_level
from shapefix.interpreter.trees import tree_of
from shapefix.interpreter.truth import is_none
from shapefix.interpreter.values import Binding, ClassValue, Constant, FunctionValue, InstanceValue, Unknown
from shapefix.light_dataclasses import dataclass

UNCALLED_READING = 20_000
"""Bytes of other files to read for functions without known callers, besides half of the file's own."""
LEAST_STEPS = 5_000
"""Steps for each function without known callers, as long as any are left for all of them."""
LARGEST_SHARE = 4
"""The part of the remaining steps that one of these functions may take is 1 / LARGEST_SHARE."""
MOST_MODELS = 8
"""Models to run for the unknown callers of one function."""
TABLES = (blocks, expressions, loops, statements)
"""Modules that register the handlers of nodes."""


@dataclass
class _UncalledRun:
    """Run of a function without known callers: the calls not followed in it, and the first of them.

    share is the number of steps it was allowed; is_cut says that it needed more.
    """

    function: FunctionValue
    receiver: InstanceValue | None
    share: int
    bounded: int = 0
    bounded_at: Place | None = None
    is_cut: bool = False

    def run(self, ev: Evaluator) -> None:
        """Run the function with its share of the steps."""
        outside = ev.bounded, ev.bounded_at
        ev.bounded, ev.bounded_at = 0, None
        ev.allowance = ev.steps + self.share
        ev.journal.begin()
        made = len(ev.models)
        _run_uncalled(ev, self.function, self.receiver)
        if ev.steps <= ev.allowance:
            _run_models(ev, made)
        ev.journal.undo()
        self.is_cut = ev.bounded > 0 and ev.steps > ev.allowance
        self.bounded, self.bounded_at = ev.bounded, ev.bounded_at
        ev.bounded, ev.bounded_at = outside


def run_program(
    ev: Evaluator,
    module: Module,
    uncalled_allowance: int,
    first: frozenset[str] = frozenset(),
    *,
    script_only: bool = False,
) -> None:
    """Run module in ev; the events are in ev.events afterwards.

    After uncalled_allowance steps in functions without known callers, calls in them are no longer followed.
    first names those to run before the others, and with all their imports: the others are then often called.
    script_only leaves out the functions without known callers.
    """
    scope = scope_of(ev, module)
    scope.names["__name__"] = Constant("__main__")
    for statements_ in module.bindings.values():
        ev.visited.add(id(statements_))
    frame = Frame(module, scope)
    ev.frames.append(frame)
    try:
        run_top_level(ev, module)
        if script_only:
            return
        # Functions without known callers share the rest of a smaller allowance.
        budget = ev.steps + uncalled_allowance
        made = len(ev.models)
        limited: list[_UncalledRun] = []
        for names in (first, None):
            if names is None:
                ev.files.allow(UNCALLED_READING + len(module.text) // 2)
            for function, receiver in _uncalled(ev, module, frame, names, budget):
                # The remaining steps are shared, so that the last function gets nearly as many as the first.
                left = budget - ev.steps
                run = _UncalledRun(function, receiver, min(left, max(LEAST_STEPS, left // LARGEST_SHARE)))
                run.run(ev)
                if run.bounded:
                    limited.append(run)
        del ev.models[made:]
        ev.allowance = budget
        _run_models(ev, 0)
        # What the others left is for the functions that were cut short.
        for run in limited:
            left = budget - ev.steps
            if run.is_cut and left > run.share:
                run.share = left
                run.run(ev)
            if run.bounded:
                ev.bounded += run.bounded
                ev.bounded_at = ev.bounded_at or run.bounded_at
    finally:
        ev.frames.pop()


def _uncalled(
    ev: Evaluator, module: Module, frame: Frame, names: frozenset[str] | None, budget: int
) -> Iterator[tuple[FunctionValue, InstanceValue | None]]:
    """Yield the functions and methods without a call so far.

    names limits them to functions of these names, and to classes with a method of such a name. budget is the
    step at which the calls of all of them are no longer followed.
    """
    for value in list(frame.scope.names.values()):
        if isinstance(value, FunctionValue) and value.module is module:
            if id(value.node) not in ev.visited and (names is None or value.name in names):
                yield value, None
        elif isinstance(value, ClassValue) and value.module is module:
            if names is None or not names.isdisjoint(value.fields):
                yield from _uncalled_methods(ev, value, budget)


def _overridable(cls: ClassValue) -> Iterator[str]:
    """Yield the attributes of a class with the value None, for its subclasses to define: `dtype = None`."""
    names = {name for base in lineage(cls) if isinstance(base, ClassValue) for name in base.fields}
    for name in sorted(names):
        value = member(cls, name)
        if value is not None and is_none(value):
            yield name


def _run_models(ev: Evaluator, start: int) -> None:
    """Run the models created for unknown callers, such as a trainer: their own settings are known.

    start is the number of older models. Without settings, an object is like any other of its class.
    """
    made = ev.models[start:]
    del ev.models[start:]
    for model in made[:MOST_MODELS]:
        forward, init = member(model.cls, "forward"), member(model.cls, "__init__")
        if model in ev.forwarded or not model.fields or not isinstance(forward, FunctionValue):
            continue
        if not isinstance(init, FunctionValue) or ev.steps > ev.allowance:
            continue
        params = init.node.params
        if len((*params.posonly_params, *params.params, *params.kwonly_params)) < 2:
            continue
        visited = set(ev.visited)
        _run_uncalled(ev, forward, model)
        ev.visited = visited


def _run_uncalled(ev: Evaluator, function: FunctionValue, receiver: InstanceValue | None) -> None:
    """Run a function with unknown arguments; the ways to its events begin with it."""
    ev.uncalled = function
    run_uncalled(ev, function, receiver)
    ev.uncalled = None


def _uncalled_methods(
    ev: Evaluator, cls: ClassValue, budget: int
) -> Iterator[tuple[FunctionValue, InstanceValue | None]]:
    functions = [value for value in cls.fields.values() if isinstance(value, FunctionValue)]
    functions += [value.setter for value in functions if value.setter is not None]
    waiting = [value for value in functions if value.owner is cls and id(value.node) not in ev.visited]
    if not waiting:
        return
    instance = InstanceValue(cls)
    ev.cycles.append(instance.fields)
    init = member(cls, "__init__")
    if isinstance(init, FunctionValue):
        # All methods need the object. It is made only once: its share is larger than theirs.
        ev.allowance = ev.steps + (budget - ev.steps) // 2
        refused = ev.refusals
        _run_uncalled(ev, init, instance)
        if ev.refusals > refused:
            # There are no objects of this class.
            return
    fixtures = fixtures_of(cls)
    for fixture in fixtures:
        _run_uncalled(ev, fixture, instance)
    for name in _overridable(cls):
        instance.fields.setdefault(name, Unknown(f"self.{name}"))
    for field in fields_of_record(cls) or ():
        instance.fields[field.name] = Unknown(f"self.{field.name}")
    loosen(instance, {"__init__", *(fixture.name for fixture in fixtures)})
    for function in waiting:
        if id(function.node) not in ev.visited:
            yield (
                function,
                None if function.binding in (Binding.STATIC_METHOD, Binding.CLASS_METHOD) else instance,
            )


def parsed(path: str, name: str, text: str) -> Module:
    """Parse a module. Raises libcst.ParserSyntaxError, and RecursionError for deep nesting."""
    short, literals = condensed(text)
    try:
        return Module(path, name, text, tree_of(short), literals)
    except cst.ParserSyntaxError:
        if not literals:
            raise
        return Module(path, name, text, tree_of(text))
