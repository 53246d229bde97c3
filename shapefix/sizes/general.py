"""Find the sizes of a function's names in all of its calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.engine.interpretation import ProjectModules
from shapefix.interpreter.annotations import annotated_tensor
from shapefix.interpreter.calls import Arguments, instantiate
from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Frame
from shapefix.interpreter.events import Event, OperationCalled, OpRejected
from shapefix.interpreter.functions import run_function
from shapefix.interpreter.modules import Module
from shapefix.interpreter.names import scope_of
from shapefix.interpreter.program import run_program
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Binding,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Unknown,
    Value,
    as_size,
    integer,
)
from shapefix.interpreter.watching import Named, WatchedRun, Watcher, parameters_of, statements_of
from shapefix.light_dataclasses import dataclass
from shapefix.sizes.certain_calls import certain_calls
from shapefix.sizes.run import READING, STEPS, is_real_call, runs_of
from shapefix.sizes.targets import Target, target_named
from shapefix.tensors.layout import contiguous
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol

_RECURRENT = frozenset({"LSTM", "GRU", "RNN", "MultiheadAttention", "Transformer", "TransformerEncoderLayer"})
"""Layers with the sequence before the batch, unless `batch_first` is set."""
_IMAGES = {3: "BCL", 4: "BCHW", 5: "BCDHW"}
"""The usual letters of the input of a convolution, by its rank."""
_CONVOLUTIONS = {f"{kind}{n}d": n + 2 for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)}
_OWN = re.compile(r"\bself\.(?=\w+\b(?![.(\[]))")
"""A setting of the module is named without `self`, as in a comment by hand."""

Sizes = tuple[Size, ...]


@dataclass(frozen=True)
class KnownSizes:
    """The sizes of a name at one place, the same ones in every run, and their texts."""

    name: str
    sizes: Sizes
    texts: tuple[str, ...]


@dataclass(frozen=True)
class GeneralSizes:
    """The known sizes of one function: of its parameters, and after its statements."""

    target: Target
    parameters: tuple[KnownSizes, ...]
    statements: Mapping[cst.CSTNode, tuple[KnownSizes, ...]]


class SizeFinder:
    """Finds the general sizes of the functions of one file."""

    def __init__(self, modules: ProjectModules, module: Module) -> None:
        self._modules = modules
        self._module = module

    def find(self, targets: Sequence[Target]) -> Iterator[GeneralSizes]:
        """Yield the sizes in each target: of the file's calls, or else those required by the code."""
        ev = self._watcher(targets, {})
        try:
            run_program(ev, self._module, STEPS)
            inputs: dict[cst.CSTNode, Mapping[str, Sizes]] = {}
            in_order: set[cst.CSTNode] = set()
            for target in targets:
                calls = [each for each in runs_of(ev, target) if is_real_call(each)]
                if calls:
                    inputs[target.node] = _inputs(calls)
                if any(_is_sequence_first(run) for run in calls):
                    in_order.add(target.node)
        finally:
            ev.close()
        for target in targets:
            given = inputs.get(target.node)
            if given is None:
                yield self._required(target)
            elif target.node in in_order:
                yield self._called(target, given)
            else:
                yield self._calls(target, given)

    def _watcher(
        self,
        targets: Sequence[Target],
        given: Mapping[cst.CSTNode, Mapping[str, Callable[[], Value]]],
        listening: frozenset[type[Event]] = frozenset(),
    ) -> Watcher:
        nodes = [target.node for target in targets]
        modules = self._modules
        files = modules.files_with(self._module, READING)
        return Watcher(modules.library, files, STEPS, modules.versions, nodes, given, listening)

    def _called(self, target: Target, given: Mapping[str, Sizes]) -> GeneralSizes:
        """Run the program with general sizes for the arguments of a function."""
        ev = self._watcher([target], {target.node: _tensors(given)})
        try:
            run_program(ev, self._module, STEPS)
            runs = [each for each in runs_of(ev, target) if is_real_call(each)]
            return _general(target, runs, ev)
        finally:
            ev.close()

    def _calls(self, target: Target, given: Mapping[str, Sizes]) -> GeneralSizes:
        """Return the sizes with a symbol for the batch, or its number if other sizes depend on it."""
        general = _with_batch(given)
        found = self._called(target, general)
        replaced = {given[name][0] for name in given if given[name] != general[name]}
        depends = any(
            known.sizes[:1] == (size,)
            for size in replaced
            for several in found.statements.values()
            for known in several
        )
        return self._called(target, given) if depends else found

    def _required(self, target: Target) -> GeneralSizes:
        """Run a function with unknown arguments, then with batches for the inputs of convolutions."""
        found, images = self._requested(target, {})
        return self._requested(target, images)[0] if images else found

    def _requested(self, target: Target, given: Mapping[str, Sizes]) -> tuple[GeneralSizes, dict[str, Sizes]]:
        """Run a function with arguments of given sizes, or unknown ones; numbers with a default are symbols.

        The second result has the sizes of batches for arguments that go into a convolution.
        """
        ev = self._watcher([target], {target.node: _tensors(given)}, frozenset({OperationCalled}))
        ev.asking = True
        ev.allowance = ev.steps + STEPS
        ev.frames.append(Frame(self._module, scope_of(ev, self._module)))
        ev.journal.begin()
        try:
            # Its class belongs to this run only.
            name = target.top if target.owner is None else f"{target.top}.{target.function.name}"
            own = target_named(ev, self._module, name)
            receiver: InstanceValue | None = None
            if own.owner is not None and own.function.binding is not Binding.STATIC_METHOD:
                made = instantiate(ev, own.owner, Arguments([], _numbers(own)), own.node)
                receiver = made if isinstance(made, InstanceValue) else InstanceValue(own.owner, open=True)
            required = _required_parameters(own.node)[receiver is not None :]
            arguments = {
                param.name.value: Unknown(param.name.value, tensor=annotated_tensor(ev, param))
                for param in required
            }
            named = {id(value): name for name, value in arguments.items()}
            positional: list[Value] = [] if receiver is None else [receiver]
            run_function(ev, own.function, [*positional, *arguments.values()], {}, False, own.node, receiver)
            named.update({id(value.tensor): name for name, value in arguments.items() if value.tensor})
            runs = [each for each in ev.passes if each.function is target.node]
            return _general(target, runs, ev, frozenset(given)), _images(named, target, ev)
        finally:
            ev.journal.undo()
            ev.frames.pop()
            ev.close()


