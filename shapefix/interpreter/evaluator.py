"""Evaluator: walks a tree, keeps the state of the run, and calls the handlers of nodes."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import libcst as cst

from shapefix.interpreter.budget import LAST_STEP, REHEARSAL_STEPS, OutOfBudget, Resource
from shapefix.interpreter.escapes import NO_ESCAPES, Escapes
from shapefix.interpreter.events import Event, OperationCalled, OpRejected
from shapefix.interpreter.fields import ObjectFields
from shapefix.interpreter.journal import Changes, Journal
from shapefix.interpreter.modules import Module, Place, counts_passes
from shapefix.interpreter.state import DomainState
from shapefix.interpreter.values import ClassValue, FunctionValue, InstanceValue, Scope, Unknown, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol, next_serial

if TYPE_CHECKING:
    from collections.abc import Iterator


Handler = Callable[[Any], Value]
"""Library function: takes a `calls.Call` and returns the result."""


class Library(Protocol):
    """Facts about code outside of the project, as the interpreter needs them."""

    signatures: Mapping[str, str]
    """Declared sizes of functions, by qualified name."""

    def public_name(self, name: str) -> str:
        """Qualified name of an object in the tables, for any of its names."""

    def function(self, name: str) -> Handler | None:
        """Handler of a function or class of this qualified name."""

    def method(self, kind: str, name: str) -> Handler | None:
        """Handler of a method or a property (`@shape`) of a class, bases included."""

    def is_class(self, name: str) -> bool:
        """Check whether this qualified name is known to be a class."""

    def inherits(self, kind: str, base: str) -> bool:
        """Check whether the class is base or derives from it."""

    def only_of_tensors(self, method: str) -> bool:
        """Check whether only tensors are known to have a method of this name."""

    def mostly_of_tensors(self, method: str) -> bool:
        """Check whether an unknown value with a method of this name is probably a tensor."""

    def object_with(self, method: str, keywords: frozenset[str] = frozenset()) -> Value | None:
        """Object of unknown origin, of the only class with such a method and keywords; None without one."""

    def annotated(self, name: str) -> Value | None:
        """Value of a parameter annotated with this qualified name."""

    def is_transparent(self, decorator: str) -> bool:
        """Check whether a decorator keeps the parameters and the result of the function."""

    def suppresses(self, value: Value) -> bool:
        """Check whether `with value:` suppresses exceptions of its body, as `contextlib.suppress` does."""


class Files(Protocol):
    """Other files of the project."""

    def locate(self, importing: Module, module: str, level: int) -> str | None:
        """Path of the module or package named by an import statement; None outside the project."""

    def module(self, path: str) -> Module | None:
        """Parsed file; None if it cannot be parsed, or too much has been read already."""

    def allow(self, size: int) -> None:
        """Limit the total size of files read from now on, in bytes."""

    def text(self, script: Module, path: str) -> str | None:
        """Text of a small file, opened by a script by a relative path; None outside the project."""


class Flow(Enum):
    """End of a block."""

    FALLS_THROUGH = auto()
    LEAVES = auto()
    """By return or raise, or by a break or continue known to its loop."""


@dataclass(eq=False, slots=True)
class Loop:
    """Running loop: the journal's depth at its start, and the state at each break and continue.

    iterable is the iterable of a `for` loop; its expression was evaluated after the step header. tests and
    exits count the open conditions and the returns of its function at its start; unfollowed counts the calls
    that could not be followed, before its start and up to its end.
    """

    node: cst.For | cst.While
    iterable: Value | None
    header: int
    depth: int
    tests: int
    exits: int
    unfollowed: tuple[int, int]
    breaks: list[Changes] = field(default_factory=list)
    continues: list[Changes] = field(default_factory=list)
    state: DomainState = field(default_factory=DomainState)
    """State attached to this loop by domains, by its type."""
    first: dict[str, int] = field(default_factory=dict)
    """Counters of the loop, with their values in the first pass."""
    counted: frozenset[str] = frozenset()
    """Other variables that its body only counts up."""
    bound: frozenset[str] = frozenset()
    """Names bound by the header, in each pass."""
    events: int = 0
    """The number of events before the loop."""


@dataclass(frozen=True, eq=False, slots=True)
class Guard:
    """Unknown condition of an open branch, and the statement or call in the branch on the way to an event.

    is_own is whether the event is in the same function.
    """

    test: Place
    at: Place
    is_own: bool


@dataclass(frozen=True, eq=False, slots=True)
class Way:
    """How a run got to an event: the conditions on the way, outermost first, and the function it began with.

    uncalled is the function or method without known callers, run with unknown arguments; None for the script.
    unfollowed counts the calls before it with possible changes to any object of other code; escapes has the
    objects within their reach.
    """

    uncalled: FunctionValue | None
    guards: tuple[Guard, ...] = ()
    unfollowed: int = 0
    escapes: Escapes = NO_ESCAPES


SCRIPT_WAY = Way(None)
"""The way of statements that each run of the script gets to."""


@dataclass(eq=False, slots=True)
class Frame:
    """Running function, class body or module; called_at is the call of a function."""

    module: Module
    scope: Scope
    owner: ClassValue | None = None
    receiver: Value | None = None
    returns: list[Value] = field(default_factory=list)
    empty_returns: list[cst.Return] = field(default_factory=list)
    """The statements that returned None, some of them several times."""
    depth: int = 0
    """The journal's depth when the body of the function began."""
    exits: list[Changes] = field(default_factory=list)
    """The changes at each return, from the first one on inside of a branch or a loop."""
    yields: list[Value] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    generator: bool = False
    function: cst.CSTNode | None = None
    """Function being run, None for a class body or a module."""
    called_at: Place | None = None
    tests: list[cst.CSTNode] = field(default_factory=list)
    """Unknown conditions of the open branches."""
    dimensions: dict[str, Size] = field(default_factory=dict)
    """Symbols named by the annotations of this function: `Float[Tensor, "B T"]`."""

    @property
    def undecided(self) -> bool:
        """Check whether the running statement is in a conditional branch of the function."""
        return bool(self.tests)


