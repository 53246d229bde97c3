"""Find the assignment of a rejected value, along the stack."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.failing_runs import FailingRun
from shapefix.diagnosis.project_frames import ProjectFrame, searched_sources
from shapefix.diagnosis.rejected_values import OF_ARGUMENTS, OF_ARRAYS, given_to, rejected_values
from shapefix.diagnosis.size_origins import SizeOrigin
from shapefix.diagnosis.value_search import ValueSearch
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.engine.parse_limits import LARGEST
from shapefix.interpreter.values import Constant
from shapefix.sources.text import Unreadable

_MOST = 5
_FEWEST = 4
_MOST_OF_LINE = 8
_OF_TYPES = frozenset(
    {"missing-attribute", "not-subscriptable", "not-callable", "operand-types", "none-operand"}
    | {"none-comparison", "none-iterated", "length-of-none", "missing-key", "list-index"}
)
"""The error pages about the type or keys of one value: its assignment decides."""
_OF_NONE = frozenset({"none-operand", "none-comparison", "none-iterated", "length-of-none"})
_OF_ORIGINS = ("missing-attribute", "not-subscriptable", "not-callable")
"""The error pages about the type of a value, which may be stored elsewhere."""
_NONE = "NoneType"
_CALL = re.compile(r"\b(?:\w+\.)*(\w+)\(")
_OF_KEYS = frozenset({"missing-key", "list-index"})
_MOST_KEYED = 3
"""The most dictionaries or lists of a failing line that may lack the key."""
_MOST_ENDS = 2
_TARGETS = ("target", "targets", "labels", "y_true")
_LOSS = re.compile(r"loss|criteri|entropy|\bce\b", re.IGNORECASE)
_COUNTS = re.compile(r"for \w+ in (?:trange|range|tqdm\(range)\(")
_SETS_NONE = re.compile(r"=\s*None\b")


def definitions(
    explanation: MessageExplanation,
    frames: Sequence[ProjectFrame],
    run: FailingRun | None,
    folder: str,
    *,
    is_raised_inside: bool = False,
) -> tuple[SizeOrigin, ...]:
    """Return the assignments of the only variable with the error, the nearest first; none if there are two.

    They are those of the function or file of the failing line, and of its callers for a parameter. If several
    variables may be `None`, it is the one that is so in the run of the line. is_raised_inside is true if a
    library raised the error with an argument of the line.
    """
    search = ValueSearch(frames, folder, is_deep=explanation.name not in _OF_TYPES)
    is_of_none = explanation.name in _OF_NONE or explanation.fields.get("type") == _NONE
    last = len(frames) - 1
    tensors = (
        {each.place.code for each in run.values if each.tensor is not None} if run is not None else set()
    )
    subjects = {
        name: node
        for statement in search.expressions(last)
        for node in rejected_values(statement, explanation, tensors)
        if (name := _subject(node))
    }
    is_passed = (not subjects or is_raised_inside) and explanation.name == "missing-attribute"
    if is_passed and (is_raised_inside or not is_of_none):
        # A library looked for the attribute, in an argument of the failing call.
        given = (each for call in search.calls(last) for each in given_to(call))
        subjects = {name: node for node in given if (name := _subject(node))} or subjects
    if len(subjects) > 1 and run is not None and is_of_none:
        empty = {each.place.code for each in run.values if _is_none(each.value)}
        subjects = {name: node for name, node in subjects.items() if name in empty}
    if len(subjects) > 1 and run is not None and explanation.name == "not-callable":
        called = {name: node for name, node in subjects.items() if name in tensors}
        subjects = called or subjects
    is_one_of = is_passed or explanation.name in _OF_KEYS | OF_ARGUMENTS | OF_ARRAYS
    most = _MOST_KEYED if is_one_of else 1
    if not subjects or len(subjects) > most:
        return ()
    for subject in subjects.values():
        search.follow(last, subject)
    if explanation.name in _OF_ORIGINS and not is_of_none and len(search.steps) < _FEWEST:
        # What it was computed from decides, too.
        deep = ValueSearch(frames, folder, sources=search.sources)
        for subject in subjects.values():
            deep.follow(last, subject)
        search.steps += deep.nearest
    steps = _before(frames[-1], search.steps)
    if explanation.name == "second-backward":
        # What is computed from its own earlier value keeps the graph of the step before.
        steps.sort(key=lambda step: -step.row if _is_carried(step) else 0)
    if is_of_none:
        steps = [step for step in steps if _SETS_NONE.search(step.code)] or steps
        steps += [each for step in steps[:_MOST] for each in _called(step, frames, folder)]
    return tuple(steps[:_MOST])


def _is_carried(step: SizeOrigin) -> bool:
    return re.search(rf"\b{re.escape(step.name)}\b", step.code.partition("=")[2]) is not None


def _called(step: SizeOrigin, frames: Sequence[ProjectFrame], folder: str) -> Iterator[SizeOrigin]:
    """Yield the called functions with a result of `None`, if no others have their names."""
    own = (frame.span.path for frame in frames if not frame.is_missing)
    paths = tuple(dict.fromkeys((*own, *searched_sources(folder))))
    for name in dict.fromkeys(_CALL.findall(step.code.partition("=")[2] or step.code)):
        found = [each for path in paths for each in _without_result(path, name)]
        if len(found) == 1:
            yield from found[0]


def _without_result(path: str, name: str) -> Iterator[tuple[SizeOrigin, ...]]:
    """Yield the header and the ends of each function with a name and a result of `None`."""
    try:
        whole = whole_text(path)
        is_there = f"def {name}" in whole.text and len(whole.text) <= LARGEST
        tree = ast.parse(whole.text if is_there else "")
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    rows = whole.text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and (ends := list(_ends(node.body))):
            lines = [node.lineno, *(each.lineno for each in ends)]
            yield tuple(
                SizeOrigin(f"{name}()", *whole.place(line), rows[line - 1].strip())
                for line in lines[: _MOST_ENDS + 1]
            )


def _ends(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the last statements of a body without a `return`."""
    match body[-1]:
        case ast.Return() | ast.Raise() | ast.While() | ast.Try() | ast.Match():
            return
        case ast.If(body=first, orelse=other):
            yield from _ends(first)
            if other:
                yield from _ends(other)
            elif not any(_ends(first)):
                yield body[-1]
        case ast.With(body=inner):
            yield from _ends(inner)
        case last:
            yield last