def _required_parameters(function: cst.FunctionDef) -> list[cst.Param]:
    """Return the positional parameters without a default."""
    params = [*function.params.posonly_params, *function.params.params]
    return [param for param in params if param.default is None]


def _tensors(given: Mapping[str, Sizes]) -> dict[str, Callable[[], Value]]:
    return {
        name: lambda sizes=sizes: TensorValue(contiguous(sizes))  # type: ignore[misc]
        for name, sizes in given.items()
    }


def _images(parameters: Mapping[int, str], target: Target, ev: Watcher) -> dict[str, Sizes]:
    """Return the sizes of a batch for each certain input of a convolution.

    Convolutions take a single sample, too, which training code does not pass.
    """
    certain = certain_calls(target.node)
    found: dict[str, Sizes] = {}
    batch = Size.symbol("B")
    for event in ev.events:
        if not isinstance(event, OperationCalled) or not isinstance(event.receiver, LibraryObject):
            continue
        if event.place.node not in certain:
            continue
        kind = event.receiver.kind.removeprefix("torch.nn.")
        given = event.positional[0] if event.positional else None
        rank = _CONVOLUTIONS.get(kind)
        channels = as_size(event.receiver.fields.get("in_channels"))
        if rank is None or channels is None or id(given) not in parameters:
            continue
        letters = _IMAGES[rank]
        name = parameters[id(given)]
        if name not in found:
            # Only the batch is certainly the same size for two images.
            found[name] = tuple(
                channels if letter == "C" else batch if letter == "B" else Size.symbol(f"{name}.size({dim})")
                for dim, letter in enumerate(letters)
            )
    return found


def _numbers(target: Target) -> dict[str, Value]:
    """Return symbols for the arguments of a constructor with a number as their default."""
    init = None if target.owner is None else member(target.owner, "__init__")
    if not isinstance(init, FunctionValue) or not isinstance(init.node, cst.FunctionDef):
        return {}
    params = init.node.params
    return {
        param.name.value: integer(Size.symbol(param.name.value))
        for param in (*params.params[1:], *params.kwonly_params)
        if isinstance(param.default, cst.Integer)
    }


def _inputs(runs: Sequence[WatchedRun]) -> dict[str, Sizes]:
    """Return the sizes of arguments over several calls, with symbols for different ones."""
    names = list(dict.fromkeys(name for run in runs for name in run.parameters))
    found: dict[str, Sizes] = {}
    for name in names:
        values = [_sizes(run.parameters.get(name)) for run in runs]
        known = [each for each in values if each is not None]
        if len(known) == len(runs) and len({len(each) for each in known}) == 1 and known[0]:
            found[name] = tuple(
                column[0] if all(size == column[0] for size in column) else Size.symbol(f"{name}.size({dim})")
                for dim, column in enumerate(zip(*known, strict=True))
            )
    return found


