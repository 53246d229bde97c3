"""Assignments of flags for gradients: `parameter.require_grad = False`, `module.requires_grad = False`."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.gradient_flags import UnreadFlag
from shapefix.interpreter import hooks
from shapefix.interpreter.classes import is_closed, member, outside_bases
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import Constant, InstanceValue, LibraryObject, Parameter, Unknown, Value
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import derives

FLAG = "requires_grad"
MISSPELLED = frozenset(
    {"require_grad", "required_grad", "requires_gard", "requires_grads", "require_grads", "requiers_grad"}
)
"""Names written instead of the flag of a tensor."""
_LIBRARIES = ("torch.nn.", "torchvision.", "transformers.")
_PARAMETERS = ("parameters", "named_parameters")


@hooks.set_attribute
def note_flag(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Report a flag for gradients, unread by torch."""
    if (
        not isinstance(value, Constant)
        or type(value.value) is not bool
        or not isinstance(node, cst.Attribute)
    ):
        return
    of_module = name == FLAG and _is_module(ev, owner)
    is_wrong = name in MISSPELLED and _has_other_flag(ev, owner, node, value.value)
    if of_module or is_wrong:
        ev.emit(UnreadFlag(ev.place(node), ev.calls, name, of_module, value.value is False))


def _is_module(ev: Evaluator, owner: Value) -> bool:
    """Check for a module without a use of the flag in its own code."""
    if owner is ev.frame.receiver:
        return False
    if isinstance(owner, LibraryObject):
        return owner.kind.startswith(_LIBRARIES) and derives(owner.kind, MODULE)
    if not isinstance(owner, InstanceValue) or not is_closed(owner.cls):
        return False
    if member(owner.cls, FLAG) is not None:
        return False
    return set(outside_bases(owner.cls)) == {MODULE} and FLAG not in owner.fields


def _has_other_flag(ev: Evaluator, owner: Value, node: cst.Attribute, wanted: bool) -> bool:
    """Check for a parameter, or for a tensor with the other value of the flag.

    The variable of a loop over `.parameters()` of an unknown model is a parameter.
    """
    if isinstance(owner, TensorValue):
        return requires_grad(owner) is (not wanted)
    if isinstance(owner, Parameter):
        return True
    name = dotted_name(node.value)
    return isinstance(owner, Unknown) and name in ev.frame.module.once(ev.frame.module.tree, _parameter_names)


def _parameter_names(tree: cst.CSTNode) -> frozenset[str]:
    """Names bound only by loops over parameters."""
    found: set[str] = set()
    others: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, (cst.For, cst.CompFor)):
            called = node.iter.func if isinstance(node.iter, cst.Call) else None
            is_plain = isinstance(called, cst.Attribute) and called.attr.value in _PARAMETERS
            (found if is_plain else others).update(target_names(node.target))
        elif isinstance(node, cst.AssignTarget):
            others.update(target_names(node.target))
    return frozenset(found - others)
