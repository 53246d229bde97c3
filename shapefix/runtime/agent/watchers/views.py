"""Views that are legal for no other reason than that a dimension has the size 1."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .. import describe, frames
from ..module_calls import Calls
from ..session import Session

_PLACES, _GROWN = 64, 2
_view = torch.Tensor.view


class Views:
    """Watches the views of one session."""

    def __init__(self, session: Session, calls: Calls) -> None:
        self._session = session
        self._calls = calls
        self._told: set[Any] = set()

    def install(self) -> None:
        """Watch `Tensor.view` from now on."""
        original, views, session = torch.Tensor.view, self, self._session

        def view(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(self, *args, **kwargs)
            if 1 in self.shape and self.dim() > 1 and session.watches():
                caller = sys._getframe(1)
                if frames.is_users(caller.f_code.co_filename):
                    views._look(self, args, caller)
            return out

        torch.Tensor.view = view

    def _look(self, tensor: Any, args: Any, caller: Any) -> None:
        wanted = _sizes(args)
        if wanted is None or tensor.layout is not torch.strided or len(self._told) >= _PLACES:
            return
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        key = (caller.f_code, caller.f_lasti, size, stride, wanted)
        if key in self._told or self._is_own(tensor):
            return
        self._told.add(key)
        for dimension in lucky(size, stride, wanted):
            self._session.observations.write(
                "lucky view",
                value=describe.describe(tensor),
                wanted=wanted,
                dimension=dimension,
                outermost=_outermost(dimension, stride),
                called=frames.site(caller),
            )

    def _is_own(self, tensor: Any) -> bool:
        """Whether a tensor is a part of what a module holds, whose sizes no batch changes."""
        storage = tensor.untyped_storage()._cdata
        return any(
            each.untyped_storage()._cdata == storage
            for root in (*self._calls.roots, *self._calls.active()[:1])
            for each in (*root.parameters(), *root.buffers())
            if each.layout is torch.strided
        )


def _sizes(args: Any) -> tuple[int, ...] | None:
    """The sizes that a view is asked for; None where it is asked for another dtype."""
    wanted = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple(wanted) if wanted and all(isinstance(each, int) for each in wanted) else None


def lucky(size: tuple[int, ...], stride: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[int]:
    """The dimensions of size 1 of a legal view that would be refused if they were larger.

    A larger tensor is laid out as this one is: what is around the dimension moves apart. Wherever among the
    wanted sizes the growth goes, the view has to be illegal.
    """
    if not all(stride):
        return
    for dimension, own in enumerate(size):
        # A dimension of 1 within gaps is a slice, and may be meant to be no more.
        if own != 1 or (_has_gaps(size, stride) and not _outermost(dimension, stride)):
            continue
        grown = [_GROWN if number == dimension else each for number, each in enumerate(size)]
        moved = [
            each * _GROWN if _around(number, dimension, size, stride) else each
            for number, each in enumerate(stride)
        ]
        if not any(_legal(grown, moved, each) for each in growing(size, wanted)):
            yield dimension


def _outermost(dimension: int, stride: tuple[int, ...]) -> bool:
    """Whether all other dimensions lie within this one."""
    return stride[dimension] == max(stride) and stride.count(stride[dimension]) == 1


def _around(number: int, dimension: int, size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a dimension is laid out around another one, which has the size 1."""
    if number == dimension or stride[number] != stride[dimension]:
        return stride[number] > stride[dimension]
    return size[number] > 1 or number < dimension


def _has_gaps(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    reach = 1 + sum((own - 1) * step for own, step in zip(size, stride, strict=True))
    return reach > math.prod(size)


def growing(size: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[int]]:
    """The sizes that may be wanted of a larger tensor: any one of them has grown."""
    known = math.prod(each for each in wanted if each != -1)
    sizes = [math.prod(size) // known if each == -1 and known else each for each in wanted]
    for number, each in enumerate(sizes):
        yield [*sizes[:number], each * _GROWN, *sizes[number + 1 :]]


def _legal(size: list[int], stride: list[int], wanted: list[int]) -> bool:
    try:
        _view(torch.empty_strided(size, stride, device="meta"), wanted)
    except RuntimeError:
        return False
    return True
