"""Watched runs of functions: the values of assigned names after each statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

import libcst as cst

from shapefix.displayed_values import RETURNED
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator, Files, Flow, Frame, Library
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place, children, dotted_name
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, Unknown, Value
from shapefix.light_dataclasses import dataclass

Named = tuple[tuple[str, Value], ...]
"""Names and their values at one moment."""
_DEEPEST = 4
_BLOCKS = (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.Match)


def known_now(value: Value, depth: int = 0) -> Value:
    """Value with the layouts of this moment; later they may change or be forgotten."""
    if isinstance(value, Unknown):
        if value.tensor is not None and value.tensor.layout is not None:
            return known_now(value.tensor)
        return Unknown(value.hint)
    if isinstance(value, TensorValue):
        return TensorValue(value.layout, dtype=value.dtype, device=value.device, contiguous=value.contiguous)
    if depth < _DEEPEST:
        if isinstance(value, TupleValue):
            return TupleValue(tuple(known_now(item, depth + 1) for item in value.items), value.names)
        if type(value) is ListValue:
            items, element = value.items, value.element
            kept = None if items is None else tuple(known_now(item, depth + 1) for item in items)
            return ListValue(kept, element and known_now(element, depth + 1), value.length)
        if isinstance(value, DictValue):
            fields = {key: known_now(item, depth + 1) for key, item in value.fields.items()}
            return DictValue(fields, value.closed, value.kind)
    return value


@dataclass(eq=False)
class WatchedRun:
    """One run of a watched function: the calls leading to it, outermost first, and the values of its names.

    requested is False for the program's own call; root is the function without known callers where a chain of
    calls began; known is True if an argument is a tensor of known sizes. parameters are the arguments, or
    the facts that the body reveals. held has an entry for each run of a statement; events are those of a
    statement and of its calls. carried are the loops of which only the first pass was run, and that change
    the initial values of that pass.
    """

    function: cst.FunctionDef
    frame: Frame
    calls: tuple[Place, ...]
    requested: bool
    root: Frame | None
    known: bool
    parameters: dict[str, Value]
    held: dict[cst.CSTNode, list[Named]] = field(default_factory=dict)
    events: dict[cst.CSTNode, list[Event]] = field(default_factory=dict)
    carried: set[cst.CSTNode] = field(default_factory=set)

    @property
    def receiver(self) -> Value | None:
        """Object of the called method."""
        return self.frame.receiver


class Watcher(Evaluator):
    """Evaluator with a record of every run of some functions.

    inputs create the values of a function's parameters, which replace the arguments of a call.
    """

    def __init__(
        self,
        library: Library,
        files: Files,
        allowance: int,
        versions: Mapping[str, str],
        functions: Iterable[cst.FunctionDef],
        inputs: Mapping[cst.CSTNode, Mapping[str, Callable[[], Value]]],
        listening: frozenset[type[Event]] = frozenset(),
    ) -> None:
        super().__init__(library, files, allowance, versions, listening=listening)
        self.passes: list[WatchedRun] = []
        self.asking = False
        """Whether the listing runs the current code, not the program itself."""
        self._inputs = inputs
        self._owners: dict[cst.CSTNode, cst.FunctionDef] = {}
        self._headed: dict[cst.CSTNode, cst.For | cst.With] = {}
        self._open: dict[int, WatchedRun] = {}
        self._noted: dict[int, set[int]] = {}
        for function in functions:
            for statement in statements_of(function):
                self._owners[statement] = function
                if isinstance(statement, (cst.For, cst.With)):
                    self._headed[first_of(statement.body)] = statement

    def execute(self, node: cst.CSTNode) -> Flow:
        """Run one statement; record its effects if it belongs to a watched function."""
        function = None if self.rehearsals else self._owners.get(node)
        if function is None:
            return super().execute(node)
        frame = self.frames[-1]
        seen = self._open.get(id(frame))
        if seen is None:
            seen = self._enter(function, frame)
        header = self._headed.get(node)
        if header is not None:
            self._note(seen, header, _header_targets(header))
        runs = len(seen.held.get(first_of(node.body), ())) if isinstance(node, (cst.For, cst.While)) else 0
        start, returned = len(self.events), len(frame.returns)
        end = super().execute(node)
        if isinstance(node, cst.Return) and len(frame.returns) > returned:
            seen.held.setdefault(node, []).append(((RETURNED, known_now(frame.returns[-1])),))
        elif isinstance(node, (cst.For, cst.With)):
            seen.held.setdefault(node, [])
        else:
            self._note(seen, node, targets_of(node))
        self._note_events(seen, node, start)
        if isinstance(node, (cst.For, cst.While)):
            if len(seen.held.get(first_of(node.body), ())) == runs + 1 and self._has_moved_on(seen, node):
                seen.carried.add(node)
        if self.journal.depth == frame.depth + 1:
            _learn(seen)
        return end

    def _enter(self, function: cst.FunctionDef, frame: Frame) -> WatchedRun:
        names = frame.scope.names
        for name, make in self._inputs.get(function, {}).items():
            names[name] = make()
        given = {name: names[name] for name in parameter_names(function) if name in names}
        known = any(_is_known(value) for value in given.values())
        # A run without a call has no place among the calls.
        root = self.frames[1] if len(self.running) > len(self.calls) else None
        seen = WatchedRun(function, frame, self.calls, self.asking, root, known, given)
        _learn(seen)
        self._open[id(frame)] = seen
        self._noted[id(frame)] = set()
        self.passes.append(seen)
        return seen

    def _note(self, seen: WatchedRun, node: cst.CSTNode, targets: Iterable[cst.BaseExpression]) -> None:
        found = []
        for target in targets:
            value = self._held_by(target)
            if value is not None:
                found.append((dotted_name(target), known_now(value)))
        seen.held.setdefault(node, []).append(tuple(dict(found).items()))

    def _held_by(self, target: cst.BaseExpression) -> Value | None:
        """Value of a name, or of an attribute of a project object; no code is run for it."""
        if isinstance(target, cst.Name):
            return self.frame.scope.home(target.value).names.get(target.value)
        if isinstance(target, cst.Attribute):
            owner = self._held_by(target.value)
            if isinstance(owner, InstanceValue):
                return owner.fields.get(target.attr.value)
        return None

    def _note_events(self, seen: WatchedRun, node: cst.CSTNode, start: int) -> None:
        """Assign the events since start to the innermost statement around them."""
        noted = self._noted[id(seen.frame)]
        new = [event for event in self.events[start:] if id(event) not in noted]
        if new:
            noted.update(map(id, new))
            seen.events.setdefault(node, []).extend(new)

    def _has_moved_on(self, seen: WatchedRun, loop: cst.For | cst.While) -> bool:
        """Check whether a name has another value after a loop than after the last statement in it."""
        last: dict[str, Value] = {}
        for statement in statements_of(loop):
            for names in seen.held.get(statement, ())[-1:]:
                last.update(names)
        return any(
            isinstance(value, TensorValue) and not _is_same(value, self.frame.scope.names.get(name))
            for name, value in last.items()
        )


def _learn(seen: WatchedRun) -> None:
    """Update unknown parameters with the facts learned from the body so far."""
    for name, value in seen.parameters.items():
        if isinstance(value, Unknown):
            known = known_now(value)
            if isinstance(known, TensorValue):
                seen.parameters[name] = known
        elif isinstance(value, TensorValue) and value.layout is not None:
            seen.parameters[name] = known_now(value)


def _is_known(value: Value, depth: int = 0) -> bool:
    """Check whether a value is, or holds, a tensor of known sizes."""
    if isinstance(value, Unknown) and value.tensor is not None:
        value = value.tensor
    if isinstance(value, TensorValue):
        return value.layout is not None
    if depth >= _DEEPEST:
        return False
    if isinstance(value, DictValue):
        return any(_is_known(item, depth + 1) for item in value.fields.values())
    return any(_is_known(item, depth + 1) for item in elements(value) or ())


def _is_same(one: TensorValue, other: Value | None) -> bool:
    now = known_now(other) if other is not None else None
    return isinstance(now, TensorValue) and now.layout == one.layout and now.dtype == one.dtype


def statements_of(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Statements below root in order, small ones and those with a body, without inner functions."""
    for child in children(root):
        if isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            yield child
        elif isinstance(child, (*_BLOCKS, cst.BaseSmallStatement)):
            yield child
            if isinstance(child, _BLOCKS):
                yield from statements_of(child)
        elif not isinstance(child, cst.BaseExpression):
            yield from statements_of(child)


