"""Replaces functions wherever something holds them: modules, classes, instances, tables, default arguments.

numpy keeps the `open` of the day that it was imported, and tarfile does; what is replaced in `builtins` alone
never reaches them.
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
    """Have all hold the second of each pair that hold the first, but for the modules of a package.

    Python's own import keeps what it has: it asks for thousands of files.
    """
    instead = {id(old): new for old, new in pairs}
    spared = set()
    for name, module in list(sys.modules.items()):
        if name in _IMPORT or f"{name}.".startswith(f"{package}."):
            spared.add(id(vars(module)))
    for _, new in pairs:
        # The functions that stand in for others are the only ones that still need these.
        spared.add(id(new.__dict__))
        spared.update(map(id, new.__closure__ or ()))
    holders = [each for each in gc.get_referrers(*(old for old, _ in pairs)) if id(each) not in spared]
    for holder in holders:
        _replace_in(holder, instead)
    # One search for the owners of all that cannot be changed itself: it passes over each object there is.
    fixed = {id(each): each for each in holders if isinstance(each, (tuple, staticmethod)) or _of_class(each)}
    for owner in gc.get_referrers(*fixed.values()) if fixed else ():
        if isinstance(owner, FunctionType) and id(owner.__defaults__) in fixed:
            owner.__defaults__ = _replaced(owner.__defaults__ or (), instead)
        elif isinstance(owner, functools.partial) and id(owner.args) in fixed:
            _set_partial(owner, owner.func, _replaced(owner.args, instead))
        elif isinstance(owner, type):
            _replace_in_class(owner, instead)


def _of_class(holder: Any) -> bool:
    """Whether this may be the dictionary of a class, which is changed through the class only."""
    return isinstance(holder, dict) and "__module__" in holder and "__doc__" in holder


def _replace_in(holder: Any, instead: Mapping[int, Any]) -> None:
    if isinstance(holder, dict):
        if not _of_class(holder):
            _replace_values(holder, instead)
    elif isinstance(holder, list):
        for n, value in enumerate(holder):
            holder[n] = instead.get(id(value), value)
    elif isinstance(holder, set):
        # As `os.supports_dir_fd`: what the old one can, the new one can.
        holder.update([instead[id(value)] for value in holder if id(value) in instead])
    elif isinstance(holder, CellType):
        holder.cell_contents = instead[id(holder.cell_contents)]
    elif isinstance(holder, functools.partial):
        _set_partial(holder, instead.get(id(holder.func), holder.func), holder.args)
    elif not isinstance(holder, (tuple, type, staticmethod)):
        _replace_attributes(holder, instead)


def _replace_attributes(holder: Any, instead: Mapping[int, Any]) -> None:
    """Replace those of an instance: in slots, or not yet put into a dictionary by Python."""
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

    A function that is written in C is not bound to an instance, so its replacement must not be, either.
    """
    for name, value in list(vars(owner).items()):
        function = value.__func__ if isinstance(value, staticmethod) else value
        if id(function) in instead:
            setattr(owner, name, staticmethod(instead[id(function)]))