Node = TypeVar("Node", bound=cst.CSTNode)
Expression = Callable[["Evaluator", "cst.BaseExpression"], Value]
Statement = Callable[["Evaluator", "cst.CSTNode"], int]

EXPRESSIONS: dict[type, Callable[..., Value]] = {}
STATEMENTS: dict[type, Callable[..., Flow]] = {}


def expression(*kinds: type) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register the handler for evaluating nodes of these types."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        for kind in kinds:
            EXPRESSIONS[kind] = function
        return function

    return register


def statement(*kinds: type) -> Callable[[Callable[..., Flow]], Callable[..., Flow]]:
    """Register the handler for executing nodes of these types."""

    def register(function: Callable[..., Flow]) -> Callable[..., Flow]:
        for kind in kinds:
            STATEMENTS[kind] = function
        return function

    return register


class Evaluator:
    """State of one run over one file: scopes, journal, call stack, events, and the remaining work."""

    def __init__(
        self,
        library: Library,
        files: Files,
        allowance: int,
        versions: Mapping[str, str] | None = None,
        listening: frozenset[type[Event]] = frozenset(),
    ) -> None:
        self.library = library
        self.files = files
        self.versions = versions or {}
        """Known versions of libraries by name: `{"transformers": "4.57"}`."""
        self.oldest_versions: Mapping[str, str] = {}
        """Oldest versions of libraries permitted by the project, by name; a missing one is the newest."""
        self.listening = listening
        """Types of events that rules check; frequent ones are only emitted if listed here."""
        self.notes_operations = OperationCalled in listening
        self.journal = Journal()
        self.events: list[Event] = []
        self.loops_to: dict[Event, tuple[Loop, ...]] = {}
        """The loops around an event whose first pass is certain to get there, innermost first."""
        self.ways: dict[Event, Way] = {}
        """The ways to events, except for those that each run of the script gets to."""
        self.uncalled: FunctionValue | None = None
        """The function without known callers that the run began with; None for the script."""
        self.frames: list[Frame] = []
        self.calls: tuple[Place, ...] = ()
        self.running: list[cst.CSTNode] = []
        """The functions being run, innermost last: recursion is not followed."""
        self.state = DomainState()
        """State attached to this run by domains, by its type."""
        self.visited: set[int] = set()
        """Ids of all function nodes run so far."""
        self.module_scopes: dict[str, Scope] = {}
        self.star_imports: dict[str, tuple[Module, ...]] = {}
        """Modules with names in another one by star imports, by the path of that one."""
        self.resolving: set[tuple[str, str]] = set()
        """The imports being looked up: files may import each other in a circle."""
        self.steps = 0
        self.rehearsed = 0
        """Work in rehearsals, which does not count as steps of the run: steps, and writes in loops."""
        self.rehearsal_allowance = REHEARSAL_STEPS
        """The work in rehearsals after which loops are no longer rehearsed."""
        self.allowance = allowance
        """Number of steps before calls are no longer followed."""
        self.bounded = 0
        """Number of calls not followed because of a limit."""
        self.bounded_at: Place | None = None
        """First of these calls."""
        self.unfollowed = 0
        """Number of calls so far with possible changes to any object of other code."""
        self.models: list[InstanceValue] = []
        """Objects with a `forward` created so far, other than by the `__init__` of another object."""
        self.forwarded: set[InstanceValue] = set()
        """Those with a call of it, and others."""
        self.escaped: list[Value] = []
        """The objects passed to unknown code so far."""
        self.unlimited = 0
        """Number of calls so far of code of the project that were not followed: it may reach any object."""
        self.silenced = 0
        self.silent_rejections = 0
        """Number of operations so far that torch rejects in code run without events."""
        self.takes_defaults = False
        """Whether the options of the command line have their defaults in this run."""
        self.rehearsals = 0
        """Number of open rehearsals: runs of a loop's body as a later iteration."""
        self.entered: dict[cst.CSTNode, int] = {}
        """Functions run so far, and the step of their last run."""
        self.entered_files: set[tuple[str, str]] = set()
        """Functions run so far that were called, by path and qualified name: `Net.forward`."""
        self.refused = False
        """Whether the running statement has made a call that certainly ends in a TypeError."""
        self.refusals = 0
        """Number of such calls so far."""
        self.type_checked: dict[int, Value] = {}
        """Values tested by undecided `isinstance`-like checks, by id."""
        self.caught: list[frozenset[str]] = []
        """Exceptions named by the handlers of the open try statements, outermost first."""
        self.entry_point = 0
        """The number of the running function without known callers, from 1; 0 for the script itself."""
        self.entry_points = 0
        """Number of functions without known callers run so far."""
        self.replaced: set[str] = set()
        """Qualified names of library functions and classes replaced by the code."""
        self._lasting: list[int] = []
        """The moments when the creation of lasting values began and ended, by turns."""
        self.cycles: list[dict[Any, Any]] = []
        """Contents of values that refer to themselves: classes, objects, scopes of closures."""
        self.last_call: tuple[cst.Call, str, Value] | None = None
        """Last call of a library function: its node, qualified name and receiver."""
        self.symbol_names: dict[Symbol, Size] = {}
        """Names given by the user's code to sizes of library results."""

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def function(self) -> cst.CSTNode | None:
        """Running function; None at the top level of a file."""
        return self.running[-1] if self.running else None

    def place(self, node: cst.CSTNode) -> Place:
        return Place(self.frames[-1].module, node)

    def may_not_reach(self, made_in: object) -> bool:
        """Check whether a value reached this place through an uncertain branch of a function.

        Conditions in the functions that got the value may exclude it, but those that select some passes of a
        loop, `step % 10 == 0`, exclude no value. A value that was created
        elsewhere, and returned, counts if the running function, or its caller, is in such a branch.
        """
        for handed_on, frame in enumerate(reversed(self.frames)):
            if frame.function is made_in:
                return False
            if not all(map(counts_passes, frame.tests)):
                return handed_on < 2 or any(outer.function is made_in for outer in self.frames)
        return False

    def open_loop(self, node: cst.For | cst.While, iterable: Value | None, header: int, depth: int) -> Loop:
        """Begin a loop, the journal's depth being depth."""
        frame = self.frames[-1]
        unfollowed = (self.unfollowed, self.unfollowed)
        loop = Loop(node, iterable, header, depth, len(frame.tests), len(frame.exits), unfollowed)
        loop.events = len(self.events)
        # A write is joined by each of the loops around it.
        self.steps += sum(len(each.loops) for each in self.frames)
        if self.steps > LAST_STEP:
            raise OutOfBudget(Resource.STEPS)
        frame.loops.append(loop)
        return loop

    def close_loop(self) -> None:
        """End the body of the innermost loop."""
        loop = self.frames[-1].loops.pop()
        loop.unfollowed = (loop.unfollowed[0], self.unfollowed)

    def note_type_check(self, value: Value) -> None:
        """Remember a value with an undecided type test in the code."""
        self.type_checked[id(value)] = value

    def reach_limit(self, node: cst.CSTNode | None = None) -> None:
        """Count a call, or a loop, that is not followed because of a limit."""
        self.bounded += 1
        if self.bounded_at is None and node is not None:
            self.bounded_at = self.place(node)

    def expects(self, exception: str) -> bool:
        """Check whether a handler of an open try statement names this built-in exception."""
        return any(f"builtins.{exception}" in names for names in self.caught)

    def emit(self, event: Event) -> None:
        if self.silenced:
            self.silent_rejections += type(event) is OpRejected
        else:
            self.events.append(event)
            if type(event) is not OperationCalled:
                if loops := tuple(self._certain_loops()):
                    self.loops_to[event] = loops
                guards = tuple(self._guards(event.place))
                if guards or self.uncalled is not None or self.unfollowed:
                    escapes = NO_ESCAPES
                    if self.unfollowed:
                        escapes = Escapes(self.escaped, len(self.escaped), bool(self.unlimited))
                    self.ways[event] = Way(self.uncalled, guards, self.unfollowed, escapes)

    def _guards(self, place: Place) -> Iterator[Guard]:
        """Yield the unknown conditions around a place of the innermost function, and around its callers."""
        last = len(self.frames) - 1
        for number, frame in enumerate(self.frames):
            if frame.tests:
                inner = next((each.called_at for each in self.frames[number + 1 :] if each.called_at), place)
                for test in frame.tests:
                    yield Guard(Place(frame.module, test), inner, number == last)

    def _certain_loops(self) -> Iterator[Loop]:
        """Yield the open loops with a first pass certain to reach this place, innermost first."""
        for frame in reversed(self.frames):
            tests, exits = len(frame.tests), len(frame.exits)
            for loop in reversed(frame.loops):
                if tests > loop.tests or exits > loop.exits or loop.breaks or loop.continues:
                    return
                yield loop
            if frame.tests or frame.exits:
                return

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """Value of an expression; Unknown if it cannot be known."""
        self.steps += 1
        handler = EXPRESSIONS.get(type(node))
        return handler(self, node) if handler is not None else Unknown()

    def execute(self, node: cst.CSTNode) -> Flow:
        """Run one statement, and return its way of ending."""
        self.steps += 1
        handler = STATEMENTS.get(type(node))
        end = handler(self, node) if handler is not None else Flow.FALLS_THROUGH
        if self.refused:
            self.refused = False
            return Flow.LEAVES
        return end

    def run(self, block: cst.BaseSuite | cst.Module) -> Flow:
        """Run a block; statements after a return, raise, break or continue in it are dead and not run."""
        for node in block.body:
            if type(node) is cst.SimpleStatementLine:
                for small in node.body:
                    if self.execute(small) is Flow.LEAVES:
                        return Flow.LEAVES
            elif self.execute(node) is Flow.LEAVES:
                return Flow.LEAVES
        return Flow.FALLS_THROUGH

    def close(self) -> None:
        """Release all values, so that memory is free at once, without the garbage collector."""
        self.events.clear()
        self.loops_to.clear()
        self.ways.clear()
        self.type_checked.clear()
        self.state.clear()
        self.journal.maybe_unbound.clear()
        for contents in self.cycles:
            contents.clear()
        for scope in self.module_scopes.values():
            scope.names.clear()

    @contextmanager
    def outside_branches(self) -> Iterator[None]:
        """Write past all open branches: values loaded on demand stay loaded when a branch is undone."""
        journal, self.journal = self.journal, Journal(self.journal.maybe_unbound)
        start = next_serial()
        try:
            yield
        finally:
            self.journal = journal
            while self._lasting and self._lasting[-1] > start:
                self._lasting.pop()
            self._lasting += (start, next_serial())

    def undone_since(self, container: object, moment: int) -> bool:
        """Check whether a branch begun at a moment created the contents of a value: no other one has them."""
        if not isinstance(container, ObjectFields) or container.born < moment:
            return False
        # What was loaded on demand stays.
        return bisect(self._lasting, container.born) % 2 == 0
