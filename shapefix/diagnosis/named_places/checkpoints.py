"""Places of checkpoints: the calls of save, and the wrappers with a prefix."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnostics import Evidence

_WRAPPERS = {"module.": ("DataParallel", "DistributedDataParallel", "DDP"), "_orig_mod.": ("compile",)}
"""The calls that put a prefix before the names of a state."""
_CLASS = re.compile(r"loading state_dict for (\w+):")
_SAVES = ("save", "save_file", "save_model")


@search_for("checkpoint-keys", "checkpoint-sizes")
def _both_sides(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the calls with a prefix in the message, the creation of the model, and the saves of the file."""
    for prefix, wrappers in _WRAPPERS.items():
        if f'"{prefix}' in failure.explanation.message:
            for parsed, call in chain.from_iterable(map(failure.calls, wrappers)):
                yield parsed.place(call, f"this puts `{prefix}` before the names of the state")
    yield from _created_model(failure)
    saves = list(chain.from_iterable(map(failure.calls, _SAVES)))
    loaded = {
        text for _, node in failure.line() if isinstance(node, ast.Constant) and (text := _file_name(node))
    }
    same = [
        (parsed, call)
        for parsed, call in saves
        if any(isinstance(node, ast.Constant) and _file_name(node) in loaded for node in ast.walk(call))
    ]
    for parsed, call in same or (saves if len(saves) == 1 else ()):
        yield parsed.place(call, "the state is saved here")


def _created_model(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the last assignment of the loading model before the failing line, or its only construction."""
    for parsed, node in failure.line():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "load_state_dict":
            continue
        name = ast.unparse(node.func.value)
        made = [
            each
            for each in ast.walk(parsed.tree)
            if isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Call)
            and any(ast.unparse(target) == name for target in each.targets)
            and each.lineno < node.lineno
        ]
        if made:
            last = max(made, key=lambda each: each.lineno)
            yield parsed.place(last, f"`{name}` is created here")
            return
    loaded = _CLASS.search(failure.explanation.message)
    calls = list(failure.calls(loaded[1])) if loaded is not None else []
    if len(calls) == 1:
        parsed, call = calls[0]
        yield parsed.place(call, "the model is created here")


def _file_name(node: ast.Constant) -> str:
    return node.value if isinstance(node.value, str) and "." in node.value else ""
