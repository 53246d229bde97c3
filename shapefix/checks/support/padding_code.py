"""Parts of padding code: the padding value, and the tokenizer in scope."""

from __future__ import annotations

from typing import TypeGuard

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import enclosing, enclosing_class, enclosing_function
from shapefix.domains.raggedness import Origin
from shapefix.domains.tokens import Tokenized
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Module, Place, dotted_name
from shapefix.interpreter.values import Constant

VALUES = {
    "attention_mask": "0",
    "token_type_ids": "0",
    "special_tokens_mask": "0",
    "labels": "-100",
    "label": "-100",
}
"""The padding value of each column, by its name."""


def tokenizer_at(place: Place, made: Origin, context: CheckContext) -> str | None:
    """Return the name of the rows' tokenizer in the scope of place; None if it has none there."""
    call = made.place.node
    if not isinstance(call, cst.Call) or made.place.module is not place.module:
        return None
    name = call.func if isinstance(call.func, cst.Name) else None
    if name is None or not any(_is_at(event, made) for event in context.events):
        return None
    if not is_bound(place.module, place.node, name.value):
        return None
    return name.value


def _is_at(event: Event, made: Origin) -> TypeGuard[Tokenized]:
    return isinstance(event, Tokenized) and event.place.node is made.place.node


def has_pad_token(made: Origin, context: CheckContext) -> bool:
    """Whether the rows' tokenizer may have a pad token."""
    for event in context.events:
        if _is_at(event, made):
            token = event.tokenizer.fields.get("pad_token")
            if isinstance(token, Constant) and token.value is None:
                return False
    return True


def padding_value(
    key: str | None, place: Place, made: Origin | None, context: CheckContext
) -> tuple[str, bool]:
    """Return the padding value of a column as code, and whether it is certain."""
    if key in VALUES:
        return VALUES[key], True
    if key == "input_ids" and made is not None:
        tokenizer = tokenizer_at(place, made, context) or _own_tokenizer(place, made, context)
        if tokenizer is not None and has_pad_token(made, context):
            return f"{tokenizer}.pad_token_id", True
    return "0", False


def _own_tokenizer(place: Place, made: Origin, context: CheckContext) -> str | None:
    """Return `self.tokenizer` if the object has this attribute, named like the rows' tokenizer; else None."""
    call = made.place.node
    name = call.func if isinstance(call, cst.Call) else None
    last = (
        name.attr.value
        if isinstance(name, cst.Attribute)
        else name.value
        if isinstance(name, cst.Name)
        else ""
    )
    if not last or not any(_is_at(event, made) for event in context.events):
        return None
    owner, method = enclosing_class(place), enclosing_function(place)
    if owner is None or method is None or not method.params.params:
        return None
    receiver = method.params.params[0].name.value
    return f"{receiver}.{last}" if last in _attributes(owner) else None


def _attributes(owner: cst.ClassDef) -> frozenset[str]:
    """Return the attributes set in the `__init__` of a class, or declared in its body."""
    found: set[str] = set()
    for statement in owner.body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                    found.add(small.target.value)
        elif isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__":
            for line in statement.body.body:
                for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                    for target in small.targets if isinstance(small, cst.Assign) else ():
                        if isinstance(target.target, cst.Attribute):
                            found.add(target.target.attr.value)
    return frozenset(found)


def is_bound(module: Module, node: cst.CSTNode, name: str) -> bool:
    """Whether name is bound at the top level of the file, or in a function around node."""
    if name in module.bindings:
        return True
    for around in enclosing(module, node):
        if isinstance(around, cst.FunctionDef) and _binds(around, name):
            return True
    return False


def _binds(function: cst.FunctionDef, name: str) -> bool:
    params = function.params
    if any(
        param.name.value == name for param in (*params.posonly_params, *params.params, *params.kwonly_params)
    ):
        return True
    for statement in function.body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                targets = [target.target for target in small.targets] if isinstance(small, cst.Assign) else []
                if any(dotted_name(target) == name for target in targets):
                    return True
    return False
