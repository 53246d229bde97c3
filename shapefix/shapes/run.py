"""`shapefix shapes`: runs a file with a watch on some of its functions, and lists what was seen."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH110, PTH112, PTH119

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.describe import SHORT
from shapefix.diagnostics import Failure
from shapefix.engine.analysis import DEEPEST_RECURSION, ProjectFiles
from shapefix.engine.parse_limits import refuse_unparsable
from shapefix.engine.source_overlay import real
from shapefix.engine.syntax_errors import python_failure
from shapefix.interpreter.calls import Arguments, instantiate
from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.functions import run_function
from shapefix.interpreter.modules import Module, ModuleCache
from shapefix.interpreter.names import module_name, scope_of
from shapefix.interpreter.program import parsed, run_program
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Binding,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Unknown,
    Value,
    integer,
)
from shapefix.interpreter.watching import WatchedRun, Watcher, parameter_names, parameters_of
from shapefix.library.library import TorchLibrary
from shapefix.shapes.build import listing
from shapefix.shapes.inputs import Inputs, read_inputs
from shapefix.shapes.listings import Listing
from shapefix.shapes.targets import NotShown, Target, check_inputs, constructed, everything, named
from shapefix.sources.project import Project, project_root
from shapefix.sources.text import SourceText, Unreadable, read_source
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol

STEPS = 200_000
"""How many steps each part of a run may take: somebody waits for this one file only."""
READING = 20_000_000
MODULE = "torch.nn.Module"


class Unanswered(Exception):
    """The file cannot be read or parsed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def split_name(asked: str) -> tuple[str, str]:
    """`model.py:UNet.forward` as the file, and the name in it, which may be empty."""
    if not os.path.exists(asked):
        path, parted, name = asked.rpartition(":")
        if parted and path and (not name or all(part.isidentifier() for part in name.split("."))):
            return path, name
    return asked, ""


def shapes(
    path: str, name: str, inputs: Sequence[str], rules: frozenset[str], transformers_version: str | None
) -> list[Listing]:
    """The listings of a file: of the function, or the forward of the class, that is called name, or of all.

    inputs are as for read_inputs. Raises BadInput, NotShown and Unanswered.
    """
    given = read_inputs(inputs)
    source = _source(path)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST_RECURSION))
    try:
        return _Showing(source, rules, transformers_version).show(name, given)
    except cst.ParserSyntaxError as error:
        failure = python_failure(source) or Failure(source.path, f"cannot be parsed: {error.message}")
        raise Unanswered(failure) from None
    except RecursionError:
        raise Unanswered(Failure(source.path, "is nested too deeply to be analysed")) from None
    finally:
        sys.setrecursionlimit(limit)


def _source(path: str) -> SourceText:
    if os.path.isdir(path):
        raise NotShown(f"{path} is a folder; name a file, and perhaps a class in it: model.py:UNet")
    if path.endswith(".ipynb"):
        raise Unanswered(Failure(path, "notebooks are not read yet"))
    try:
        source = read_source(real(path))
        refuse_unparsable(source)
    except Unreadable as error:
        raise Unanswered(Failure(path, error.message, error.row, error.column)) from None
    return source


