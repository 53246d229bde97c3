"""Edits to register an attribute of a module: `nn.Parameter(…)`, `nn.ModuleList(…)`."""

from __future__ import annotations

import re

import libcst as cst

from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.diagnostics import Edit
from shapefix.domains.registration import UnregisteredSet
from shapefix.interpreter.modules import Module, Place, called_name, nodes

_REQUIRED = re.compile(r",\s*requires_grad\s*=\s*True")
_IMPORTS = (
    (re.compile(r"^(from torch import (.*, *)?nn\b|import torch\.nn as nn\b)", re.MULTILINE), "nn"),
    (re.compile(r"^import torch\b *($|#|,)", re.MULTILINE), "torch.nn"),
)
"""Imports of `torch.nn`, and its name after them."""


def assigned_value(place: Place) -> cst.BaseExpression | None:
    """Return the value in `self.name = value`."""
    for node in reversed(enclosing(place.module, place.node)):
        if isinstance(node, cst.Assign):
            is_plain = len(node.targets) == 1 and node.targets[0].target is place.node
            return node.value if is_plain else None
        if isinstance(node, cst.AnnAssign):
            return node.value
    return None


def wrapped(event: UnregisteredSet, kind: str) -> Edit | None:
    """Return the edit to wrap the assigned value, None if it or the name of `torch.nn` is not known.

    In `forward`, each call would create another parameter, unknown to all optimizers.
    """
    value, module = assigned_value(event.place), event.place.module
    namespace = _namespace(event.place)
    if value is None or namespace is None:
        return None
    around = enclosing_function(event.place)
    if around is not None and around.name.value in ("forward", "training_step"):
        return None
    code = module.code(value)
    if kind == "Parameter":
        code = _REQUIRED.sub("", _without_parameters(module, value))
    elif isinstance(value, cst.List) and not value.elements:
        code = ""
    elif isinstance(value, cst.Tuple) and not value.lpar:
        code = f"({code})"
    elif isinstance(value, cst.GeneratorExp):
        code = code.strip("()")
    return Edit(module.span(value), f"{namespace}.{kind}({code})")


def _without_parameters(module: Module, value: cst.BaseExpression) -> str:
    """Return the code of an expression with `w` for each `nn.Parameter(w)` in it."""
    code = module.code(value)
    for call in nodes(value):
        if isinstance(call, cst.Call) and len(call.args) == 1 and called_name(call) == "Parameter":
            given = call.args[0].value
            inner = module.code(given)
            is_simple = isinstance(given, (cst.Call, cst.Name, cst.Attribute, cst.Subscript))
            code = code.replace(module.code(call), inner if is_simple else f"({inner})")
    return code


def _namespace(place: Place) -> str | None:
    """Return the name of `torch.nn` in the file of a place, None without an import."""
    for pattern, name in _IMPORTS:
        if pattern.search(place.module.text):
            return name
    return None
