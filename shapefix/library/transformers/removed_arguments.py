"""Arguments of transformers without a place in newer versions.

`data/removed.json` is written by tests/library/generate_removed_arguments.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import libcst as cst

from shapefix.domains.versions import RemovedArgument
from shapefix.interpreter.calls import Arguments, call_outside
from shapefix.interpreter.evaluator import Evaluator

PACKAGE = "transformers"


@cache
def removed_arguments() -> Mapping[str, Mapping[str, str]]:
    """First version without each removed argument, by function or constructor."""
    return {
        name: {keyword: version for version, keywords in by_version.items() for keyword in keywords.split()}
        for name, by_version in _data()["arguments"].items()
    }


def newest_known() -> str:
    """Return the newest version in the data."""
    return str(_data()["version"])


def is_at_least(ev: Evaluator, version: str) -> bool:
    """Check whether every version permitted by the project is this one or a later one.

    Without requirements, the newest version is used.
    """
    oldest = ev.oldest_versions.get(PACKAGE) or ev.versions.get(PACKAGE)
    return oldest is None or _release(oldest) >= _release(version)


def _release(version: str) -> tuple[int, ...]:
    """Major and minor version as numbers: the third one does not matter here."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


@cache
def _data() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    path = files("shapefix.library.transformers") / "data" / "removed.json"
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(path.read_text("utf-8"))
    return found


@call_outside
def note_removed(ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode) -> None:
    """Emit an event for each argument missing in all permitted versions."""
    if not name.startswith(f"{PACKAGE}.") or not isinstance(node, cst.Call):
        return
    function = name.removesuffix(".__init__").rpartition(".")[2]
    gone = removed_arguments().get(function)
    if gone is None:
        return
    others = frozenset(arguments.keywords)
    for argument in node.args:
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if keyword in gone and is_at_least(ev, gone[keyword]):
            event = RemovedArgument(
                ev.place(node), ev.calls, function, argument, keyword, others, gone[keyword]
            )
            ev.emit(event)
