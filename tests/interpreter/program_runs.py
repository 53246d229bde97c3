"""One program, run by torch and by the interpreter, and everything in which the two disagree.

A moment is a place reached through these calls, in these iterations of the loops around them: what both
sides say of the same moment must agree.
"""

from __future__ import annotations

import ast
import contextlib
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import torch

from shapefix.checks.context import CheckContext
from shapefix.checks.rules import RULES, findings
from shapefix.domains.operations import InPlaceWrite, Viewed
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event, Revealed
from shapefix.interpreter.modules import Module
from shapefix.interpreter.program import parsed, run_program
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Value
from shapefix.library.library import TorchLibrary
from shapefix.tensors.layout import has_unknown_strides
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.verdicts import Illegal, Legal

PROGRAM = "<program>"
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""They have frames of their own before Python 3.12, but are no calls."""
Stack = tuple[int, ...]
"""The lines of the calls, outermost first, and the line itself."""
Counts = tuple[int | None, ...]
"""The counters of the loops that are open, None where one is not known."""


@dataclass
class Seen:
    """What happened at the lines of a program: values that it showed, views, lines run, and exceptions."""

    reveals: dict[tuple[Stack, Counts], Any] = field(default_factory=dict)
    views: dict[tuple[Stack, Counts], bool] = field(default_factory=dict)
    lines: set[tuple[Stack, Counts]] = field(default_factory=set)
    raised: set[tuple[Stack, Counts]] = field(default_factory=set)


@dataclass
class Tally:
    """How much was compared."""

    reveals: int = 0
    known: int = 0
    views: int = 0
    refused: int = 0
    reported: int = 0

    def add(self, other: Tally) -> None:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def open_loops(text: str) -> dict[int, tuple[str, ...]]:
    """The counters (names that start with `loop`) of the loops around each line, outermost first."""
    counters: dict[int, tuple[str, ...]] = {}

    def visit(node: ast.AST, around: tuple[str, ...]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            around = ()
        if isinstance(node, ast.stmt):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                counters[line] = around
        body: list[ast.stmt] = node.body if isinstance(node, (ast.For, ast.While)) else []
        inner = around
        if isinstance(node, (ast.For, ast.While)):
            head = node.target if isinstance(node, ast.For) else node.test
            named = [n.id for n in ast.walk(head) if isinstance(n, ast.Name) and n.id.startswith("loop")]
            inner = (*around, *named)
        for child in ast.iter_child_nodes(node):
            visit(child, inner if child in body else around)

    visit(ast.parse(text), ())
    return counters


def execute(text: str, arguments: tuple[Any, ...], seed: int) -> Seen:
    """Run text with torch, and its function `program` with arguments where there are any.

    A view that torch refuses is noted, and the program goes on with a copy.
    """
    seen = Seen()
    counters = open_loops(text)

    def moment(frame: types.FrameType | None) -> tuple[Stack, Counts]:
        stack: list[int] = []
        counts: list[int | None] = []
        while frame is not None:
            if frame.f_code.co_filename == PROGRAM and frame.f_code.co_name not in COMPREHENSIONS:
                stack.insert(0, frame.f_lineno)
                here = [frame.f_locals.get(name) for name in counters.get(frame.f_lineno, ())]
                counts[:0] = here
            frame = frame.f_back
        # The line of the file itself at which `program` is called is not part of the program.
        return tuple(stack), tuple(counts)

    def reveal(value: Any) -> Any:
        kept = value.detach() if isinstance(value, torch.Tensor) else value
        seen.reveals.setdefault(moment(sys._getframe(1)), kept)
        return value

    def note(frame: types.FrameType, refused: bool) -> None:
        if frame.f_code.co_filename == PROGRAM:
            seen.views.setdefault(moment(frame), refused)

    def trace(frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != PROGRAM:
            return None
        if event == "line":
            seen.lines.add(moment(frame))
        elif event == "exception":
            seen.raised.add(moment(frame))
        return trace

    names: dict[str, Any] = {"reveal": reveal, "__name__": "__main__"}
    with surroundings(seed, note):
        code = compile(text, PROGRAM, "exec")
        sys.settrace(trace)
        try:
            exec(code, names)
            if arguments:
                names["program"](*arguments)
        except Exception as error:
            # Sizes may turn out otherwise than while the program was written; names may not.
            if isinstance(error, NameError):
                raise
        finally:
            sys.settrace(None)
    return seen


@contextlib.contextmanager
def surroundings(
    seed: int, note: Callable[[types.FrameType, bool], None] = lambda frame, refused: None
) -> Iterator[None]:
    """The module `elsewhere` of functions that nobody can look into, and fixed random numbers.

    A view that torch refuses gives a copy instead; note is told the frame of each view, and whether it was.
    """
    chance = random.Random(seed)
    elsewhere = types.ModuleType("elsewhere")
    elsewhere.coin = lambda *_: chance.random() < 0.5  # type: ignore[attr-defined]
    elsewhere.count = lambda *_: chance.randint(0, 3)  # type: ignore[attr-defined]
    elsewhere.perhaps_raise = partial(_perhaps_raise, chance)  # type: ignore[attr-defined]
    method = torch.Tensor.view

    def view(tensor: torch.Tensor, *target: Any) -> torch.Tensor:
        frame = sys._getframe(1)
        try:
            result = method(tensor, *target)
        except RuntimeError as error:
            if "view size is not compatible" not in str(error):
                raise
            note(frame, True)
            return tensor.clone(memory_format=torch.contiguous_format).reshape(*target)
        note(frame, False)
        return result

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(sys.modules, {"elsewhere": elsewhere}))
        stack.enter_context(mock.patch.object(torch.Tensor, "view", view))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield


def _perhaps_raise(chance: random.Random) -> None:
    if chance.random() < 0.4:
        raise ValueError


class _NoFiles:
    def locate(self, importing: Module, module: str, level: int) -> str | None:
        return None

    def module(self, path: str) -> Module | None:
        return None

    def allow(self, size: int) -> None:
        return None

    def text(self, script: Module, path: str) -> str | None:
        return None


class _Watching(Evaluator):
    """An evaluator that takes note of the moment of each event."""

    def __init__(self, counters: Mapping[int, tuple[str, ...]]) -> None:
        super().__init__(TorchLibrary(), _NoFiles(), 200_000)
        self.counters = counters
        self.moments: list[tuple[Event, Stack, Counts]] = []

    def emit(self, event: Event) -> None:
        if self.silenced:
            return
        super().emit(event)
        stack = tuple(place.span.row for place in (*event.calls, event.place))
        # Frames of functions that nobody called stand above other frames, but have no calls before them.
        frames = [frame for frame in self.frames if frame.scope is not None][-len(stack) :]
        counts: list[int | None] = []
        for line, frame in zip(stack, frames, strict=False):
            for name in self.counters.get(line, ()):
                scope = frame.scope
                while name not in scope.names and scope.outer is not None:
                    scope = scope.outer
                value = scope.names.get(name)
                counts.append(value.value if isinstance(value, Constant) else None)
        self.moments.append((event, stack, tuple(counts)))


def disagreements(
    text: str,
    arguments: tuple[Any, ...],
    sizes: Mapping[str, int],
    seed: int,
    tally: Tally,
    certain: bool = False,
) -> list[str]:
    """Whatever the interpreter says of the program that is not so in this run; sizes are those it names.

    Where everything that decides is certain, it is counted how many of the views that torch refuses
    are found.
    """
    seen = execute(text, arguments, seed)
    ev = _Watching(open_loops(text))
    run_program(ev, parsed("program.py", "program", text), 100_000)
    problems: list[str] = []
    reported: set[int] = set()
    strict = True
    for event, stack, counts in ev.moments:
        found = findings(CheckContext([event], ev.symbol_names), frozenset(RULES))
        codes = {d.code: d.condition.text if d.condition else None for d in found}
        if "SF101" in codes:
            reported.add(stack[-1])
        # The first iteration is the one that the interpreter runs where it does not know the number.
        moment = (stack, tuple(count if count is not None else 0 for count in counts))
        if isinstance(event, Revealed) and moment in seen.reveals:
            tally.reveals += 1
            problems += _differences(event.value, seen.reveals[moment], sizes, stack, tally, strict)
        elif isinstance(event, Viewed) and isinstance(event.verdict, Illegal):
            # What is copied, where sizes of 1 make no copy necessary, counts as copied from here on.
            strict = strict and _exceed_one(event.verdict.conditions, sizes)
        if isinstance(event, Viewed) and moment in seen.views:
            tally.views += 1
            problems += _misjudged(event, codes, seen.views[moment], sizes, stack)
        elif isinstance(event, InPlaceWrite) and "SF104" in codes and event.refused:
            if moment in seen.lines and moment not in seen.raised and _holds(event, sizes):
                problems.append(f"line {stack[-1]}: SF104, and torch writes")
    for stack, _ in (moment for moment, refused in seen.views.items() if refused and certain):
        tally.refused += 1
        tally.reported += stack[-1] in reported
    return problems


def _holds(event: InPlaceWrite, sizes: Mapping[str, int]) -> bool:
    assert event.layout is not None
    assert event.shared is not None
    known = [number(size, sizes) for size in event.layout.sizes]
    return all(known) and known[event.shared] != 1


def _misjudged(
    event: Viewed, codes: Mapping[str, str | None], refused: bool, sizes: Mapping[str, int], stack: Stack
) -> list[str]:
    where = f"line {stack}: {event.place.code} of {event.layout}"
    if isinstance(event.verdict, Legal) and refused:
        return [f"{where}: called legal, and torch refuses"]
    if isinstance(event.verdict, Illegal) and not refused and event.method.startswith("view"):
        if _exceed_one(event.verdict.conditions, sizes):
            return [f"{where}: called illegal, and torch views; {codes}"]
    return []


def _exceed_one(conditions: Sequence[Size], sizes: Mapping[str, int]) -> bool:
    known = [number(size, sizes) for size in conditions]
    return all(size is not None and size > 1 for size in known)


def _differences(
    ours: Value, real: Any, sizes: Mapping[str, int], stack: Stack, tally: Tally, strict: bool
) -> Iterator[str]:
    where = f"line {stack}"
    if isinstance(ours, Constant):
        tally.known += 1
        if type(ours.value) is not type(real) or ours.value != real:
            yield f"{where}: {ours.value!r} is {real!r}"
    elif isinstance(ours, Integer):
        known = number(ours.size, sizes)
        tally.known += known is not None
        if not isinstance(real, int) or (known is not None and known != real):
            yield f"{where}: {ours.size} is {real!r}"
    elif isinstance(ours, TupleValue):
        if not isinstance(real, tuple) or len(real) != len(ours.items):
            yield f"{where}: {len(ours.items)} items are {real!r}"
        else:
            for one, other in zip(ours.items, real, strict=True):
                yield from _differences(one, other, sizes, stack, tally, strict)
    elif isinstance(ours, TensorValue):
        if not isinstance(real, torch.Tensor):
            yield f"{where}: a tensor is {real!r}"
        else:
            yield from _different_tensors(ours, real, sizes, where, tally, strict)


def _different_tensors(
    ours: TensorValue,
    real: torch.Tensor,
    sizes: Mapping[str, int],
    where: str,
    tally: Tally,
    strict: bool,
) -> Iterator[str]:
    if not real.numel():
        # Sizes are taken to be at least 1.
        return
    shown = f"{where}: {ours.layout} is {tuple(real.shape)} strides {real.stride()}"
    if ours.dtype is not None and f"torch.{ours.dtype}" != str(real.dtype):
        yield f"{where}: {ours.dtype} is {real.dtype}"
    if ours.layout is None:
        if strict and ours.contiguous and not real.is_contiguous():
            yield f"{where}: contiguous is {tuple(real.shape)} strides {real.stride()}"
        return
    tally.known += 1
    if ours.layout.rank != real.dim():
        yield shown
        return
    opaque = not strict or has_unknown_strides(ours.layout)
    for dim in range(real.dim()):
        size, stride = number(ours.layout.sizes[dim], sizes), number(ours.layout.strides[dim], sizes)
        if size is not None and size != real.shape[dim]:
            yield shown
            return
        if real.shape[dim] != 1 and real.numel() and not opaque and stride not in (None, real.stride(dim)):
            yield shown
            return


def number(size: Size, sizes: Mapping[str, int]) -> int | None:
    """The size where its symbols have these values; None where it has others."""
    values: dict[Any, Any] = {
        symbol: sizes[symbol.name] for symbol in every_symbol(size) if symbol.name in sizes
    }
    return substitute(size, values).value
