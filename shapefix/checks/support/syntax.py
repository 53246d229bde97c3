"""Walks over the syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.modules import Module, Place, dotted_name, nodes


def holds(root: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Return whether root contains a node, or is that node."""
    return any(each is node for each in nodes(root))


def enclosing(module: Module, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the path to a node, outermost first, with the node itself; empty if another module has it."""
    return module.path_to(node)


def number_index(node: cst.CSTNode) -> int | None:
    """Return the number in `x[0]`; None for other indices and other code."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    index = node.slice[0].slice
    value = index.value if isinstance(index, cst.Index) else None
    return value.evaluated_value if isinstance(value, cst.Integer) else None


def is_iterated(place: Place) -> bool:
    """Whether a loop or a comprehension goes over an expression."""
    around = enclosing(place.module, place.node)
    parent = around[-2] if len(around) > 1 else None
    return isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is place.node


def is_after(place: Place, node: cst.CSTNode) -> bool:
    """Whether a node of the same file starts at the end of a place, or after it."""
    here, there = place.span, place.module.span(node)
    return (there.row, there.column) >= (here.end_row, here.end_column)


def attributes_of_super(function: cst.FunctionDef, name: str) -> Iterator[cst.Attribute]:
    """Yield each `super().name` in the body of a function."""
    for node in nodes(function.body):
        if isinstance(node, cst.Attribute) and node.attr.value == name:
            if isinstance(node.value, cst.Call) and dotted_name(node.value.func) == "super":
                yield node


def enclosing_function(place: Place) -> cst.FunctionDef | None:
    """Return the innermost function around a place; None at the top level of a file."""
    around = reversed(enclosing(place.module, place.node))
    return next((node for node in around if isinstance(node, cst.FunctionDef)), None)


def enclosing_class(place: Place) -> cst.ClassDef | None:
    """Return the innermost class around a place; None outside of classes."""
    around = reversed(enclosing(place.module, place.node))
    return next((node for node in around if isinstance(node, cst.ClassDef)), None)


def enclosing_line(place: Place) -> cst.SimpleStatementLine | None:
    """Return the line of simple statements around a place."""
    around = reversed(enclosing(place.module, place.node))
    return next((node for node in around if isinstance(node, cst.SimpleStatementLine)), None)
