"""Run a file with some of its functions watched, and build their listings."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH110, PTH112, PTH119

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.describe import SHORT
from shapefix.diagnostics import Failure, path_of
from shapefix.engine.interpretation import ProjectFiles, ProjectModules, deep_recursion, parse_failure
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.source_overlay import real_path
from shapefix.engine.watchdog import FILE_SECONDS, Watchdog
from shapefix.interpreter.budget import OutOfBudget
from shapefix.interpreter.calls import Arguments, instantiate
from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.functions import run_function
from shapefix.interpreter.names import module_name, scope_of
from shapefix.interpreter.program import run_program
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
from shapefix.sizes.build import listing
from shapefix.sizes.inputs import GivenInputs, read_inputs
from shapefix.sizes.listings import ShapeListing
from shapefix.sizes.targets import (
    Target,
    UnknownTarget,
    all_targets,
    check_inputs,
    constructor_arguments,
    target_named,
)
from shapefix.sources.notebook_text import NotebookText
from shapefix.sources.project import Project, project_root
from shapefix.sources.text import SourceText, Unreadable, read_source
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol

STEPS = 200_000
"""The number of steps per part of a run; only one file is analyzed."""
READING = 20_000_000
MODULE = "torch.nn.Module"


class ListingFailed(Exception):
    """The file cannot be read or parsed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def split_name(asked: str) -> tuple[str, str]:
    """Split `model.py:UNet.forward` into the file and the name in it, possibly empty."""
    if not os.path.exists(asked):
        path, parted, name = asked.rpartition(":")
        if parted and path and (not name or all(part.isidentifier() for part in name.split("."))):
            return path, name
    return asked, ""


def shapes(
    path: str,
    name: str,
    inputs: Sequence[str],
    rules: frozenset[str],
    transformers_version: str | None,
    signatures: Mapping[str, str] = MappingProxyType({}),
) -> list[ShapeListing]:
    """Build the listings of a file: of the function or class called name, or of all.

    inputs are as for read_inputs, signatures declared sizes of functions by qualified name. Raises BadInput,
    UnknownTarget and ListingFailed.
    """
    given = read_inputs(inputs)
    source = _source(path)
    try:
        with deep_recursion(), Watchdog().stopping_after(FILE_SECONDS):
            return _ListingBuilder(source, rules, transformers_version, signatures).build(name, given)
    except OutOfBudget as stop:
        message = f"takes too much {stop.resource.value} to be analyzed"
        raise ListingFailed(Failure(source.path, message)) from None
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise ListingFailed(parse_failure(source, error)) from None


def _source(path: str) -> SourceText:
    if os.path.isdir(path):
        raise UnknownTarget(f"{path} is a folder; pass a file, or a class in a file: model.py:UNet")
    try:
        source = read_source(real_path(path))
        check_parse_limits(source)
    except Unreadable as error:
        raise ListingFailed(Failure(path, error.message, error.row, error.column)) from None
    return source