class _Showing:
    """One file, and the project around it."""

    def __init__(self, source: SourceText, rules: frozenset[str], transformers_version: str | None) -> None:
        self._rules = rules
        self._versions = {} if transformers_version is None else {"transformers": transformers_version}
        self._library = TorchLibrary()
        self._project = Project(project_root(source.path))
        self._cache = ModuleCache(lambda path: self._parsed(_parsable(path)), lines=1_000_000)
        self._module = self._cache.add(self._parsed(source))

    def _parsed(self, source: SourceText) -> Module:
        name = self._project.module_name(source.path)
        return parsed(source.path, name, source.text)

    def _files(self) -> ProjectFiles:
        files = ProjectFiles(self._project, self._cache, READING)
        files.add(self._module)
        return files

    def show(self, name: str, inputs: Inputs) -> list[Listing]:
        finder = Evaluator(self._library, self._files(), STEPS, self._versions)
        try:
            modules = everything(finder, self._module)
            targets = [named(finder, self._module, name)] if name else modules
            if not targets:
                raise NotShown("there is no class with a forward in this file, and no function")
            if inputs.values:
                check_inputs(targets, inputs.values)
            return self._watch(targets, modules, inputs)
        finally:
            finder.close()

    def _watch(
        self,
        targets: Sequence[Target],
        others: Sequence[Target],
        inputs: Inputs,
    ) -> list[Listing]:
        """The listings of targets; others, which may call them, are run for that, too."""
        first = targets[0]
        handed = {name: make for name, make in inputs.values.items() if name in parameter_names(first.node)}
        made_with = {name: make for name, make in inputs.values.items() if name not in handed}
        given: dict[cst.CSTNode, Mapping[str, Callable[[], Value]]] = {first.node: handed} if handed else {}
        asked = {target.node: target for target in (*targets, *others)}
        ev = Watcher(self._library, self._files(), STEPS, self._versions, asked, given)
        try:
            run_program(ev, self._module, STEPS)
            if made_with or not all(
                any(_is_real(seen) for seen in _passes_of(ev, target)) for target in targets
            ):
                for target in asked.values():
                    known = {name: integer(size) for name, size in inputs.symbols.items()}
                    if target is first:
                        known.update((name, make()) for name, make in made_with.items())
                    self._ask(ev, target, known)
            names = {**ev.symbol_names, **_letters(ev.passes)}
            for size in inputs.symbols.values():
                # What the user calls it goes before what the code does.
                names.pop(next(iter(size.symbols)), None)
            run = CheckContext(ev.events, names)
            return [self._best(ev, target, run, bool(handed), bool(made_with)) for target in targets]
        finally:
            ev.close()

    def _ask(self, ev: Watcher, target: Target, known: Mapping[str, Value]) -> None:
        """Run a function that nobody calls with a tensor of known sizes, as `Class(...)(...)` would.

        What has a default gets it; all other arguments are unknown, but for those of the constructor that are
        known by their names.
        """
        ev.asking = True
        ev.allowance = ev.steps + STEPS
        ev.frames.append(Frame(self._module, scope_of(ev, self._module)))
        ev.journal.begin()
        try:
            top = module_name(ev, self._module, target.top)
            function: Value | None = top
            receiver: InstanceValue | None = None
            if isinstance(top, ClassValue):
                function = member(top, target.function.name)
                if isinstance(function, FunctionValue) and function.binding is not Binding.STATIC_METHOD:
                    made = instantiate(ev, top, Arguments([], constructed(top, known)), target.node)
                    receiver = made if isinstance(made, InstanceValue) else InstanceValue(top, open=True)
            if isinstance(function, FunctionValue):
                positional: list[Value] = [] if receiver is None else [receiver]
                run_function(ev, function, positional, {}, False, target.node, receiver)
        finally:
            ev.journal.undo()
            ev.frames.pop()
            ev.asking = False

    def _best(
        self, ev: Watcher, target: Target, run: CheckContext, has_inputs: bool, only_asked: bool
    ) -> Listing:
        """The listing of the run that tells most: a call of the program's own that hands over known sizes."""
        passes = [each for each in _passes_of(ev, target) if each.calls]
        real_ones = [] if only_asked else [seen for seen in passes if _is_real(seen)]
        passes = [seen for seen in passes if seen.asked] or passes
        listings = [
            listing(
                target.name,
                target.function.module,
                seen,
                run,
                self._rules,
                _basis(seen, target, real_ones, has_inputs),
            )
            for seen in real_ones[:1] or passes
        ]
        if not listings:
            raise NotShown(f"{target.name} could not be run: it calls itself, or the work was bounded")
        return min(listings, key=_doubt)


def _parsable(path: str) -> SourceText:
    source = read_source(path)
    refuse_unparsable(source)
    return source


def _passes_of(ev: Watcher, target: Target) -> list[WatchedRun]:
    """The runs of a target, those of exactly its class first."""
    passes = [seen for seen in ev.passes if seen.function is target.node]
    if target.owner is None:
        return passes
    node = target.owner.node
    exact = [
        seen for seen in passes if isinstance(seen.receiver, InstanceValue) and seen.receiver.cls.node is node
    ]
    return exact or passes


def _is_real(seen: WatchedRun) -> bool:
    """Whether the program itself makes this call, as far as one can tell, and with tensors of known sizes.

    What a module does that nobody has made tells no sizes of its own.
    """
    if seen.asked or not seen.known or not seen.calls:
        return False
    made_up = seen.root.receiver if seen.root is not None else None
    return not isinstance(made_up, InstanceValue) or member(made_up.cls, "forward") is None


