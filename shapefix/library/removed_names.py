"""Modules, classes and functions of libraries without a place in newer versions.

`removed_names.json` is written by tests/library/generate_removed_names.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import libcst as cst

from shapefix.domains.versions import RemovedName
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.library.required_versions import is_at_least, library_of

_LIGHTNING = ("lightning.pytorch.", "pytorch_lightning.")
"""The namespace of newer versions, and that in the data."""


@cache
def removed_names(package: str) -> Mapping[str, str]:
    """First version without each removed name; a removed module means all of its names."""
    return {name: version for version, names in _data()[package]["names"].items() for name in names.split()}


def libraries() -> tuple[str, ...]:
    """Return the libraries in the data."""
    return tuple(_data())


@cache
def _data() -> Mapping[str, Mapping[str, Any]]:
    path = files("shapefix.library") / "removed_names.json"
    found: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text("utf-8"))
    return found


@hooks.read_name
def note_removed_name(ev: Evaluator, name: str, node: cst.CSTNode) -> None:
    """Emit an event for a name without a place in any permitted version of its library."""
    package = library_of(name)
    if package is None:
        return
    whole = name.replace(*_LIGHTNING)
    names, known = removed_names(package), whole
    while known not in names:
        known = known.rpartition(".")[0]
        if not known:
            return
    if known != whole and not isinstance(node, cst.ImportAlias):
        # The read of the module is reported.
        return
    if is_at_least(ev, names[known], package):
        ev.emit(RemovedName(ev.place(node), ev.calls, package, name, known, names[known]))