def first_of(block: cst.BaseSuite) -> cst.CSTNode:
    """First statement run in a block."""
    first = block.body[0]
    return first.body[0] if isinstance(first, cst.SimpleStatementLine) else first


def parameter_names(function: cst.FunctionDef) -> list[str]:
    """Names of all parameters, in order."""
    return [param.name.value for param in parameters_of(function)]


def parameters_of(function: cst.FunctionDef) -> list[cst.Param]:
    """All parameters in order, `*args` and `**kwargs` among them."""
    params = function.params
    star = [params.star_arg] if isinstance(params.star_arg, cst.Param) else []
    last = [params.star_kwarg] if params.star_kwarg is not None else []
    return [*params.posonly_params, *params.params, *star, *params.kwonly_params, *last]


def targets_of(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Names and attributes assigned by a statement, or changed in place."""
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield from _parts(target.target)
    elif isinstance(node, (cst.AugAssign, cst.AnnAssign)):
        yield from _parts(node.target)
    elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        function = node.value.func
        # `x.unsqueeze_(0)`
        if isinstance(function, cst.Attribute) and function.attr.value.endswith("_"):
            yield from _parts(function.value)
    if isinstance(node, (cst.If, cst.While)):
        yield from _walrus(node.test)
    elif isinstance(node, cst.BaseSmallStatement):
        yield from _walrus(node)


def _header_targets(node: cst.For | cst.With) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.For):
        yield from _parts(node.target)
    else:
        for item in node.items:
            if item.asname is not None:
                yield from _parts(item.asname.name)


def _parts(target: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _parts(element.value)
    elif isinstance(target, cst.Subscript):
        yield from _parts(target.value)
    elif isinstance(target, (cst.Name, cst.Attribute)) and dotted_name(target):
        yield target


def _walrus(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for child in (node, *children(node)) if isinstance(node, cst.NamedExpr) else children(node):
        if isinstance(child, cst.NamedExpr):
            yield from _parts(child.target)
        if not isinstance(child, (cst.Lambda, cst.BaseCompoundStatement)):
            yield from _walrus(child)
