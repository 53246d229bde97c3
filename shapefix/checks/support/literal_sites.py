"""Literals in the code for the sizes of layers, and edits of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.checks.support.syntax import enclosing, enclosing_class
from shapefix.diagnostics import Edit
from shapefix.interpreter.modules import Module, Place, children
from shapefix.interpreter.values import IntegerLiteral, LibraryObject
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class Stated:
    """Literal for a layer's setting: its place, its name, and whether the layer is its only use.

    If alone is set, the literal can be changed without other effects.
    """

    place: Place
    name: str
    alone: bool


def given_to(layer: LibraryObject | None, position: int, setting: str) -> cst.BaseExpression | None:
    """Return the expression of a setting in the call of a layer, or None."""
    if layer is None or layer.place is None or not isinstance(layer.place.node, cst.Call):
        return None
    given = rewrites.argument(layer.place.node, position, setting)
    return None if given is None else given.value


def stated(layer: LibraryObject, setting: str, given: cst.BaseExpression) -> Stated | None:
    """Return the place of the literal of a named setting, or None."""
    value = layer.arguments.get(setting)
    if not isinstance(value, IntegerLiteral) or layer.place is None or value.place.node is given:
        return None
    home = value.place.module
    around = enclosing(home, value.place.node)
    named = next(_names(around), None)
    if named is None:
        return None
    name, call = named
    modules = {home, layer.place.module}
    own = _last_name(given)
    if call is not None and not name:
        # `Net(271, 256)`: the number's name is that of the function's parameter.
        producer = enclosing_class(layer.place)
        is_maker = producer is not None and _last_name(call.func) == producer.name.value
        alone = is_maker and producer is not None and _reads(own, [producer], {}) == (1, 0)
        return Stated(value.place, own, alone)
    classes = {node.name.value: node for module in modules for node in _classes(module.tree)}
    used, passed_on = _reads(name, [module.tree for module in modules], classes)
    if passed_on and own != name:
        used += _reads(own, [enclosing_class(layer.place) or layer.place.module.tree], classes)[0]
    return Stated(value.place, name, used <= 1 and passed_on <= 1)


def _names(around: Sequence[cst.CSTNode]) -> Iterator[tuple[str, cst.Call | None]]:
    """Yield the name of a number in the code directly around it."""
    if len(around) < 2:
        return
    outer = around[-2]
    if isinstance(outer, cst.Assign) and len(outer.targets) == 1:
        yield _last_name(outer.targets[0].target), None
    elif isinstance(outer, cst.AnnAssign):
        yield _last_name(outer.target), None
    elif isinstance(outer, cst.Param):
        yield outer.name.value, None
    elif isinstance(outer, cst.DictElement) and isinstance(outer.key, cst.SimpleString):
        yield str(outer.key.evaluated_value), None
    elif isinstance(outer, cst.Arg) and isinstance(around[-3], cst.Call) and not outer.star:
        call = around[-3]
        if _last_name(call.func) == "add_argument":
            options = [each.value for each in call.args if isinstance(each.value, cst.SimpleString)]
            if options:
                yield str(options[-1].evaluated_value).lstrip("-").replace("-", "_"), None
        else:
            yield outer.keyword.value if outer.keyword is not None else "", call


def _last_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            return str(index.value.evaluated_value)
    return ""


def _classes(tree: cst.CSTNode) -> Iterator[cst.ClassDef]:
    for node in children(tree):
        if isinstance(node, cst.ClassDef):
            yield node
        elif isinstance(node, (cst.If, cst.IndentedBlock)):
            yield from _classes(node)


def _reads(name: str, trees: Sequence[cst.CSTNode], classes: dict[str, cst.ClassDef]) -> tuple[int, int]:
    """Return how often the code reads a name, and how often it only passes it to a class of its own.

    Formatted strings do not count.
    """
    used = passed_on = 0
    stack: list[tuple[cst.CSTNode, bool]] = [(tree, False) for tree in trees]
    while stack:
        node, is_argument = stack.pop()
        if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) and _last_name(node) == name:
            used, passed_on = (used, passed_on + 1) if is_argument else (used + 1, passed_on)
            continue
        if isinstance(node, cst.FormattedString):
            continue
        own = _last_name(node.func) if isinstance(node, cst.Call) else ""
        for child in children(node):
            if _is_binding(node, child):
                continue
            if isinstance(node, cst.Call) and isinstance(child, cst.Arg):
                stack.append((child.value, own in classes))
            else:
                stack.append((child, False))
    return used, passed_on


def _is_binding(node: cst.CSTNode, child: cst.CSTNode) -> bool:
    """Whether child is only a target of node, without a read."""
    if isinstance(node, (cst.Param, cst.ClassDef, cst.FunctionDef)):
        return child is node.name
    if isinstance(node, cst.AnnAssign):
        return child is node.target
    return isinstance(node, cst.AssignTarget) and isinstance(child, (cst.Name, cst.Attribute))


def product_of(node: cst.BaseExpression, number: int, sizes: Sequence[int]) -> str | None:
    """Return the product of sizes in the style of node: `16 * 6 * 6` for `16 * 5 * 5`.

    The value of node was number. A name for the first size is kept: `channels * 6 * 6`. The result is None
    for a plain number, or for another name.
    """
    factors = _factors(node)
    values = [int(each.value, 0) if isinstance(each, cst.Integer) else None for each in factors]
    named = [i for i, value in enumerate(values) if value is None]
    if len(named) == 1:
        rest = 1
        for value in values:
            rest *= value if value is not None else 1
        values[named[0]] = number // rest if rest and number % rest == 0 else None
    code = [str(size) for size in sizes]
    keeps = named and values[named[0]] == sizes[0] and len(named) == 1
    if keeps:
        code[0] = cst.Module([]).code_for_node(factors[named[0]])
    elif len(factors) == 1:
        return None
    return " * ".join(code)


def _factors(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the factors of a product from left to right, or node itself."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def edit_of(module: Module, node: cst.BaseExpression, text: str) -> Edit:
    """Return the edit to replace an expression with text."""
    return Edit(module.span(node), text)