def _letters(passes: Sequence[WatchedRun]) -> dict[Symbol, Size]:
    """Short names for the sizes of parameters that nobody named: `B` for `x.size(0)`."""
    names: dict[Symbol, Size] = {}
    taken: dict[object, set[str]] = {}
    for seen in passes:
        # What different runs call B never meets.
        together = taken.setdefault((seen.root, seen.calls[0].node if seen.calls else None), set())
        for name, value in seen.parameters.items():
            if not isinstance(value, TensorValue) or value.layout is None:
                continue
            for dim, size in enumerate(value.layout.sizes):
                symbol = size.only_symbol
                if symbol is None or symbol in names:
                    continue
                if symbol.name != f"{name}.size({dim})":
                    together.add(symbol.name)
                    continue
                letter = wanted = _letter(dim, value.layout.rank)
                number = 2
                while letter in together:
                    letter, number = f"{wanted}{number}", number + 1
                together.add(letter)
                names[symbol] = Size.symbol(letter)
    return names


def _letter(dim: int, rank: int) -> str:
    """What people call a dimension."""
    known = {2: "BC", 3: "BTC", 4: "BCHW", 5: "BCDHW"}.get(rank, "B")
    return known[dim] if dim < len(known) else f"D{dim}"


def _basis(seen: WatchedRun, target: Target, calls: Sequence[WatchedRun], has_inputs: bool) -> str:
    """What the sizes of a listing rest on, in words."""
    if seen.asked and len(seen.calls) == 1:
        return "with the given input" if has_inputs else f"not called with known sizes; {_how_to_say(seen)}"
    span = seen.calls[-1].span
    where = f"called at {os.path.basename(span.path)}:{span.row}"
    if len(calls) > 1:
        where += f", the first of {len(calls)} calls"
        others = sum(_handed_over(each) != _handed_over(seen) for each in calls)
        where += f" ({others} with other sizes)" if others else ""
    return f"{where}, with the given input" if has_inputs else where


def _handed_over(seen: WatchedRun) -> list[object]:
    """The sizes of a call, to compare it with others."""
    return [
        value.layout.sizes if isinstance(value, TensorValue) and value.layout is not None else None
        for value in seen.parameters.values()
    ]


def _how_to_say(seen: WatchedRun) -> str:
    """The option that says what goes in, with as much of it as the function itself tells."""
    described = []
    optional = {param.name.value for param in parameters_of(seen.function) if param.default is not None}
    for name, value in seen.parameters.items():
        if value is seen.receiver or isinstance(value, Constant) or name in optional:
            continue
        tensor = value.tensor if isinstance(value, Unknown) else value
        sizes = tensor.layout.sizes if isinstance(tensor, TensorValue) and tensor.layout is not None else None
        if sizes is None:
            described.append(f'--input "{name}: {_dtype(name, tensor)}[...]"')
            continue
        written = []
        for dim, size in enumerate(sizes):
            symbol = size.only_symbol
            own = symbol is not None and symbol.name.isidentifier() and symbol.name
            written.append(str(size.value) if size.value is not None else own or _letter(dim, len(sizes)))
        described.append(f'--input "{name}: {_dtype(name, tensor)}[{", ".join(written)}]"')
    if not described:
        return "it has nothing to be given"
    return f"say what goes in: {' '.join(described)}"


def _dtype(name: str, tensor: Value | None) -> str:
    """The dtype that a parameter most likely has."""
    if isinstance(tensor, TensorValue) and tensor.dtype is not None:
        return SHORT.get(tensor.dtype, tensor.dtype)
    ids = ("ids", "tokens", "labels", "targets", "indices", "lengths")
    return "i64" if name.endswith(ids) else "bool" if name.endswith("mask") else "f32"


def _doubt(made: Listing) -> tuple[int, int]:
    """How many values of a listing are not known, and how many sizes are no numbers."""
    values = [shown for row in made.rows for held in row.held for shown in held.values]
    unknown = [each for each in values if each.text == "unknown" or "[...]" in each.text]
    return len(unknown), sum(isinstance(size, str) for shown in values for size in shown.sizes or ())
