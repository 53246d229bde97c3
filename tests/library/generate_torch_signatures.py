"""Writes the signatures of torch's functions, layers and tensor methods that shapefix knows.

    python tests/library/generate_torch_signatures.py

writes `shapefix/library/torch_signatures.json` from the installed torch: Python's own signature where there
is one, else the schema of the operator that the function calls.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_overloads

import torch

from shapefix.library import library
from shapefix.library.registry import FUNCTIONS, METHODS, TENSOR

FILE = Path(library.__file__).with_name("torch_signatures.json")
Parameter = inspect.Parameter
_STARRED = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_LAYERS = "torch.nn."
_OF_LAYERS = frozenset({"device", "dtype"})
"""Parameters of a layer's constructor that the library reads apart from its settings."""


def signatures() -> dict[str, str]:
    """The parameters of each function, constructor, forward method and tensor method, by qualified name."""
    found = {name: parameters(name) for name in sorted(names())}
    return {name: text for name, text in found.items() if text is not None}


def names() -> Iterator[str]:
    """The names of torch that the library has handlers for."""
    yield from (name for name in FUNCTIONS if name.startswith("torch."))
    yield from (f"{TENSOR}.{name}" for name in METHODS[TENSOR] if not name.startswith(("@", "__")))
    yield from (
        f"{kind}.forward" for kind in METHODS if kind.startswith(_LAYERS) and "forward" in METHODS[kind]
    )


def parameters(name: str) -> str | None:
    """`input, p=0.5, *, dtype=None`, without self; None for a name that torch lacks or says nothing of.

    Overloads with different first parameters are separated by a bar: `end | start, end, step=1`.
    """
    found = _resolve(name)
    if not callable(found):
        return None
    owner, _, last = name.rpartition(".")
    given = _of_python(found)
    if given is None:
        overloads = _of_schemas(getattr(found, "__name__", last), is_method=owner == TENSOR)
        return " | ".join(map(written, overloads)) or None if overloads != [[]] else ""
    if owner == TENSOR or last == "forward":
        given = given[1:]
    if name.startswith(_LAYERS) and isinstance(found, type):
        given = [each for each in given if each.name not in _OF_LAYERS]
    return written(given)


