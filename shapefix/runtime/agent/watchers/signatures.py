"""Arguments of a module's forward: taken by name, taken by `**kwargs`, and never read."""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from types import CodeType
from typing import Any

from ...protocol import SignatureUse
from .. import frames

_READS_ALL = ("locals", "vars", "eval", "exec")


def forward_signature(module: Any, args: Any, kwargs: Any) -> SignatureUse | None:
    """The signature of a module's forward and the arguments of one call; None without a signature."""
    try:
        # A scripted module has no forward in its class.
        forward = type(module).forward
        signature = inspect.signature(forward)
    except (AttributeError, TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())[1:]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [each.name for each in parameters if each.kind in by_name]
    rest = next((each.name for each in parameters if each.kind is inspect.Parameter.VAR_KEYWORD), None)
    positional = [each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    passed = [*positional[: len(args)], *(name for name in kwargs if name in named)]
    extra = [name for name in kwargs if name not in named]
    code = getattr(inspect.unwrap(forward), "__code__", None)
    unread: list[str] = []
    if code is not None and frames.is_users(code.co_filename):
        read, texts = _names_read(code)
        if read is not None:
            values = {**dict(zip(positional, args, strict=False)), **kwargs}
            unread = [name for name in passed if name not in read and values.get(name) is not None]
            if rest is not None and rest not in read:
                unread += extra
            extra = [name for name in extra if name not in texts]
    return SignatureUse(
        parameters=named, passed=passed, extra=extra if rest is not None else [], unread=unread
    )


@lru_cache(maxsize=256)
def _names_read(code: CodeType) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The local names read by code, None if possibly all of them, and the texts in it."""
    if any(name in code.co_names for name in _READS_ALL):
        return None, frozenset()
    names: set[str] = set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            found = instruction.argval
            names.update((found,) if isinstance(found, str) else found if isinstance(found, tuple) else ())
    return frozenset(names), frozenset(each for each in code.co_consts if isinstance(each, str))