class _ListingBuilder:
    """Builds the listings of one file of a project."""

    def __init__(
        self,
        source: SourceText,
        rules: frozenset[str],
        transformers_version: str | None,
        signatures: Mapping[str, str],
    ) -> None:
        self._rules = rules
        self._source = source
        self._modules = ProjectModules(
            Project(project_root(source.path)),
            _parsable,
            transformers_version,
            lines=1_000_000,
            signatures=signatures,
        )
        self._module = self._modules.module(source)

    def _files(self) -> ProjectFiles:
        return self._modules.files_with(self._module, READING)

    def build(self, name: str, inputs: GivenInputs) -> list[ShapeListing]:
        finder = Evaluator(
            self._modules.library,
            self._files(),
            STEPS,
            self._modules.versions,
        )
        try:
            modules = all_targets(finder, self._module)
            targets = [target_named(finder, self._module, name)] if name else modules
            if not targets:
                raise UnknownTarget("this file defines no class with a forward, and no function")
            if inputs.values:
                check_inputs(targets, inputs.values)
            return self._watch(targets, modules, inputs)
        finally:
            finder.close()

    def _watch(
        self,
        targets: Sequence[Target],
        others: Sequence[Target],
        inputs: GivenInputs,
    ) -> list[ShapeListing]:
        """Build the listings of targets; others may call them, so they are run, too."""
        first = targets[0]
        handed = {name: make for name, make in inputs.values.items() if name in parameter_names(first.node)}
        made_with = {name: make for name, make in inputs.values.items() if name not in handed}
        given: dict[cst.CSTNode, Mapping[str, Callable[[], Value]]] = {first.node: handed} if handed else {}
        asked = {target.node: target for target in (*targets, *others)}
        ev = Watcher(
            self._modules.library,
            self._files(),
            STEPS,
            self._modules.versions,
            asked,
            given,
        )
        try:
            run_program(ev, self._module, STEPS)
            if made_with or not all(
                any(is_real_call(seen) for seen in runs_of(ev, target)) for target in targets
            ):
                for target in asked.values():
                    known = {name: integer(size) for name, size in inputs.symbols.items()}
                    if target is first:
                        known.update((name, make()) for name, make in made_with.items())
                    self._ask(ev, target, known)
            names = {**ev.symbol_names, **letters(ev.passes)}
            for size in inputs.symbols.values():
                # The names of the user override those of the code.
                names.pop(next(iter(size.symbols)), None)
            run = CheckContext(ev.events, names)
            return [self._best(ev, target, run, bool(handed), bool(made_with)) for target in targets]
        finally:
            ev.close()

    def _ask(self, ev: Watcher, target: Target, known: Mapping[str, Value]) -> None:
        """Call a function without a known-size call in the file, as `Class(...)(...)` would.

        Parameters have their defaults or are unknown; constructor parameters in known have these values.
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
                    made = instantiate(ev, top, Arguments([], constructor_arguments(top, known)), target.node)
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
    ) -> ShapeListing:
        """Return the most informative listing: of the first call with known sizes, if any."""
        passes = [each for each in runs_of(ev, target) if each.calls]
        real_ones = [] if only_asked else [seen for seen in passes if is_real_call(seen)]
        passes = [seen for seen in passes if seen.requested] or passes
        listings = [
            listing(
                target.name,
                target.function.module,
                seen,
                run,
                self._rules,
                self._basis(seen, real_ones, has_inputs),
            )
            for seen in real_ones[:1] or passes
        ]
        if not listings:
            raise UnknownTarget(
                f"{target.name} could not be run: it is recursive, or an analysis limit was reached"
            )
        return self._in_cell(min(listings, key=_uncertainty))

    def _in_cell(self, found: ShapeListing) -> ShapeListing:
        """Name the cell of a function in a notebook, and number its rows as in the cell."""
        source = self._source
        if not isinstance(source, NotebookText) or found.path != source.path:
            return found
        cell, first = source.place(found.rows[0].number)
        moved = found.rows[0].number - first
        rows = tuple(replace(row, number=row.number - moved) for row in found.rows)
        return replace(found, path=path_of(found.path, cell), rows=rows)

    def _basis(self, seen: WatchedRun, calls: Sequence[WatchedRun], has_inputs: bool) -> str:
        """Describe the origin of the sizes of a listing."""
        if seen.requested and len(seen.calls) == 1:
            asked = f"not called with known sizes; {_input_option(seen)}"
            return "with the given input" if has_inputs else asked
        span = seen.calls[-1].span
        name, row = os.path.basename(span.path), span.row
        if isinstance(self._source, NotebookText) and span.path == self._source.path:
            cell, row = self._source.place(row)
            name = path_of(name, cell)
        where = f"called at {name}:{row}"
        if len(calls) > 1:
            where += f", the first of {len(calls)} calls"
            others = sum(_argument_sizes(each) != _argument_sizes(seen) for each in calls)
            where += f" ({others} with other sizes)" if others else ""
        return f"{where}, with the given input" if has_inputs else where


def _parsable(path: str) -> SourceText:
    source = read_source(path)
    check_parse_limits(source)
    return source


def runs_of(ev: Watcher, target: Target) -> list[WatchedRun]:
    """Return the runs of a target, preferring those of exactly its class."""
    passes = [seen for seen in ev.passes if seen.function is target.node]
    if target.owner is None:
        return passes
    node = target.owner.node
    exact = [
        seen for seen in passes if isinstance(seen.receiver, InstanceValue) and seen.receiver.cls.node is node
    ]
    return exact or passes


def is_real_call(seen: WatchedRun) -> bool:
    """Check whether the program itself makes this call, with tensors of known sizes.

    Calls inside of a module that the program never constructs do not count.
    """
    if seen.requested or not seen.known or not seen.calls:
        return False
    made_up = seen.root.receiver if seen.root is not None else None
    return not isinstance(made_up, InstanceValue) or member(made_up.cls, "forward") is None


def letters(passes: Sequence[WatchedRun]) -> dict[Symbol, Size]:
    """Choose short names for unnamed sizes of parameters: `B` for `x.size(0)`."""
    names: dict[Symbol, Size] = {}
    taken: dict[object, set[str]] = {}
    for seen in passes:
        # Different runs may use B for different sizes.
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
    """Return the usual letter of a dimension."""
    known = {2: "BC", 3: "BTC", 4: "BCHW", 5: "BCDHW"}.get(rank, "B")
    return known[dim] if dim < len(known) else f"D{dim}"


def _argument_sizes(seen: WatchedRun) -> list[object]:
    """Return the sizes of the arguments of a call, for comparison."""
    return [
        value.layout.sizes if isinstance(value, TensorValue) and value.layout is not None else None
        for value in seen.parameters.values()
    ]


def _input_option(seen: WatchedRun) -> str:
    """Suggest an --input option, with the sizes known from the function."""
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
        return "it has no parameters"
    return f"specify the input: {' '.join(described)}"


def _dtype(name: str, tensor: Value | None) -> str:
    """Guess the dtype of a parameter."""
    if isinstance(tensor, TensorValue) and tensor.dtype is not None:
        return SHORT.get(tensor.dtype, tensor.dtype)
    ids = ("ids", "tokens", "labels", "targets", "indices", "lengths")
    return "i64" if name.endswith(ids) else "bool" if name.endswith("mask") else "f32"


def _uncertainty(made: ShapeListing) -> tuple[int, int]:
    """Count the unknown values of a listing, and its symbolic sizes."""
    values = [shown for row in made.rows for held in row.held for shown in held.values]
    unknown = [each for each in values if each.text == "unknown" or "[...]" in each.text]
    return len(unknown), sum(isinstance(size, str) for shown in values for size in shown.sizes or ())
