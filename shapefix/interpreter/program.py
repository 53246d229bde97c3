"""Run of a file: its top level as a script, then every function without known callers."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.interpreter import blocks, expressions, loops, statements
from shapefix.interpreter.classes import loosen, member
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.functions import run_uncalled
from shapefix.interpreter.modules import Module
from shapefix.interpreter.names import scope_of
from shapefix.interpreter.records import fields_of_record
from shapefix.interpreter.trees import tree_of
from shapefix.interpreter.values import Binding, ClassValue, Constant, FunctionValue, InstanceValue, Unknown

UNCALLED_READING = 20_000
"""Bytes of other files to read for functions without known callers, besides half of the file's own."""
LEAST_STEPS = 5_000
"""Steps for each function without known callers, as long as any are left for all of them."""
TABLES = (blocks, expressions, loops, statements)
"""Modules that register the handlers of nodes."""


def run_program(
    ev: Evaluator, module: Module, uncalled_allowance: int, first: frozenset[str] = frozenset()
) -> None:
    """Run module in ev; the events are in ev.events afterwards.

    After uncalled_allowance steps in functions without known callers, calls in them are no longer followed.
    first names those to run before the others, and with all their imports: the others are then often called.
    """
    scope = scope_of(ev, module)
    scope.names["__name__"] = Constant("__main__")
    for statements_ in module.bindings.values():
        ev.visited.add(id(statements_))
    frame = Frame(module, scope)
    ev.frames.append(frame)
    try:
        ev.run(module.tree)
        # Functions without known callers share the rest of a smaller allowance.
        budget = ev.steps + uncalled_allowance
        for names in (first, None):
            if names is None:
                ev.files.allow(UNCALLED_READING + len(module.text) // 2)
            for function, receiver in _uncalled(ev, module, frame, names):
                # The remaining steps are shared, so that the last function gets nearly as many as the first.
                ev.allowance = min(budget, ev.steps + max(LEAST_STEPS, (budget - ev.steps) // 4))
                ev.journal.begin()
                run_uncalled(ev, function, receiver)
                ev.journal.undo()
    finally:
        ev.frames.pop()


def _uncalled(
    ev: Evaluator, module: Module, frame: Frame, names: frozenset[str] | None
) -> Iterator[tuple[FunctionValue, InstanceValue | None]]:
    """Yield the functions and methods without a call so far.

    names limits them to functions of these names, and to classes with a method of such a name.
    """
    for value in list(frame.scope.names.values()):
        if isinstance(value, FunctionValue) and value.module is module:
            if id(value.node) not in ev.visited and (names is None or value.name in names):
                yield value, None
        elif isinstance(value, ClassValue) and value.module is module:
            if names is None or not names.isdisjoint(value.fields):
                yield from _uncalled_methods(ev, value)


def _uncalled_methods(ev: Evaluator, cls: ClassValue) -> Iterator[tuple[FunctionValue, InstanceValue | None]]:
    functions = [value for value in cls.fields.values() if isinstance(value, FunctionValue)]
    functions += [value.setter for value in functions if value.setter is not None]
    waiting = [value for value in functions if value.owner is cls and id(value.node) not in ev.visited]
    if not waiting:
        return
    instance = InstanceValue(cls)
    ev.cycles.append(instance.fields)
    init = member(cls, "__init__")
    if isinstance(init, FunctionValue):
        run_uncalled(ev, init, instance)
    for field in fields_of_record(cls) or ():
        instance.fields[field.name] = Unknown(f"self.{field.name}")
    loosen(instance)
    for function in waiting:
        if id(function.node) not in ev.visited:
            yield (
                function,
                None if function.binding in (Binding.STATIC_METHOD, Binding.CLASS_METHOD) else instance,
            )


def parsed(path: str, name: str, text: str) -> Module:
    """Parse a module. Raises libcst.ParserSyntaxError, and RecursionError for deep nesting."""
    return Module(path, name, text, tree_of(text))
