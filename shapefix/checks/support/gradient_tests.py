"""Tests for tensors with gradients in the checked code."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.interpreter.modules import Place, nodes

_SELECTING = frozenset({"requires_grad", "is_leaf", "is_grad_enabled", "grad_fn"})
"""Names in a condition that may leave out tensors with gradients, or the recording of gradients."""


def is_selected_by_gradient(place: Place) -> bool:
    """Whether a condition around a place may select tensors without gradients."""
    around = enclosing(place.module, place.node)
    return any(_is_test(node) for node in around)


def tests_gradient(place: Place) -> bool:
    """Whether the function around a place has such a condition anywhere."""
    function = enclosing_function(place)
    return is_selected_by_gradient(place) or (
        function is not None and any(_is_test(node) for node in nodes(function))
    )


def _is_test(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.If, cst.IfExp, cst.While)) and any(
        isinstance(each, cst.Name) and each.value in _SELECTING for each in nodes(node.test)
    )
