"""Places of checkpoints: the calls of save, and the wrappers with a prefix."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnostics import Evidence

_WRAPPERS = {"module.": ("DataParallel", "DistributedDataParallel", "DDP"), "_orig_mod.": ("compile",)}
"""The calls that put a prefix before the names of a state."""
_SAVES = ("save", "save_file", "save_model")


@search_for("checkpoint-keys", "checkpoint-sizes")
def _saved_states(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the calls with a prefix in the message, and the saves of the loaded file."""
    for prefix, wrappers in _WRAPPERS.items():
        if f'"{prefix}' in failure.explanation.message:
            for parsed, call in chain.from_iterable(map(failure.calls, wrappers)):
                yield parsed.place(call, f"this puts `{prefix}` before the names of the state")
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


def _file_name(node: ast.Constant) -> str:
    return node.value if isinstance(node.value, str) and "." in node.value else ""