def _is_none(value: object) -> bool:
    return isinstance(value, Constant) and value.value is None


def _subject(node: ast.expr) -> str:
    """Return `table` for `table.values`, `self.best` for `self.best[0]`, and `load` for `load(path)`."""
    names: list[str] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        names.append(node.attr if isinstance(node, ast.Attribute) else "")
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    if node.id != "self":
        return node.id
    return f"self.{names[-1]}" if names else ""


def argument_definitions(frames: Sequence[ProjectFrame], folder: str) -> tuple[SizeOrigin, ...]:
    """Return the assignments of the values in the failing line, the nearest of each value first.

    The origins of data and of results come before the called functions and layers themselves.
    """
    last = len(frames) - 1
    search = ValueSearch(frames, folder)
    line = (*search.expressions(last), *search.conditions(last))
    called = {id(node.func) for node in line if isinstance(node, ast.Call)}
    outermost = _outermost_call(line)
    data: dict[str, list[SizeOrigin]] = {}
    functions: dict[str, list[SizeOrigin]] = {}
    for node in line:
        if node is outermost:
            # It has returned nothing: one of its arguments failed, or the function itself.
            continue
        is_layer = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")
        found = functions if is_layer or id(node) in called else data
        name = _name_of(node)
        if name and name != "self" and name not in found:
            each = ValueSearch(frames, folder, sources=search.sources)
            each.follow(last, node)
            found[name] = each.nearest
    in_turn = (
        step
        for of_kind in (data, functions)
        for steps in zip_longest(*of_kind.values())
        for step in steps
        if step is not None and not _COUNTS.match(step.code)
    )
    return tuple(_before(frames[-1], in_turn)[:_MOST_OF_LINE])


def target_definitions(frames: Sequence[ProjectFrame], folder: str) -> tuple[SizeOrigin, ...]:
    """Return the assignments of the second argument of a loss in the failing line, the nearest first."""
    last = len(frames) - 1
    search = ValueSearch(frames, folder)
    for call in search.calls(last):
        given = [*call.args[1:2], *(each.value for each in call.keywords if each.arg in _TARGETS)]
        if _LOSS.search(ast.unparse(call.func)) and given:
            target = given[0]
            while isinstance(target, ast.Subscript):
                target = target.value
            search.follow(last, target)
            break
    return tuple(_before(frames[-1], search.nearest)[: _MOST + 1])


def _outermost_call(line: Sequence[ast.expr]) -> ast.Call | None:
    """Return the call around all other values of a statement, as in `model = fit(rows)`."""
    read = (node for node in line if isinstance(getattr(node, "ctx", ast.Load()), ast.Load))
    first = next(read, None)
    # A result that is unpacked was returned.
    is_unpacked = any(isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store) for node in line)
    return first if isinstance(first, ast.Call) and not is_unpacked else None


def _name_of(node: ast.expr) -> str:
    """Return the name of a value read or computed on a line, "" for others."""
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        return f"{ast.unparse(node.func)}()"
    is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return _subject(node) if is_read else ""


def _before(frame: ProjectFrame, steps: Iterable[SizeOrigin]) -> list[SizeOrigin]:
    """Return each step once, without those of the failing line itself."""
    own = {(frame.span.path, row) for row in range(frame.span.row, frame.span.end_row + 1)}
    return [step for step in dict.fromkeys(steps) if (step.path, step.row) not in own]
