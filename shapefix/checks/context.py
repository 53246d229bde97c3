"""The analysis run around an event, as checks see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import TypeVar

import libcst as cst

from shapefix.checks.support.conditions import combined, comparison, in_backticks, of_size
from shapefix.diagnostics import Condition, Expression
from shapefix.domains.batches import Collated
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.operations import InPlaceWrite, Viewed
from shapefix.domains.training import TrainingEvent
from shapefix.domains.try_blocks import EnclosingLoop
from shapefix.interpreter.evaluator import SCRIPT_WAY, Loop, Way
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass
from shapefix.sources.versions import release
from shapefix.tensors.bounds import at_least
from shapefix.tensors.layout import Layout, has_unknown_strides, is_contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.options import by_default
from shapefix.tensors.polynomials import ONE, Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import BatchSize, OpaqueStride, SizeOf, Symbol

Kind = TypeVar("Kind", bound=TrainingEvent)


@dataclass(frozen=True)
class CheckContext:
    """All events of one run, in their order, and the names of symbols in the user's code.

    uses_gpu returns whether some code of the project uses a GPU; may_be_moved whether some code that
    constructs objects of the class of a name may move them to one.
    """

    events: Sequence[Event]
    symbol_names: Mapping[Symbol, Size]
    uses_gpu: Callable[[], bool] = lambda: True
    loops_to: Mapping[Event, tuple[Loop, ...]] = field(default_factory=dict)
    """The loops around an event whose first pass is certain to get there."""
    may_be_moved: Callable[[str], bool] = lambda name: True
    ways: Mapping[Event, Way] = field(default_factory=dict)
    """The ways to events, except for those that each run of the script gets to."""
    oldest_versions: Mapping[str, str] = field(default_factory=dict)
    """The oldest version of each library that the project permits."""

    def permits_older(self, package: str, version: str) -> bool:
        """Check whether the project may run with a version of a library before this one."""
        oldest = self.oldest_versions.get(package)
        return oldest is not None and release(oldest)[:2] < release(version)[:2]

    def way(self, event: Event) -> Way:
        """Return how the run got to an event."""
        return self.ways.get(event, SCRIPT_WAY)

    @cached_property
    def numbered(self) -> dict[type[Event], list[tuple[int, Event]]]:
        """The events by their type, each with its position among all."""
        found: dict[type[Event], list[tuple[int, Event]]] = {}
        for moment, event in enumerate(self.events):
            found.setdefault(type(event), []).append((moment, event))
        return found

    @property
    def kinds(self) -> Collection[type[Event]]:
        """The types of the events."""
        return self.numbered.keys()

    @cached_property
    def moments(self) -> dict[Event, int]:
        """The position of each event among all."""
        return {event: moment for moment, event in enumerate(self.events)}

    @cached_property
    def rejected(self) -> frozenset[TensorValue]:
        """The tensors certainly rejected by torch somewhere: for their dtype, shape or device."""
        found: set[TensorValue] = set()
        for event in self.events:
            if isinstance(event, OpRejected):
                found.update(operand.tensor for operand in event.operands)
            elif isinstance(event, DeviceMismatch) and event.here is not None and not event.undecided:
                found.add(event.operands[event.here].tensor)
        return frozenset(found)

    @cached_property
    def last_writes(self) -> dict[object, int]:
        """The moment of the last write in place into each storage."""
        return {
            event.tensor.storage: moment
            for moment, event in enumerate(self.events)
            if isinstance(event, InPlaceWrite)
        }

    @cached_property
    def training(self) -> list[TrainingEvent]:
        """The events of training loops."""
        return [event for event in self.events if isinstance(event, TrainingEvent)]

    @cached_property
    def positions(self) -> dict[TrainingEvent, int]:
        """The position of each event among those of training loops."""
        return {event: position for position, event in enumerate(self.training)}

    @cached_property
    def _by_kind(self) -> dict[type[TrainingEvent], tuple[list[int], list[TrainingEvent]]]:
        return {}

    def of_kind(self, kind: type[Kind]) -> tuple[list[int], list[Kind]]:
        """Return the positions of the events of this type among those of training loops, and the events."""
        if kind not in self._by_kind:
            found = [(number, each) for number, each in enumerate(self.training) if isinstance(each, kind)]
            self._by_kind[kind] = [number for number, _ in found], [each for _, each in found]
        return self._by_kind[kind]  # type: ignore[return-value]

    @cached_property
    def collators(self) -> dict[cst.CSTNode, Value | None]:
        """The collate function of each loader and trainer, by its creation; None for the default one."""
        return {event.place.node: event.collator for event in self.events if isinstance(event, Collated)}

    @cached_property
    def _by_loop(self) -> dict[Loop, dict[type[TrainingEvent], list[TrainingEvent]]]:
        found: dict[Loop, dict[type[TrainingEvent], list[TrainingEvent]]] = {}
        for event in self.training:
            for within in event.loops:
                found.setdefault(within.loop, {}).setdefault(TrainingEvent, []).append(event)
        return found

    def in_loop(self, loop: Loop, kind: type[Kind]) -> Sequence[Kind]:
        """Return the events of training loops of this type in a loop, in their order."""
        kinds = self._by_loop.get(loop)
        if kinds is None:
            return ()
        if kind not in kinds:
            kinds[kind] = [each for each in kinds[TrainingEvent] if isinstance(each, kind)]
        return kinds[kind]  # type: ignore[return-value]

    @cached_property
    def written_views(self) -> frozenset[cst.CSTNode]:
        """The `.view` calls with results written into by the code."""
        return frozenset(
            node for event in self.events if isinstance(event, InPlaceWrite) for node in event.tensor.views
        )

    @cached_property
    def cut_views(self) -> frozenset[cst.CSTNode]:
        """The view and reshape calls with results first sliced, then viewed or reshaped again."""
        found: set[cst.CSTNode] = set()
        for event in self.events:
            if isinstance(event, Viewed):
                sliced = False
                for step in lineage(event.tensor):
                    sliced = sliced or step.op is Op.SLICE
                    if sliced and step.op in (Op.VIEW, Op.RESHAPE):
                        found.add(step.place.node)
        return frozenset(found)

    def is_in_first_batch(self, event: Event) -> bool:
        """Whether the first pass of a loop over batches gets to an event."""
        return any(loop.state[EnclosingLoop].over_batches for loop in self.loops_to.get(event, ()))

    def text(self, size: Size) -> str:
        """Return a size or stride with the names of the user's code."""
        named = substitute(size, self.symbol_names)
        strides = [symbol for symbol in named.symbols if isinstance(symbol, OpaqueStride)]
        return named.text({symbol: f"stride({symbol.name.removeprefix('stride')})" for symbol in strides})

    def concrete(self, size: Size) -> str:
        """Return a size as in a full batch, with the default of each command-line option: 64."""
        known: dict[Symbol, int | Size] = {}
        for symbol in every_symbol(size):
            if isinstance(symbol, BatchSize):
                known[symbol] = symbol.full
        with suppress(ZeroDivisionError):
            size = by_default(substitute(size, known))
        return self.text(size)

    def qualified(self, size: Size) -> str:
        """Return a size like text, with the tensor of an unknown size: `f(x).size(0)`, not `size(0)`."""
        named = substitute(size, self.symbol_names)
        unnamed = [symbol for symbol in every_symbol(named) if isinstance(symbol, SizeOf)]
        return named.text({symbol: f"{symbol.code}.{symbol.name}" for symbol in unnamed})

    def shape(self, sizes: Sequence[Size]) -> str:
        """Return sizes or strides as the text of a tuple."""
        inner = ", ".join(self.text(size) for size in sizes)
        return f"({inner},)" if len(sizes) == 1 else f"({inner})"

    def layout(self, layout: Layout) -> str:
        """Return the text of sizes, and of strides unless they follow from the sizes."""
        if is_contiguous(layout):
            return f"{self.shape(layout.sizes)}, contiguous"
        if has_unknown_strides(layout):
            whole = whole_sizes(layout)
            if whole is None or whole == layout.sizes:
                return f"sizes {self.shape(layout.sizes)}"
            return f"sizes {self.shape(layout.sizes)}, with the strides of the whole {self.shape(whole)}"
        return f"sizes {self.shape(layout.sizes)}, strides {self.shape(layout.strides)}"

    def expression(self, size: Size) -> Expression | None:
        """Return a size as an expression of the variables of the code; None if they do not state it."""
        return of_size(substitute(size, self.symbol_names))

    def condition(self, sizes: Sequence[Size]) -> Condition | None:
        """State when each of the sizes exceeds 1: "`B` > 1 and `T` > 2"; None if all of them always do."""
        parts: dict[str, Condition] = {}
        for size in sizes:
            if at_least(size, 2):
                continue
            base, rest = _without_constant(substitute(size, self.symbol_names))
            if base.only_symbol is None:
                base, rest = size, 0
            text = f"{in_backticks(self.qualified(base))} > {1 - rest}"
            # All full batches have more, by the size that the code states.
            full = (
                by_default(base.only_symbol.full).value if isinstance(base.only_symbol, BatchSize) else None
            )
            is_stated = full is not None and full > 1 - rest
            parts[text] = Condition(text, comparison(self.expression(base), ">", 1 - rest), is_stated)
        return combined("and", list(parts.values()))


def lineage(tensor: TensorValue) -> Iterator[LayoutStep]:
    """Yield the steps leading to the tensor's layout, latest first."""
    step = tensor.origin
    while step is not None:
        yield step
        step = step.before


def whole_sizes(layout: Layout) -> tuple[Size, ...] | None:
    """Return the sizes of the base of a slice with unknown strides; None for any other layout."""
    sizes = []
    bases = set()
    for stride in layout.strides:
        symbol = stride.only_symbol
        if not isinstance(symbol, OpaqueStride):
            return None
        bases.add(id(symbol.base))
        sizes.append(symbol.size)
    return tuple(sizes) if len(bases) == 1 else None


def _without_constant(size: Size) -> tuple[Size, int]:
    rest = size.terms.get((), 0)
    return size - rest * ONE, rest
