"""Find the assignment of a rejected value, along the stack."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.failing_runs import FailingRun
from shapefix.diagnosis.project_frames import ProjectFrame, source_files
from shapefix.diagnosis.rejected_values import OF_ARGUMENTS, OF_ARRAYS, given_to, rejected_values
from shapefix.diagnosis.size_origins import SizeOrigin
from shapefix.diagnosis.value_search import ValueSearch
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.engine.parse_limits import LARGEST
from shapefix.interpreter.values import Constant
from shapefix.sources.text import Unreadable

_MOST = 5
_OF_TYPES = frozenset(
    {"missing-attribute", "not-subscriptable", "not-callable", "operand-types", "none-operand"}
    | {"none-comparison", "none-iterated", "length-of-none", "missing-key", "list-index"}
)
"""The error pages about the type or keys of one value: its assignment decides."""
_OF_NONE = frozenset({"none-operand", "none-comparison", "none-iterated", "length-of-none"})
_NONE = "NoneType"
_CALL = re.compile(r"=\s*(?:\w+\.)*(\w+)\(")
_OF_KEYS = frozenset({"missing-key", "list-index"})
_MOST_KEYED = 3
"""The most dictionaries or lists of a failing line that may lack the key."""
_SETS_NONE = re.compile(r"=\s*None\b")
_MOST_FILES = 200


def definitions(
    explanation: MessageExplanation, frames: Sequence[ProjectFrame], run: FailingRun | None, folder: str
) -> tuple[SizeOrigin, ...]:
    """Return the assignments of the only variable with the error, the nearest first; none if there are two.

    They are those of the function or file of the failing line, and of its callers for a parameter. If several
    variables may be `None`, it is the one that is so in the run of the line.
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
    is_passed = not subjects and explanation.name == "missing-attribute" and not is_of_none
    if is_passed:
        # A library looked for the attribute, in an argument of the failing call.
        given = (each for call in search.calls(last) for each in given_to(call))
        subjects = {name: node for node in given if (name := _subject(node))}
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
    steps = list(dict.fromkeys(search.steps))
    if explanation.name == "second-backward":
        # What is computed from its own earlier value keeps the graph of the step before.
        steps.sort(key=lambda step: -step.row if _is_carried(step) else 0)
    if is_of_none:
        steps = [step for step in steps if _SETS_NONE.search(step.code)] or steps
        steps += [each for step in steps[:1] for each in _called(step, frames, folder)]
    return tuple(steps[:_MOST])


def _is_carried(step: SizeOrigin) -> bool:
    return re.search(rf"\b{re.escape(step.name)}\b", step.code.partition("=")[2]) is not None


def _called(step: SizeOrigin, frames: Sequence[ProjectFrame], folder: str) -> Iterator[SizeOrigin]:
    """Yield the function called by an assignment, if it may return nothing and no other has its name."""
    called = _CALL.search(step.code)
    if called is None:
        return
    own = (frame.span.path for frame in frames if not frame.is_missing)
    paths = dict.fromkeys((*own, *islice(source_files(folder), _MOST_FILES)))
    found = [each for path in paths for each in _without_result(path, called[1])]
    if len(found) == 1:
        yield found[0]


def _without_result(path: str, name: str) -> Iterator[SizeOrigin]:
    try:
        whole = whole_text(path)
        is_there = f"def {name}" in whole.text and len(whole.text) <= LARGEST
        tree = ast.parse(whole.text if is_there else "")
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and _may_end(node.body):
            shown, row = whole.place(node.lineno)
            yield SizeOrigin(f"{name}()", shown, row, whole.text.split("\n")[node.lineno - 1].strip())


def _may_end(body: Sequence[ast.stmt]) -> bool:
    """Whether the end of a body may be reached; a function then returns `None`."""
    match body[-1]:
        case ast.Return() | ast.Raise():
            return False
        case ast.If(body=first, orelse=other):
            return not other or _may_end(first) or _may_end(other)
        case ast.With(body=inner):
            return _may_end(inner)
        case ast.While() | ast.Try() | ast.Match():
            return False
    return True


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
