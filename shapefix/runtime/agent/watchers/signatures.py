"""What a module's forward takes of the keys that it is given: by name, by `**kwargs`, or not at all."""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from types import CodeType
from typing import Any

from .. import frames

_LOOKS_AROUND = ("locals", "vars", "eval", "exec")


def known(module: Any, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The signature of a module's forward, and what of it a call has filled; None where it has none.

    named are the names of its arguments, given those of them that the call has, more those that went into
    its `**kwargs`, unread those given that the code of the user's forward never looks at.
    """
    forward = type(module).forward
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return None
    kinds = list(signature.parameters.values())[1:]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [each.name for each in kinds if each.kind in by_name]
    rest = next((each.name for each in kinds if each.kind is inspect.Parameter.VAR_KEYWORD), None)
    places = [each.name for each in kinds if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    given = [*places[: len(args)], *(name for name in kwargs if name in named)]
    more = [name for name in kwargs if name not in named]
    code = getattr(inspect.unwrap(forward), "__code__", None)
    unread: list[str] = []
    if code is not None and frames.is_users(code.co_filename):
        read, words = _read(code)
        if read is not None:
            values = {**dict(zip(places, args, strict=False)), **kwargs}
            unread = [name for name in given if name not in read and values.get(name) is not None]
            if rest is not None and rest not in read:
                unread += more
            more = [name for name in more if name not in words]
    return {"named": named, "given": given, "more": more if rest is not None else [], "unread": unread}


@lru_cache(maxsize=256)
def _read(code: CodeType) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The local names that a code reads, and the texts in it; None where it may read all of them."""
    if any(name in code.co_names for name in _LOOKS_AROUND):
        return None, frozenset()
    names: set[str] = set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            found = instruction.argval
            names.update((found,) if isinstance(found, str) else found if isinstance(found, tuple) else ())
    return frozenset(names), frozenset(each for each in code.co_consts if isinstance(each, str))
