"""First batches of a loader: `next(iter(loader))`, a loop with a `break`, `if i == 0`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Module, Place, children, nodes

_WRAPPERS = frozenset({"enumerate", "tqdm", "iter", "track"})
_COLLECTIONS = frozenset({"list", "tuple"})
_BOUNDS = (cst.Equal, cst.LessThan, cst.LessThanEqual)


def takes_first(place: Place) -> bool:
    """Check for iterations perhaps without the last batch: `next(iter(loader))`, or a loop with a `break`.

    place is the code iterating over the loader. A loader with a single batch has that one only. Of a list of
    all batches, the code may use the first ones, unless a loop goes through it.
    """
    path = place.module.path_to(place.node)
    if not path:
        return False
    node = path[-1]
    is_collected = _is_collection(node)
    for parent in reversed(path[:-1]):
        if isinstance(parent, cst.Arg):
            continue
        if isinstance(parent, cst.Call) and _name(parent) in _WRAPPERS:
            node = parent
            continue
        if _is_collection(parent):
            node, is_collected = parent, True
            continue
        if isinstance(parent, cst.Call):
            # `islice(loader, 3)` may reach the last batch, `islice(loader, 1)` does not.
            return _name(parent) == "next" or (_name(parent) == "islice" and _is_one(parent))
        if isinstance(parent, cst.For) and parent.iter is node:
            return _stops(parent)
        if isinstance(parent, cst.Assign) and parent.value is node:
            if is_collected:
                return True
            return _is_iterator(node) and _is_drawn_outside_loops(place.module, parent, path)
        break
    return is_collected


def is_first_pass(ev: Evaluator) -> bool:
    """Check for a branch of a loop for its first passes: `if i == 0:`, `if i < 3:`."""
    return any(
        _tests_counter(test, loop.node.target)
        for frame in ev.frames
        for loop in frame.loops
        if isinstance(loop.node, cst.For)
        for test in frame.tests[loop.tests :]
    )


def _name(call: cst.Call) -> str:
    node = call.func
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


def _is_collection(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and _name(node) in _COLLECTIONS


def _is_one(call: cst.Call) -> bool:
    stop = call.args[1].value if len(call.args) == 2 else None
    return isinstance(stop, cst.Integer) and stop.evaluated_value == 1


def _stops(loop: cst.For) -> bool:
    """Whether the loop may end before the last batch: `if i == 100: break`.

    A test of the batch may stop at just the last one: `if len(batch) < 4: break`.
    """
    batch: cst.CSTNode = loop.target
    if (
        isinstance(loop.target, cst.Tuple)
        and isinstance(loop.iter, cst.Call)
        and _name(loop.iter) == "enumerate"
    ):
        batch = loop.target.elements[-1]
    own = {node.value for node in nodes(batch) if isinstance(node, cst.Name)}
    waiting: list[cst.CSTNode] = [loop.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Break):
            return True
        tested = nodes(node.test) if isinstance(node, cst.If) else ()
        if any(isinstance(each, cst.Name) and each.value in own for each in tested):
            continue
        waiting.extend(each for each in children(node) if not isinstance(each, (cst.For, cst.While)))
    return False


def _is_iterator(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and _name(node) == "iter"


def _is_drawn_outside_loops(module: Module, made: cst.Assign, path: list[cst.CSTNode]) -> bool:
    """Whether every use of an iterator's variable is one `next(it)`, in no loop since it was made."""
    target = made.targets[0].target if len(made.targets) == 1 else None
    if not isinstance(target, cst.Name):
        return False
    kinds = (cst.FunctionDef, cst.For, cst.While, cst.Module)
    block = next(node for node in reversed(path) if isinstance(node, kinds))
    if isinstance(block, cst.Module) or not isinstance(block, cst.FunctionDef):
        uses = [node for node in nodes(module.tree) if _is_name(node, target.value)]
    else:
        uses = [node for node in nodes(block) if _is_name(node, target.value)]
    drawn = [call.args[0].value for call in _drawn(block) if len(call.args) == 1]
    return len(uses) == 2 and any(node is use for node in drawn for use in uses)


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _drawn(block: cst.CSTNode) -> Iterator[cst.Call]:
    """Yield the calls of `next` in a block, but not those in its loops and functions."""
    for node in children(block):
        if isinstance(node, cst.Call) and _name(node) == "next":
            yield node
        if not isinstance(
            node, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseComp)
        ):
            yield from _drawn(node)


def _tests_counter(test: cst.CSTNode, target: cst.BaseAssignTargetExpression) -> bool:
    """Whether a condition bounds the counter of a loop: `i == 0` in `for i, batch in enumerate(loader)`."""
    if (
        not isinstance(target, cst.Tuple)
        or not isinstance(test, cst.Comparison)
        or len(test.comparisons) != 1
    ):
        return False
    counter, compared = target.elements[0].value, test.comparisons[0]
    return (
        isinstance(counter, cst.Name)
        and _is_name(test.left, counter.value)
        and isinstance(compared.operator, _BOUNDS)
        and isinstance(compared.comparator, cst.Integer)
    )
