"""Assignments in the body of a loop, and the names read by them; found in the code alone."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.appends import emptied_lists
from shapefix.interpreter.modules import children, dotted_name, nodes, target_names
from shapefix.light_dataclasses import dataclass

RETURNED = "return"
"""The target of return statements: the result of the function."""
ITEMS = "[]"
"""The suffix of a name for the items of its list, as the target of `append`."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Targets of a statement in a loop, and all names used by its value, conditions included.

    Names are dotted: `x`, or `self.x`.
    """

    targets: tuple[str, ...]
    reads: frozenset[str]
    node: cst.CSTNode
    """The statement."""
    block: cst.BaseSuite
    """The block with the statement directly in it."""


def assignments(loop: cst.For | cst.While) -> tuple[Assignment, ...]:
    """Assignments in the body of a loop, in their order."""
    conditions = frozenset(_reads(loop.test)) if isinstance(loop, cst.While) else frozenset()
    return tuple(_in_block(loop.body, conditions))


def lists_of_items(loop: cst.For) -> frozenset[str]:
    """Names of lists created by each pass, and filled by inner loops over parts of its item only."""
    found = emptied_lists(loop)
    if not found:
        return found
    varied = set(targets_of(loop.target))
    growing = True
    while growing:
        known = len(varied)
        for assignment in assignments(loop):
            if not assignment.reads.isdisjoint(varied):
                varied.update(assignment.targets)
        growing = len(varied) > known
    other: set[str] = set()
    for inner in nodes(loop.body):
        if isinstance(inner, (cst.For, cst.While)):
            if not isinstance(inner, cst.For) or varied.isdisjoint(_reads(inner.iter)):
                other |= every_name(inner.body)
    return found - other


def _in_block(block: cst.BaseSuite, conditions: frozenset[str]) -> Iterator[Assignment]:
    for statement in block.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                yield from _in_small(small, conditions, block)
        else:
            tests = frozenset(_tests(statement))
            for inner in _blocks(statement):
                yield from _in_block(inner, conditions | tests)
            if isinstance(statement, (cst.For, cst.With)):
                yield Assignment(tuple(_bound(statement)), conditions | tests, statement, block)
            if tests and _jumps(statement):
                # The statements after it only run if it does not jump.
                conditions |= tests


def _in_small(
    node: cst.BaseSmallStatement, conditions: frozenset[str], block: cst.BaseSuite
) -> Iterator[Assignment]:
    reads: set[str] = set()
    names: list[str] = []
    if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        # `items.append(x)`
        function = node.value.func
        held = dotted_name(function.value) if isinstance(function, cst.Attribute) else ""
        if held:
            given = {name for argument in node.value.args for name in _reads(argument)}
            yield Assignment((held + ITEMS,), conditions | given, node, block)
    if isinstance(node, cst.Assign):
        _note(node.value, reads, names)
        beside: set[str] = set()
        for target in node.targets:
            _note(target.target, beside, names)
            names += targets_of(target.target)
        reads |= beside.difference(names)
    else:
        _note(node, reads, names)
        if isinstance(node, (cst.AugAssign, cst.AnnAssign)):
            names += targets_of(node.target)
        elif isinstance(node, cst.Return):
            yield Assignment((RETURNED,), conditions | reads, node, block)
    if names:
        yield Assignment(tuple(names), conditions | reads, node, block)


def targets_of(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from targets_of(element.value)
    elif isinstance(target, (cst.Name, cst.Attribute)):
        yield dotted_name(target)


def read_first(loop: cst.CSTNode) -> frozenset[str]:
    """Names possibly read by an iteration of a loop before their assignment."""
    early: set[str] = set()
    if isinstance(loop, cst.While):
        early |= every_name(loop.test)
        _follow(loop.body, set(), early)
    elif isinstance(loop, cst.For):
        bound = set(target_names(loop.target))
        early |= every_name(loop.target) - bound
        _follow(loop.body, bound, early)
    return frozenset(early)


def _follow(block: cst.BaseSuite, bound: set[str], early: set[str]) -> set[str]:
    """Return the names bound on every way through a block; add those possibly read before to early."""
    bound = set(bound)
    for statement in block.body:
        match statement:
            case cst.SimpleStatementLine():
                for small in statement.body:
                    early |= _reads_beside(small) - bound
                    bound |= _plain_targets(small)
            case cst.If():
                bound = _follow_branches(statement, bound, early)
            case cst.With():
                for item in statement.items:
                    early |= every_name(item.item) - bound
                    if item.asname is not None:
                        bound |= set(target_names(item.asname.name))
                        early |= every_name(item.asname.name) - bound
                bound = _follow(statement.body, bound, early)
            case cst.For(orelse=None):
                early |= every_name(statement.iter) - bound
                inner = bound | set(target_names(statement.target))
                early |= every_name(statement.target) - inner
                _follow(statement.body, inner, early)
            case _:
                early |= every_name(statement) - bound
    return bound


def _follow_branches(node: cst.If, bound: set[str], early: set[str]) -> set[str]:
    early |= every_name(node.test) - bound
    one = _follow(node.body, bound, early)
    match node.orelse:
        case cst.If() as other:
            return one & _follow_branches(other, bound, early)
        case cst.Else() as other:
            return one & _follow(other.body, bound, early)
    return bound


def _plain_targets(small: cst.BaseSmallStatement) -> set[str]:
    targets = [each.target for each in small.targets] if isinstance(small, cst.Assign) else []
    return {name for target in targets for name in target_names(target)}


def _reads_beside(small: cst.BaseSmallStatement) -> frozenset[str]:
    """Names in a small statement besides the targets of an assignment."""
    if not isinstance(small, cst.Assign):
        return every_name(small)
    targets = frozenset(name for each in small.targets for name in every_name(each.target))
    return every_name(small.value) | (targets - _plain_targets(small))


def every_name(node: cst.CSTNode) -> frozenset[str]:
    """Names in a function and in its inner functions, parameters and attributes among them."""
    return frozenset(each.value for each in nodes(node) if isinstance(each, cst.Name))


def names_after_loops(code: cst.CSTNode) -> dict[cst.CSTNode, frozenset[str]]:
    """Names in the statements of a function or file after each of its loops, by the loop."""
    found: dict[cst.CSTNode, frozenset[str]] = {}

    def visit(block: cst.CSTNode, following: frozenset[str]) -> None:
        for statement in reversed(getattr(block, "body", ())):
            if isinstance(statement, (cst.For, cst.While)):
                found[statement] = following
            for inner in _blocks(statement):
                visit(inner, following)
            following |= every_name(statement)

    visit(code.body if isinstance(code, cst.FunctionDef) else code, frozenset())
    return found


def _reads(node: cst.CSTNode) -> set[str]:
    """Every name in node, and every attribute of a name."""
    reads: set[str] = set()
    _note(node, reads, [])
    return reads


def _note(node: cst.CSTNode, reads: set[str], walruses: list[str]) -> None:
    """Add names in node, and attributes of names, to reads, and the targets of `:=` to walruses."""
    kind = type(node)
    if kind is cst.Name:
        reads.add(node.value)  # type: ignore[attr-defined]
    elif kind is cst.Attribute:
        owner = node.value  # type: ignore[attr-defined]
        if type(owner) is cst.Name:
            reads.add(f"{owner.value}.{node.attr.value}")  # type: ignore[attr-defined]
        _note(owner, reads, walruses)
    elif not isinstance(node, cst.BaseSuite):
        if isinstance(node, cst.NamedExpr) and isinstance(node.target, cst.Name):
            walruses.append(node.target.value)
        for child in children(node):
            _note(child, reads, walruses)


def _tests(statement: cst.CSTNode) -> Iterator[str]:
    """Names controlling the blocks of a compound statement: conditions and iterables."""
    if isinstance(statement, (cst.If, cst.While)):
        yield from _reads(statement.test)
        if isinstance(statement, cst.If) and isinstance(statement.orelse, cst.If):
            yield from _tests(statement.orelse)
    elif isinstance(statement, cst.For):
        yield from _reads(statement.iter)
    elif isinstance(statement, cst.Match):
        yield from _reads(statement.subject)
    elif isinstance(statement, cst.With):
        for item in statement.items:
            yield from _reads(item.item)


def _bound(statement: cst.For | cst.With) -> Iterator[str]:
    if isinstance(statement, cst.For):
        yield from targets_of(statement.target)
        return
    for item in statement.items:
        if item.asname is not None:
            yield from targets_of(item.asname.name)


def _blocks(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """Blocks run as part of a compound statement; those of definitions are not."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return
    for child in children(statement):
        if isinstance(child, cst.BaseSuite):
            yield child
        elif isinstance(child, (cst.If, cst.Else, cst.ExceptHandler, cst.Finally, cst.MatchCase)):
            yield from _blocks(child)


def may_break(loop: cst.For | cst.While) -> bool:
    """Check for a break in the body of the loop, leaving this loop."""
    return _breaks(loop.body)


def _breaks(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Break):
        return True
    if isinstance(node, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
        return False
    return any(_breaks(child) for child in children(node))


def _jumps(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Break, cst.Continue, cst.Return, cst.Raise)):
        return True
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
        return False
    return any(_jumps(child) for child in children(node))


_OF_LENGTH = frozenset({"append", "extend", "insert", "pop", "remove", "clear"})


def changes_iterated(loop: cst.For) -> bool:
    """Check whether a loop changes the length of its own list: it has more passes, or fewer."""
    # `range(len(rows))` and `list(rows)` are made before the first pass.
    over: list[cst.BaseExpression] = [loop.iter]
    if isinstance(loop.iter, cst.Call) and dotted_name(loop.iter.func) in ("enumerate", "zip"):
        over = [each.value for each in loop.iter.args]
    named = {node.value for node in over if isinstance(node, cst.Name)}
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in _OF_LENGTH
        and isinstance(node.func.value, cst.Name)
        and node.func.value.value in named
        for node in nodes(loop.body)
    )