def _with_batch(found: Mapping[str, Sizes]) -> Mapping[str, Sizes]:
    """Replace the number of samples by a symbol."""
    largest = max((len(sizes) for sizes in found.values()), default=0)
    if largest < 2:
        return found
    first = next(sizes[0] for sizes in found.values() if len(sizes) == largest)
    if any(size == first for sizes in found.values() for size in sizes[1:]):
        # A square matrix may have rows that are not samples.
        return found
    batch = Size.symbol("B" if largest > 2 else "N")
    return {
        **found,
        **{name: (batch, *sizes[1:]) for name, sizes in found.items() if sizes[0] == first},
    }


def _is_sequence_first(run: WatchedRun) -> bool:
    receiver = run.receiver
    held = receiver.fields.values() if isinstance(receiver, InstanceValue) else ()
    for each in held:
        if isinstance(each, LibraryObject) and each.kind.removeprefix("torch.nn.") in _RECURRENT:
            setting = each.fields.get("batch_first")
            if setting is None or getattr(setting, "value", None) is not True:
                return True
    return False


def _sizes(value: Value | None) -> Sizes | None:
    tensor = value.tensor if isinstance(value, Unknown) else value
    if isinstance(tensor, TensorValue) and tensor.layout is not None:
        return tuple(tensor.layout.sizes)
    return None


def _general(
    target: Target, runs: Sequence[WatchedRun], ev: Watcher, images: frozenset[str] = frozenset()
) -> GeneralSizes:
    """Keep the sizes common to all runs; images are parameters with a batch for a convolution."""
    events = [event for run in runs for several in run.events.values() for event in several]
    if not runs or any(isinstance(event, OpRejected) for event in events):
        return GeneralSizes(target, (), {})
    names = _names(runs, ev, images)
    context = CheckContext(ev.events, names)
    receiver = runs[0].receiver
    given = [
        tuple(
            (param.name.value, value)
            for param in parameters_of(target.node)
            if (value := run.parameters.get(param.name.value)) is not None and value is not receiver
        )
        for run in runs
    ]
    statements: dict[cst.CSTNode, tuple[KnownSizes, ...]] = {}
    # Later passes of a loop may change what comes after it.
    is_cut = any(run.carried for run in runs)
    for statement in () if is_cut else statements_of(target.node):
        held = _agreed([named for run in runs for named in run.held.get(statement, ())], context)
        parts = [each for each in held.values() if each is not None]
        # `a, b = …` has one comment for both.
        if parts and len(parts) == len(held):
            statements[statement] = tuple(parts)
    known = [each for each in _agreed(given, context).values() if each is not None]
    return GeneralSizes(target, tuple(known), statements)


def _agreed(times: Sequence[Named], context: CheckContext) -> dict[str, KnownSizes | None]:
    """Return the sizes common to all times by name; None for other names."""
    found: dict[str, KnownSizes | None] = {}
    for named in times:
        for name, value in named:
            sizes = _sizes(value)
            texts = () if sizes is None else tuple(_OWN.sub("", context.text(size)) for size in sizes)
            known = None if sizes is None else KnownSizes(name, sizes, texts)
            before = found.get(name, known)
            same = before is not None and known is not None and before.texts == known.texts
            found[name] = known if same else None
    return found


def _names(runs: Sequence[WatchedRun], ev: Watcher, images: frozenset[str]) -> dict[Symbol, Size]:
    """Name the sizes of images, and the rows of matrices; the names of the user come first."""
    names: dict[Symbol, Size] = {}
    for run in runs:
        for name, value in run.parameters.items():
            sizes = _sizes(value) or ()
            letters = _IMAGES.get(len(sizes), "") if name in images else ""
            if len(sizes) == 2 and not _is_free(sizes[1], f"{name}.size(1)"):
                letters = "NC"
            for dim, letter in enumerate(letters):
                symbol = sizes[dim].only_symbol
                if letter != "C" and symbol is not None and _is_free(sizes[dim], f"{name}.size({dim})"):
                    names[symbol] = Size.symbol(letter)
    return {**names, **ev.symbol_names}


def _is_free(size: Size, name: str) -> bool:
    """Check for a size without a name of its own."""
    symbol = size.only_symbol
    return symbol is not None and symbol.name == name
