"""Edits for a second backward through a freed graph: detach, add the losses, or move the forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.event_order import of_kind
from shapefix.checks.support.syntax import enclosing
from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.domains.reused_graphs import GraphReused, graph_of
from shapefix.domains.training import OptimizerCreated, OptimizerStepped
from shapefix.interpreter.modules import Module, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue

DETACHED = ".detach()"
"""Text of a fix after a value."""

_FARTHEST = 8
"""Statements between two backwards with one cure."""


def detached_state(event: GraphReused) -> Fix | None:
    """Return the fix to detach a state before the next pass uses it."""
    first: cst.CSTNode | None = use_of_state(event)
    if first is None:
        return None
    (name,) = event.names
    if event.is_unset or _starts_as_none(event, name):
        first = _after_backward(event)
    if first is None:
        return None
    code = f"{name} = {name}.detach()"
    if event.is_tuple:
        code = f"{name} = tuple(each.detach() for each in {name})"
    return _before(event.place.module, first, (code,), f"detach `{name}` from the previous pass")


def _starts_as_none(event: GraphReused, name: str) -> bool:
    """Whether the last assignment of a name before the loop is of None."""
    module = event.place.module
    around = enclosing(module, event.loop.node) if event.loop is not None else []
    for block, inside in reversed(list(pairwise(around))):
        statements = _body(block)
        for statement in reversed(statements[: statements.index(inside)] if inside in statements else ()):
            if name in _bound(statement):
                return any(module.code(each) == "None" for each in _values(statement))
    return False


def _after_backward(event: GraphReused) -> cst.CSTNode | None:
    """Return the statement after the backward in the body of a loop."""
    body = _body(event.loop.node.body) if event.loop is not None else []
    around = enclosing(event.place.module, event.place.node)
    return next((after for before, after in pairwise(body) if before in around), None)


def use_of_state(event: GraphReused) -> cst.SimpleStatementLine | None:
    """Return the first statement of a loop with a use of the previous pass's state."""
    loop, module = event.loop, event.place.module
    if loop is None or len(event.names) != 1 or loop.node not in enclosing(module, event.place.node):
        return None
    (name,) = event.names
    first = next((each for each in _body(loop.node.body) if name in _read(each)), None)
    return first if isinstance(first, cst.SimpleStatementLine) else None


def added_losses(event: GraphReused) -> Fix | None:
    """Return the fix for two backwards in a row: one of the sum."""
    block, start, end = _statements(event)
    first, last = _loss(block[start]) if block else None, _loss(block[end]) if block else None
    if first is None or last is None or first == last or _steps(block[start + 1 : end]):
        return None
    if any(first in _bound(each) for each in block[start + 1 : end + 1]):
        return None
    module = event.place.module
    edits = (
        _without(module, block[start]),
        Edit(module.span(event.place.node), f"({first} + {last}).backward()"),
    )
    return Fix(Applicability.UNSAFE, "call `backward` once, of the sum of the losses", edits)


def detached_use(event: GraphReused, context: CheckContext) -> Fix | None:
    """Return the fix for two optimizers: detach the shared part for the optimizer of other weights."""
    block, start, end = _statements(event)
    if not block or len(event.names) != 1:
        return None
    (name,) = event.names
    made = [index for index, each in enumerate(block[:start]) if name in _bound(each)]
    if len(made) != 1 or not any(name in _read(each) for each in block[start + 1 : end + 1]):
        return None
    trains = _trains_shared(event, context, block[start + 1 : end])
    if trains is None:
        return None
    uses = block[start + 1 : end + 1] if trains else block[made[0] + 1 : start + 1]
    module = event.place.module
    edits = tuple(
        Edit(module.span(given.value).end(), DETACHED)
        for statement in uses
        for call in nodes(statement)
        if isinstance(call, cst.Call)
        for given in call.args
        if isinstance(given.value, cst.Name) and given.value.value == name and not given.star
    )
    if not edits:
        return None
    which = "second" if trains else "first"
    return Fix(Applicability.UNSAFE, f"detach `{name}` for the {which} backward", edits)


