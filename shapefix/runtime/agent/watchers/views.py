"""Views legal only for a dimension of size 1."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from ...protocol import Batch1ViewLine
from .. import frames
from ..describe import describe
from ..module_calls import ModuleCalls
from ..session import Session

_PLACES, _GROWN, _KNOWN = 64, 2, 1000
_view = torch.Tensor.view


class ViewWatcher:
    """Records views of the user's with an illegal result for a larger batch."""

    def __init__(self, session: Session, modules: ModuleCalls) -> None:
        self._session = session
        self._modules = modules
        self._seen: set[Any] = set()
        self._contiguous: dict[int, weakref.ref[Any]] = {}

    def install(self) -> None:
        """Watch `Tensor.view` and `Tensor.contiguous` from now on."""
        original, watcher, session = torch.Tensor.view, self, self._session
        make_contiguous = torch.Tensor.contiguous

        def contiguous(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = make_contiguous(self, *args, **kwargs)
            # A tensor with a larger dimension would have been copied.
            if out is self and 1 in self.shape and session.watches():
                if len(watcher._contiguous) >= _KNOWN:
                    watcher._contiguous.clear()
                watcher._contiguous[id(self)] = weakref.ref(self)
            return out

        def view(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(self, *args, **kwargs)
            # A sample of a dataset has no dimension for the batch.
            if 1 in self.shape and self.dim() > 1 and session.watches() and not session.loading:
                caller = sys._getframe(1)
                if frames.is_users(caller.f_code.co_filename):
                    watcher._check(self, args, caller)
            return out

        torch.Tensor.view = view
        torch.Tensor.contiguous = contiguous

    def _check(self, tensor: Any, args: Any, caller: Any) -> None:
        requested = _requested_sizes(args)
        if requested is None or tensor.layout is not torch.strided or len(self._seen) >= _PLACES:
            return
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        key = (caller.f_code, caller.f_lasti, size, stride, requested)
        if key in self._seen or self._is_made_contiguous(tensor) or self._is_own(tensor):
            return
        self._seen.add(key)
        for dimension in legal_only_at_one(size, stride, requested):
            self._session.sink.write(
                Batch1ViewLine(
                    kind="batch1_view",
                    value=describe(tensor),
                    requested=list(requested),
                    dimension=dimension,
                    outermost=_outermost(dimension, stride),
                    called_at=frames.site(caller),
                )
            )

    def _is_made_contiguous(self, tensor: Any) -> bool:
        known = self._contiguous.get(id(tensor))
        return known is not None and known() is tensor

    def _is_own(self, tensor: Any) -> bool:
        """Whether a tensor is a parameter or buffer, with sizes independent of the batch."""
        storage = tensor.untyped_storage()._cdata
        return any(
            each.untyped_storage()._cdata == storage
            for root in (*self._modules.roots, *self._modules.active()[:1])
            for each in (*root.parameters(), *root.buffers())
            if each.layout is torch.strided
        )


def _requested_sizes(args: Any) -> tuple[int, ...] | None:
    """The requested sizes of a view; None for a view as another dtype."""
    wanted = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple(wanted) if wanted and all(isinstance(each, int) for each in wanted) else None


def legal_only_at_one(
    size: tuple[int, ...], stride: tuple[int, ...], wanted: tuple[int, ...]
) -> Iterator[int]:
    """The dimensions of size 1 in a legal view; a larger size would make it illegal.

    A larger tensor has the same layout: the strides of the dimensions around the larger one grow. The view
    must be illegal for each of the wanted sizes that could grow instead.
    """
    if not all(stride):
        return
    for dimension, own in enumerate(size):
        # A dimension of 1 within gaps is a slice, and may always have the size 1.
        if own != 1 or (_has_gaps(size, stride) and not _outermost(dimension, stride)):
            continue
        grown = [_GROWN if number == dimension else each for number, each in enumerate(size)]
        moved = [
            each * _GROWN if _around(number, dimension, size, stride) else each
            for number, each in enumerate(stride)
        ]
        if not any(_legal(grown, moved, each) for each in grown_sizes(size, wanted)):
            yield dimension


def _outermost(dimension: int, stride: tuple[int, ...]) -> bool:
    """Whether a dimension is the outermost one in memory."""
    return stride[dimension] == max(stride) and stride.count(stride[dimension]) == 1


def _around(number: int, dimension: int, size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a dimension is outside another one of size 1 in memory."""
    if number == dimension or stride[number] != stride[dimension]:
        return stride[number] > stride[dimension]
    return size[number] > 1 or number < dimension


def _has_gaps(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    reach = 1 + sum((own - 1) * step for own, step in zip(size, stride, strict=True))
    return reach > math.prod(size)


def grown_sizes(size: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[list[int]]:
    """Possible requested sizes for a view of the larger tensor: each has one grown size."""
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
