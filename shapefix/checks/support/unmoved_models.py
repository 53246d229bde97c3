"""Models created and used in a file, and never moved to a device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.modules import Module, dotted_name, nodes

_MOVES = frozenset({"to", "cuda"})
_MOVERS = frozenset({"Accelerator", "Trainer", "device_map", "set_default_device", "DataParallel", "prepare"})
"""Names in code with another way to a device."""


def unmoved_model(module: Module) -> str:
    """Return the name of a model created, called and never moved in the file; "" without one.

    Its parameters go to an optimizer, so that it is a module with weights.
    """
    return module.once(module.tree, _unmoved)


def _unmoved(tree: cst.CSTNode) -> str:
    everything = list(nodes(tree))
    if any(isinstance(node, cst.Name) and node.value in _MOVERS for node in everything):
        return ""
    called = {dotted_name(node.func) for node in everything if isinstance(node, cst.Call)}
    attributes = [node for node in everything if isinstance(node, cst.Attribute)]
    trained = {dotted_name(node.value) for node in attributes if node.attr.value == "parameters"}
    moved = {dotted_name(node.value) for node in attributes if node.attr.value in _MOVES}
    created = [name for node in everything for name in _created(node)]
    return next((name for name in created if name in called & trained - moved), "")


def _created(node: cst.CSTNode) -> Iterator[str]:
    """The variable of `net = Net()`, without a move: `net = Net().to(device)`."""
    if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and len(node.targets) == 1:
        inside = nodes(node.value)
        if not any(isinstance(each, cst.Attribute) and each.attr.value in _MOVES for each in inside):
            yield dotted_name(node.targets[0].target)
