"""Operations with nan or infinity as their result, on the way to a loss or to its gradients."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...protocol import NanOriginLine, NanSource, UserPlace
from .. import frames
from ..session import Session
from .loss_graphs import graph_nodes

_NODES = 20_000
# An infinity in these is the script's own: a mask.
_GIVEN = (
    "full", "full_like", "fill", "fill_", "masked_fill", "masked_fill_", "scalar_tensor", "lift_fresh",
    "_to_copy", "new_full", "index_fill", "index_fill_", "empty", "empty_like", "new_empty",
    "empty_strided", "constant_pad_nd", "triu", "tril", "set_", "copy_",
)  # fmt: skip
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')

Made = Literal["nan", "inf"]


@dataclass(frozen=True)
class _Origin:
    """The operation of the non-finite numbers of a tensor; before is that of its infinite input, if any."""

    function: str
    made: Made
    site: UserPlace | None
    module: str | None
    least: float | None
    greatest: float | None
    infinite: bool
    before: _Origin | None


class NanOrigins:
    """The origins of non-finite numbers in one session. Only a second run has it, since it is slow.

    running returns the name of the innermost running module.
    """

    def __init__(self, session: Session, running: Callable[[], str | None]) -> None:
        self._session = session
        self._running = running
        self._origins: dict[int, _Origin] = {}
        self._done = False

    def install(self) -> None:
        """Watch operations from now on."""
        torch.autograd.set_detect_anomaly(True, check_nan=False)  # keeps the places of the forward
        _OriginMode(self._operation).__enter__()

    def _operation(self, name: str, given: list[torch.Tensor], returned: list[torch.Tensor]) -> None:
        if self._done or not self._session.watches():
            return
        for each in returned:
            if not each.is_floating_point() or each.numel() == 0:
                continue
            key = each.untyped_storage()._cdata
            made = _made(each)
            if made is None:
                self._origins.pop(key, None)
                continue
            known = [
                self._origins[number]
                for number in (one.untyped_storage()._cdata for one in given)
                if number in self._origins
            ]
            same = next((one for one in known if one.made == made or one.made == "nan"), None)
            if same is None and name not in _GIVEN and self._is_new(given, made):
                same = self._origin(name, made, given, known[0] if known else None)
            if same is not None:
                self._origins[key] = same

    def _is_new(self, given: list[torch.Tensor], made: Made) -> bool:
        """Whether no input has such numbers already."""
        return all(_made(each) not in (made, "nan") for each in given if each.is_floating_point())

    def _origin(self, name: str, made: Made, given: list[torch.Tensor], before: _Origin | None) -> _Origin:
        first = next((each for each in given if each.is_floating_point() and each.numel()), None)
        least = greatest = None
        if first is not None and _made(first) is None:
            least, greatest = float(first.detach().min()), float(first.detach().max())
        infinite = any(_made(each) == "inf" for each in given if each.is_floating_point())
        site = frames.site(sys._getframe(3))
        return _Origin(name, made, site, self._running(), least, greatest, infinite, before)

    def before_backward(self, loss: Any) -> None:
        """Write the origin of a non-finite loss, or look for that of its gradients."""
        if self._done or not isinstance(loss, torch.Tensor):
            return
        origin = self._origins.get(loss.untyped_storage()._cdata)
        if origin is not None:
            self._done = True
            chain = [origin]
            while chain[-1].before is not None:
                chain.append(chain[-1].before)
            self._write("loss", [_source(each) for each in reversed(chain)])
        elif bool(torch.isfinite(loss.detach()).all()):
            for node in graph_nodes(loss.grad_fn, _NODES):
                node.register_hook(self._gradient_hook(node))

    def _gradient_hook(self, node: Any) -> Callable[[Any, Any], None]:
        def hook(grad_inputs: Any, grad_outputs: Any) -> None:
            if self._done or not _all_finite(grad_outputs) or _all_finite(grad_inputs):
                return
            self._done = True
            name = node.name().rstrip("0123456789").removesuffix("Backward").lower()
            site = _forward_place(node.metadata.get("traceback_", ()))
            made = _Origin(name, "nan", site, None, None, None, infinite=False, before=None)
            self._write("gradients", [_source(made)])

        return hook

    def _write(self, of: Literal["loss", "gradients"], sources: list[NanSource]) -> None:
        self._session.sink.write(NanOriginLine(kind="nan_origin", of=of, sources=sources))


class _OriginMode(TorchDispatchMode):  # type: ignore[misc]
    """Passes each operation to a function, with its tensors."""

    def __init__(self, seen: Callable[[str, list[torch.Tensor], list[torch.Tensor]], None]) -> None:
        super().__init__()
        self._seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        with contextlib.suppress(Exception):
            name = func._schema.name.partition("::")[2]
            self._seen(name, list(_tensors((*args, *(kwargs or {}).values()))), list(_tensors(out)))
        return out


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _made(tensor: torch.Tensor) -> Made | None:
    """The worst kind of non-finite number in a tensor, if any."""
    detached = tensor.detach()
    if bool(torch.isfinite(detached).all()):
        return None
    return "nan" if bool(torch.isnan(detached).any()) else "inf"


def _all_finite(values: Any) -> bool:
    return all(bool(torch.isfinite(each).all()) for each in values if isinstance(each, torch.Tensor))


def _source(origin: _Origin) -> NanSource:
    return NanSource(
        function=origin.function,
        made=origin.made,
        at=origin.site,
        module=origin.module,
        least=origin.least,
        greatest=origin.greatest,
        infinite=origin.infinite,
    )


def _forward_place(rows: Any) -> UserPlace | None:
    """The innermost row of the user's in the traceback of an operation's forward."""
    for text in reversed(list(rows)):
        for file, row in _FRAME.findall(text):
            if frames.is_users(file):
                return frames.whole_row(file, int(row))
    return None
