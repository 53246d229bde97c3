"""Code for some versions of a library only, or with a handler for the exception."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes

_CHECKS = ("version", "signature", "hasattr", "fields", "parameters")
"""Parts of names in tests that tell versions apart: `__version__`, `inspect.signature`."""


_OF_OTHER_VERSIONS = ("TypeError", "AttributeError", "ImportError", "ModuleNotFoundError")
"""Exceptions of a library without an argument, a method or a name."""


def is_guarded(place: Place, *exceptions: str) -> bool:
    """Whether an `if` on versions or a handler for one of these exceptions is around a place."""
    around = enclosing(place.module, place.node)
    for outer, inner in pairwise(around):
        if (
            isinstance(outer, (cst.If, cst.IfExp))
            and inner is not outer.test
            and _tells_versions(outer, place.module)
        ):
            return True
        if isinstance(outer, (cst.Try, cst.TryStar)) and inner is outer.body:
            if any(_catches(handler, exceptions) for handler in outer.handlers):
                return True
        if isinstance(outer, (cst.Try, cst.TryStar)) and isinstance(inner, cst.ExceptHandler):
            if _catches(inner, _OF_OTHER_VERSIONS) and _is_second_try(outer, place.node):
                return True
        if isinstance(outer, cst.With) and inner is outer.body:
            if any("raises" in name.lower() for item in outer.items for name in _names(item.item)):
                return True
    return False


def _is_second_try(tried: cst.Try | cst.TryStar, node: cst.CSTNode) -> bool:
    """Whether a `try` fails in a call of the same function first: with the arguments of another version."""
    call = next((each for each in nodes(node) if isinstance(each, cst.Call)), None)
    return call is not None and any(
        isinstance(each, cst.Call) and dotted_name(each.func) == dotted_name(call.func)
        for each in nodes(tried.body)
    )


def _tells_versions(node: cst.If | cst.IfExp, module: Module) -> bool:
    """Whether a test asks for a version, or the other branch exists for a call of the same kind."""
    asked = {*_names(node.test)}
    # `TORCH_MAJOR = int(torch.__version__.split(".")[0])` at the top of the file.
    for name in tuple(asked):
        asked.update(each for statement in module.bindings.get(name, ()) for each in _names(statement))
    if any(part in name.lower() for name in asked for part in _CHECKS):
        return True
    keywords = [_keywords(branch) for branch in (node.body, node.orelse) if branch is not None]
    return len(keywords) == 2 and bool(keywords[0] & keywords[1])


def _keywords(branch: cst.CSTNode) -> set[str]:
    """Names of the functions called with keywords in a branch."""
    return {
        dotted_name(node.func)
        for node in nodes(branch)
        if isinstance(node, cst.Call) and any(argument.keyword is not None for argument in node.args)
    }


def _catches(handler: cst.ExceptHandler | cst.ExceptStarHandler, exceptions: tuple[str, ...]) -> bool:
    caught = {*_names(handler.type)} if handler.type is not None else set()
    return handler.type is None or not caught.isdisjoint((*exceptions, "Exception", "BaseException"))


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (each.value for each in nodes(node) if isinstance(each, cst.Name))
