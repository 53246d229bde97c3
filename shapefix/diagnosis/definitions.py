"""Find the assignment of a rejected value, along the stack."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnosis.size_origins import SizeOrigin, ValueSearch

_MOST = 3


def definitions(explanation: MessageExplanation, frames: Sequence[ProjectFrame]) -> tuple[SizeOrigin, ...]:
    """Return the assignments of the only variable with the error, the nearest first; none if there are two.

    They are those of the function or file of the failing line, and of its callers for a parameter.
    """
    search = ValueSearch(frames)
    last = len(frames) - 1
    subjects = {
        node.id: node
        for statement in search.expressions(last)
        for node in _subjects(statement, explanation)
        if isinstance(node, ast.Name)
    }
    if len(subjects) != 1:
        return ()
    for subject in subjects.values():
        search.follow(last, subject)
    return tuple(dict.fromkeys(search.steps))[-_MOST:]


def _subjects(statement: ast.AST, explanation: MessageExplanation) -> Iterator[ast.expr]:
    """Yield the possible origins of the error of a page, as expressions."""
    for node in ast.walk(statement):
        if explanation.name == "missing-attribute":
            if isinstance(node, ast.Attribute) and node.attr == explanation.fields["name"]:
                yield node.value
        elif explanation.name == "not-subscriptable":
            if isinstance(node, ast.Subscript):
                yield node.value
        elif explanation.name == "not-callable":
            if isinstance(node, ast.Call):
                yield node.func
        elif explanation.name == "second-backward":
            if isinstance(node, ast.Attribute) and node.attr == "backward":
                yield node.value
