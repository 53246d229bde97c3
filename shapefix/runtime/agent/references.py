"""Replace all references to functions: in modules, classes, instances, containers and default arguments.

numpy and tarfile keep the `open` that existed when they were imported; replacing it in `builtins` does not
affect them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Mapping, Sequence
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any

_IMPORT = ("posix", "nt", "_frozen_importlib", "_frozen_importlib_external")


def replace(pairs: Sequence[tuple[Any, Any]], package: str) -> None:
    """Replace the first function of each pair by the second, except in the modules of a package.

    Python's import system is skipped: it reads thousands of files.
    """
    instead = {id(old): new for old, new in pairs}
    spared = set()
    for name, module in list(sys.modules.items()):
        if name in _IMPORT or f"{name}.".startswith(f"{package}."):
            spared.add(id(vars(module)))
    for _, new in pairs:
        # The replacements still call the originals.
        spared.add(id(new.__dict__))
        spared.update(map(id, new.__closure__ or ()))
    holders = [each for each in gc.get_referrers(*(old for old, _ in pairs)) if id(each) not in spared]
    for holder in holders:
        _replace_in(holder, instead)
    # Tuples cannot be changed in place: search their owners, once, because this visits every object.
    fixed = {id(each): each for each in holders if isinstance(each, (tuple, staticmethod)) or _of_class(each)}
    for owner in gc.get_referrers(*fixed.values()) if fixed else ():
        if isinstance(owner, FunctionType) and id(owner.__defaults__) in fixed:
            owner.__defaults__ = _replaced(owner.__defaults__ or (), instead)
        elif isinstance(owner, functools.partial) and id(owner.args) in fixed:
            _set_partial(owner, owner.func, _replaced(owner.args, instead))
        elif isinstance(owner, type):
            _replace_in_class(owner, instead)


def _of_class(holder: Any) -> bool:
    """Whether this may be the dictionary of a class; Python allows changes through the class only."""
    return isinstance(holder, dict) and "__module__" in holder and "__doc__" in holder


def _replace_in(holder: Any, instead: Mapping[int, Any]) -> None:
    if isinstance(holder, dict):
        if not _of_class(holder):
            _replace_values(holder, instead)
    elif isinstance(holder, list):
        for n, value in enumerate(holder):
            holder[n] = instead.get(id(value), value)
    elif isinstance(holder, set):
        # Sets such as `os.supports_dir_fd`: the replacement supports the same options.
        holder.update([instead[id(value)] for value in holder if id(value) in instead])
    elif isinstance(holder, CellType):
        holder.cell_contents = instead[id(holder.cell_contents)]
    elif isinstance(holder, functools.partial):
        _set_partial(holder, instead.get(id(holder.func), holder.func), holder.args)
    elif not isinstance(holder, (tuple, type, staticmethod)):
        _replace_attributes(holder, instead)


def _replace_attributes(holder: Any, instead: Mapping[int, Any]) -> None:
    """Replace attributes of an instance, including slots."""
    if isinstance(getattr(holder, "__dict__", None), dict):
        _replace_values(vars(holder), instead)
    for kind in type(holder).__mro__:
        for member in list(vars(kind).values()):
            if isinstance(member, MemberDescriptorType):
                with contextlib.suppress(AttributeError, TypeError):
                    value = member.__get__(holder)
                    if id(value) in instead:
                        member.__set__(holder, instead[id(value)])


def _set_partial(held: Any, function: Any, arguments: tuple[Any, ...]) -> None:
    held.__setstate__((function, arguments, held.keywords, vars(held)))


def _replaced(values: tuple[Any, ...], instead: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(instead.get(id(value), value) for value in values)


def _replace_values(held: dict[Any, Any], instead: Mapping[int, Any]) -> None:
    for key, value in list(held.items()):
        if id(value) in instead:
            held[key] = instead[id(value)]


def _replace_in_class(owner: type, instead: Mapping[int, Any]) -> None:
    """Replace attributes of a class.

    Functions written in C are not bound to an instance, so their replacements must not be either.
    """
    for name, value in list(vars(owner).items()):
        function = value.__func__ if isinstance(value, staticmethod) else value
        if id(function) in instead:
            setattr(owner, name, staticmethod(instead[id(function)]))