def _resolve(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _of_python(found: Callable[..., Any]) -> list[Parameter] | None:
    """Python's own parameters, those of the first overload or base class that names some."""
    if isinstance(found, type):
        for cls in found.__mro__:
            own = vars(cls).get("__init__")
            for each in [*get_overloads(own), own] if inspect.isfunction(own) else ():
                named = _named(each)[1:] if callable(each) else []
                if named or cls is torch.nn.Module:
                    return named
        return None
    try:
        is_of_layer = (getattr(found, "__module__", None) or "").startswith(_LAYERS)
        given = _named(found) if is_of_layer else _named(found, _STARRED[1:])
    except ValueError:
        return None
    # `max_pool1d(..., return_indices)` calls one of two functions.
    one = inspect.getclosurevars(found).nonlocals.get("if_true") if inspect.isfunction(found) else None
    return given or _named(one) if one is not None else given


def _named(function: Callable[..., Any], left_out: Sequence[Any] = _STARRED) -> list[Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.kind not in left_out]


def _of_schemas(name: str, is_method: bool) -> list[list[Parameter]]:
    """Parameters of an operator of C++: one list for the overloads with the same first parameter."""
    by_first: dict[str, list[list[Parameter]]] = defaultdict(list)
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        named = "name" in schema.overload_name.lower() or any(each.is_out for each in schema.arguments)
        if schema.arguments and not named and _takes_or_makes_tensors(schema, is_method):
            given = schema.arguments[1:] if is_method else schema.arguments
            by_first[schema.arguments[0].name].append(_starred(list(map(_converted, given)), given))
    shortest_first = sorted(by_first.values(), key=lambda overloads: min(map(len, overloads)))
    return [_merged(overloads) for overloads in shortest_first]


def _takes_or_makes_tensors(schema: Any, is_method: bool) -> bool:
    """Whether an overload is one of tensors: others of the same name compute with Python's numbers."""
    first = schema.arguments[0]
    if is_method:
        return first.name == "self" and str(first.type) == "Tensor"
    return str(first.type) == "Tensor" or any("Tensor" in str(each.type) for each in schema.returns)


def _starred(given: list[Parameter], arguments: list[Any]) -> list[Parameter]:
    """The parameters, `*size` for a list of ints that is alone: its ints may be given one by one."""
    positional = [each for each in given if each.kind is not Parameter.KEYWORD_ONLY]
    if len(positional) != 1 or str(arguments[0].type) != "List[int]":
        return given
    return [given[0].replace(kind=Parameter.VAR_POSITIONAL, default=Parameter.empty), *given[1:]]


def _merged(overloads: list[list[Parameter]]) -> list[Parameter]:
    """The parameters of several overloads; what some of them lack has None for a default."""
    longest = max(overloads, key=lambda given: sum(each.kind is not Parameter.KEYWORD_ONLY for each in given))
    shared = set.intersection(*({each.name for each in given} for given in overloads))
    lists = {e.name: e for given in overloads for e in given if e.kind is Parameter.VAR_POSITIONAL}
    merged = {each.name: lists.get(each.name, each) for each in longest}
    merged |= {
        each.name: each
        for given in overloads
        for each in given
        if each.kind is Parameter.KEYWORD_ONLY and each.name not in merged
    }
    defaults = {e.name: e.default for given in overloads for e in given if e.default is not Parameter.empty}
    optional = False
    found = []
    for each in merged.values():
        if each.kind is Parameter.VAR_POSITIONAL:
            found.append(each)
            continue
        if each.default is Parameter.empty and each.name in defaults:
            each = each.replace(default=defaults[each.name])
        needed = each.default is Parameter.empty
        # `low` of randint_like(x, high), randint_like(x, low, high): what comes after it may be absent, too.
        optional |= needed and each.name not in shared
        found.append(each.replace(default=None) if needed and optional else each)
    return found


def _converted(argument: Any) -> Parameter:
    default = argument.default_value if argument.has_default_value() else Parameter.empty
    kind = Parameter.KEYWORD_ONLY if argument.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
    if isinstance(default, list):
        # One number for all dimensions; an empty list is None in Python: `stride` of a pooling.
        default = default[0] if default and len(set(default)) == 1 else tuple(default) or None
    name = {"self": "input", "from": "start"}.get(argument.name, argument.name)
    return Parameter(
        name,
        kind,
        default=default,
    )


def written(given: Iterable[Parameter]) -> str:
    """The parameters as in a `def`: those before a `/` only by position, those after a `*` only by name."""
    words: list[str] = []
    before: Parameter | None = None
    for each in given:
        if before is not None and before.kind is Parameter.POSITIONAL_ONLY is not each.kind:
            words.append("/")
        before = each
        if each.kind is Parameter.VAR_POSITIONAL:
            words.append(f"*{each.name}")
            continue
        if each.kind is Parameter.KEYWORD_ONLY and not any(word.startswith("*") for word in words):
            words.append("*")
        words.append(each.name if each.default is Parameter.empty else f"{each.name}={_default(each)}")
    if before is not None and before.kind is Parameter.POSITIONAL_ONLY:
        words.append("/")
    return ", ".join(words)


def _default(parameter: Parameter) -> str:
    """A default that is a literal; None in place of a function, a dtype or a device."""
    text = repr(parameter.default)
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return "None"
    return text


def main() -> None:
    """Write the file: names by signature."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for name, text in signatures().items():
        by_text[text].append(name)
    content = {
        "torch": torch.__version__.partition("+")[0],
        "signatures": {text: " ".join(found) for text, found in sorted(by_text.items())},
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