def _trains_shared(event: GraphReused, context: CheckContext, between: Sequence[cst.CSTNode]) -> bool | None:
    """Whether the optimizer between both backwards trains layers of the shared part.

    None if no optimizer steps there, or its parameters are unknown.
    """
    inside = {node for statement in between for node in nodes(statement)}
    steps = [each for each in of_kind(context, OptimizerStepped) if each.place.node in inside]
    built = {id(each.optimizer): each.modules for each in of_kind(context, OptimizerCreated)}
    trained = [built.get(id(each.optimizer), frozenset()) for each in steps]
    if not steps or not all(trained):
        return None
    losses = [each.loss for each in (event.first, event.backward) if isinstance(each.loss, TensorValue)]
    first, *others = (set(graph_of(loss)) for loss in losses)
    shared = first.intersection(*others)
    layers = {each.origin.producer for each in shared if each.origin is not None}
    return any(layer in modules for layer in layers if layer is not None for modules in trained)


def moved_forward(event: GraphReused) -> Fix | None:
    """Return the fix to compute a loss in the loop instead of before it."""
    loop, module = event.loop, event.place.module
    around = enclosing(module, loop.node) if loop is not None else []
    if loop is None or len(around) < 2 or event.place.module is not module:
        return None
    block = _body(around[-2])
    body = loop.node.body
    if loop.node not in block or not isinstance(body, cst.IndentedBlock):
        return None
    if loop.node not in enclosing(module, event.place.node):
        return None
    until = block.index(loop.node)
    first = next((index for index in range(until) if _bound(block[index]) & event.names), until)
    moved = block[first:until]
    texts = [module.code(each).strip() for each in moved]
    if not moved or len(moved) > _FARTHEST or any("\n" in each for each in texts):
        return None
    if any(_bound(each) == set() or not _bound(each) <= event.names for each in moved):
        return None
    if any(_read(each) & _bound_in(body) for each in moved):
        return None
    fix = _before(module, body.body[0], texts, "compute it in each pass of the loop")
    if fix is None:
        return None
    return Fix(fix.applicability, fix.message, (*(_without(module, each) for each in moved), *fix.edits))


def _statements(event: GraphReused) -> tuple[list[cst.CSTNode], int, int]:
    """Return the block with both backwards and their positions; an empty one if they are not near."""
    module = event.place.module
    ways = [enclosing(module, each.place.node) for each in (event.first, event.backward)]
    for (block_of_first, first), (block_of_last, last) in zip(*map(pairwise, ways), strict=False):
        if block_of_first is block_of_last and first is not last:
            block = _body(block_of_first)
            if first in block and last in block:
                start, end = block.index(first), block.index(last)
                if start < end <= start + _FARTHEST:
                    return block, start, end
    return [], 0, 0


def _body(node: cst.CSTNode) -> list[cst.CSTNode]:
    return list(node.body) if isinstance(node, (cst.Module, cst.IndentedBlock)) else []


def _loss(statement: cst.CSTNode) -> str | None:
    """Return `loss` for the statement `loss.backward()`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return None
    owner = call.func.value
    return owner.value if isinstance(owner, cst.Name) and call.func.attr.value == "backward" else None


def _steps(statements: Sequence[cst.CSTNode]) -> bool:
    """Whether an optimizer steps, or gradients are cleared."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in {"step", "zero_grad"}
        for statement in statements
        for node in nodes(statement)
    )


def _bound(statement: cst.CSTNode) -> set[str]:
    """Return the names assigned by a simple statement."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return set()
    return {
        name
        for small in statement.body
        if isinstance(small, cst.Assign)
        for target in small.targets
        for name in target_names(target.target)
    }


def _bound_in(body: cst.BaseSuite) -> set[str]:
    return {
        name for node in nodes(body) if isinstance(node, cst.SimpleStatementLine) for name in _bound(node)
    }


def _read(statement: cst.CSTNode) -> set[str]:
    """Return all names in a statement but the targets of its assignments."""
    found: set[str] = set()
    for node in _values(statement):
        found.update(each.value for each in nodes(node) if isinstance(each, cst.Name))
    return found


def _values(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if not isinstance(statement, cst.SimpleStatementLine):
        yield statement
        return
    for small in statement.body:
        yield small.value if isinstance(small, cst.Assign) else small


def _without(module: Module, statement: cst.CSTNode) -> Edit:
    """Return the edit to remove the lines of a statement."""
    span = module.span(statement)
    return Edit(Span(span.path, span.row, 1, span.end_row + 1, 1), "")


def _before(module: Module, statement: cst.CSTNode, lines: Sequence[str], message: str) -> Fix | None:
    span = module.span(statement)
    row = module.text.split("\n")[span.row - 1]
    indent = row[: len(row) - len(row.lstrip())]
    if len(indent) != span.column - 1:
        return None
    code = "".join(f"{line}\n{indent}" for line in lines)
    return Fix(Applicability.UNSAFE, message, (Edit(span.start(), code),))
