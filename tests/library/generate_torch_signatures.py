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
from collections.abc import Callable, Iterable, Iterator
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
    """`input, p=0.5, *, dtype=None`, without self; None for a name that torch lacks or says nothing of."""
    found = _resolve(name)
    if not callable(found):
        return None
    owner, _, last = name.rpartition(".")
    given = _of_python(found)
    if given is None:
        given = _of_schemas(getattr(found, "__name__", last))
        if given and owner == TENSOR:
            given = given[1:]
    elif owner == TENSOR or last == "forward":
        given = given[1:]
    if given is None:
        return None
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
        given = _named(found)
    except ValueError:
        return None
    # `max_pool1d(..., return_indices)` calls one of two functions.
    one = inspect.getclosurevars(found).nonlocals.get("if_true") if inspect.isfunction(found) else None
    return given or (_named(one) if one is not None else given)


def _named(function: Callable[..., Any]) -> list[Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.kind not in _STARRED]


def _of_schemas(name: str) -> list[Parameter] | None:
    """The parameters of an operator of C++; what some of its overloads lack has None for a default."""
    overloads = [
        [_converted(each) for each in schema.arguments]
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if schema.arguments
        and str(schema.arguments[0].type) in ("Tensor", "List[Tensor]")
        and "name" not in schema.overload_name.lower()
        and not any(each.is_out for each in schema.arguments)
    ]
    if not overloads:
        return None
    longest = max(overloads, key=lambda given: sum(each.kind is not Parameter.KEYWORD_ONLY for each in given))
    shared = set.intersection(*({each.name for each in given} for given in overloads))
    merged = {each.name: each for each in longest}
    merged |= {
        each.name: each
        for given in overloads
        for each in given
        if each.kind is Parameter.KEYWORD_ONLY and each.name not in merged
    }
    optional = False
    found = []
    for each in merged.values():
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
        if each.kind is Parameter.KEYWORD_ONLY and "*" not in words:
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
