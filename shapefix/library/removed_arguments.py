"""Arguments of transformers, Lightning, trl and other libraries without a place in newer versions.

`removed_arguments.json` is written by tests/library/generate_removed_arguments.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import libcst as cst

from shapefix.domains.versions import RemovedArgument
from shapefix.interpreter.calls import Arguments, call_outside
from shapefix.interpreter.evaluator import Evaluator
from shapefix.library.required_versions import TRANSFORMERS, imports, is_at_least, library_of

_PATCHED_BY = {"trl": "unsloth"}
"""Libraries changed by the import of another one: unsloth's trainers and configurations accept old arguments
of trl (`_backwards_compatible_trainer` in unsloth/trainer.py)."""


@cache
def removed_arguments(package: str = TRANSFORMERS) -> Mapping[str, Mapping[str, str]]:
    """First version without each removed argument, by function, constructor or method: `Trainer.fit`."""
    return {
        name: {keyword: version for version, keywords in by_version.items() for keyword in keywords.split()}
        for name, by_version in _data()[package]["arguments"].items()
    }


def packages() -> tuple[str, ...]:
    """Return the libraries in the data."""
    return tuple(_data())


def newest_known(package: str = TRANSFORMERS) -> str:
    """Return the newest version in the data."""
    return str(_data()[package]["version"])


@cache
def _data() -> Mapping[str, Mapping[str, Any]]:
    path = files("shapefix.library") / "removed_arguments.json"
    found: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text("utf-8"))
    return found


@call_outside
def note_removed(ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode) -> None:
    """Emit an event for each argument missing in all permitted versions."""
    known = _tables(name)
    if known is None or not isinstance(node, cst.Call) or _is_patched(ev, known[0]):
        return
    package, function, base = known
    if function is not None:
        _note(ev, node, arguments, package, function, removed_arguments(package)[function])
    if base is not None and (package not in ev.oldest_versions or TRANSFORMERS in ev.oldest_versions):
        last = name.removesuffix(".__init__").rpartition(".")[2]
        _note(ev, node, arguments, TRANSFORMERS, last, removed_arguments()[base])


@lru_cache(maxsize=4096)
def _tables(name: str) -> tuple[str, str | None, str | None] | None:
    """Return the library of a name, and its names in the tables of the library and of transformers."""
    package = library_of(name)
    if package is None or package not in _data():
        return None
    parts = name.removesuffix(".__init__").split(".")
    table = removed_arguments(package)
    function = next((each for each in (".".join(parts[-2:]), parts[-1]) if each in table), None)
    base = _data()[package].get("inherits", {}).get(parts[-1])
    return None if function is None and base is None else (package, function, base)


def _is_patched(ev: Evaluator, package: str) -> bool:
    """Whether a file on the way to a call imports a library with changes to this one."""
    patch = _PATCHED_BY.get(package)
    return patch is not None and imports(ev, patch)


def _note(
    ev: Evaluator,
    node: cst.Call,
    arguments: Arguments,
    package: str,
    function: str,
    gone: Mapping[str, str],
) -> None:
    others = frozenset(arguments.keywords)
    for argument in node.args:
        keyword = argument.keyword.value if argument.keyword is not None else ""
        if keyword in gone and is_at_least(ev, gone[keyword], package):
            event = RemovedArgument(
                ev.place(node), ev.calls, package, function, argument, keyword, others, gone[keyword]
            )
            ev.emit(event)
    unpacked = next((argument for argument in node.args if argument.star == "**"), None)
    for dictionary in arguments.unpacked if unpacked is not None else ():
        for key in dictionary.fields.keys() & gone.keys():
            if not ev.journal.is_maybe_unbound(dictionary.fields, key):
                version = gone[str(key)]
                if unpacked is not None and is_at_least(ev, version, package):
                    place, name = ev.place(node), str(key)
                    ev.emit(
                        RemovedArgument(place, ev.calls, package, function, unpacked, name, others, version)
                    )
