"""`exec(open("setup.py").read())`: the statements of another file run in the names of the calling one."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.functions import DEEPEST, invalidate
from shapefix.interpreter.modules import Module
from shapefix.interpreter.refused_calls import run_top_level
from shapefix.interpreter.values import NONE, Constant, Reference, Unknown, Value
from shapefix.library.registry import function

_READS = {"builtins.open": "read", "pathlib.Path": "read_text"}
"""Functions for a file by its path, and the method for its text."""


@function("builtins.exec")
def execute(call: Call) -> Value:
    ev, node = call.ev, call.place.node
    module = _executed(ev, node.args[0].value) if isinstance(node, cst.Call) and node.args else None
    is_top_level = ev.frame.scope.outer is None and ev.frame.function is None
    is_running = any(frame.module is module for frame in ev.frames)
    if module is None or not is_top_level or is_running or len(ev.calls) >= DEEPEST:
        invalidate(ev, call.arguments.everything)
        if is_top_level and module is None:
            _forget_settings(ev)
        return NONE
    calls = ev.calls
    ev.calls = (*calls, call.place)
    ev.frames.append(Frame(module, ev.frame.scope))
    try:
        run_top_level(ev, module)
    finally:
        ev.frames.pop()
        ev.calls = calls
    return NONE


def _forget_settings(ev: Evaluator) -> None:
    """Forget the numbers and texts of the top level: unknown statements may assign them."""
    names = ev.frame.scope.names
    for name in [name for name, value in names.items() if isinstance(value, Constant)]:
        ev.journal.write(names, name, Unknown(name))


def _executed(ev: Evaluator, text: cst.BaseExpression) -> Module | None:
    """File of the project with the value of an expression as its text."""
    if not isinstance(text, cst.Call):
        return None
    if isinstance(text.func, cst.Name):
        is_compiled = text.args and _is(ev, text.func, "builtins.compile")
        return _executed(ev, text.args[0].value) if is_compiled else None
    if not isinstance(text.func, cst.Attribute) or not isinstance(text.func.value, cst.Call):
        return None
    opened, reading = text.func.value, text.func.attr.value
    if not opened.args or not any(
        reading == method and _is(ev, opened.func, name) for name, method in _READS.items()
    ):
        return None
    path = ev.evaluate(opened.args[0].value)
    if not isinstance(path, Constant) or not isinstance(path.value, str):
        return None
    return _project_file(ev, path.value)


def _is(ev: Evaluator, called: cst.BaseExpression, name: str) -> bool:
    value = ev.evaluate(called)
    return isinstance(value, Reference) and value.name == name


def _project_file(ev: Evaluator, path: str) -> Module | None:
    """File at a relative path, seen from the running file or from the root of the project."""
    parts = path.removeprefix("./").split("/")
    if not parts[-1].endswith(".py") or any(part in ("", "..") for part in parts):
        return None
    dotted = ".".join([*parts[:-1], parts[-1].removesuffix(".py")])
    if dotted.count(".") != len(parts) - 1:
        return None
    found = ev.files.locate(ev.frame.module, dotted, 0)
    if found is None or not found.replace("\\", "/").endswith("/" + "/".join(parts)):
        return None
    return ev.files.module(found)
