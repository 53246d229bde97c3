"""One of several processes that torchrun has started: which collectives it calls, and where it waits.

Each rank writes its own observations; what differs between them is told by who reads all.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

from . import frames
from .describe import describe
from .distributed import Joined
from .session import Session

NAMES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object",
    "monitored_barrier", "new_group", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list",
)  # fmt: skip
# The one whose sizes all ranks must agree on; what is scattered or sent to all may differ.
_AGREED = ("tensor", "input_tensor", "output")
_FREE = ("all_to_all", "all_to_all_single")
_AT_MOST, _PATIENCE = 2000, 3.0


class Collectives:
    """The collectives that one rank calls, in their order.

    files is the path of the observations of all ranks, but for a dot and the rank.
    """

    def __init__(self, session: Session, files: str, rank: int, size: int) -> None:
        self._session = session
        self._others = [f"{files}.{each}" for each in range(size) if each != rank]
        self._running = False
        self._told = 0
        self._called: dict[str, list[str]] = {}
        self._open: tuple[str, float] | None = None
        self._looked = 0.0

    def around(
        self, original: Callable[[], Any], name: str, caller: Any, told: Callable[[], dict[str, Any]]
    ) -> Any:
        """Call original, which waits for the other ranks, and write that it is called and has returned."""
        session = self._session
        if self._running or not session.watches() or self._told >= _AT_MOST:
            return original()
        session.go_on()
        self._told += 1
        session.collectives += 1
        number = self._told
        known = {"name": name, **told()}
        # Written before the call: it may never return, or end the process.
        session.observations.write("collective", number=number, called=frames.site(caller), **known)
        group = str(known.get("group"))
        self._called.setdefault(group, []).append(_agreement(known))
        self._open = group, time.monotonic()
        self._running = True
        try:
            out = original()
        finally:
            self._running = False
            self._open = None
        session.observations.write("met", number=number)
        return out

    def parted(self) -> bool:
        """Whether this rank waits, not only now, at a collective where another rank calls another."""
        waits, now = self._open, time.monotonic()
        if waits is None or now - max(waits[1], self._looked) < _PATIENCE:
            return False
        self._looked = now
        group = waits[0]
        own = self._called[group]
        theirs = [_calls(path, group) for path in self._others]
        return any(len(each) >= len(own) and each[len(own) - 1] != own[-1] for each in theirs)


def _agreement(call: dict[str, Any]) -> str:
    """What the ranks must agree on, of a collective."""
    given = call.get("given") or {}
    return repr((call["name"], given.get("size"), given.get("dtype"), call.get("root")))


def _calls(path: str, group: str) -> list[str]:
    """The collectives of a group that another rank has called, as far as it has written them."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            lines = [json.loads(line) for line in file if '"collective"' in line]
    except (OSError, ValueError):
        return []
    known = [line for line in lines if line["kind"] == "collective" and str(line.get("group")) == group]
    return [_agreement(line) for line in known]


def install(session: Session, files: str) -> None:
    """Take part in the group of processes that torchrun has started, with gloo, whatever the script says.

    files is the path of the observations of all ranks, but for a dot and the rank.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rendezvous = {name: os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")}
    collectives = Collectives(session, files, rank, size)
    session.stuck = collectives.parted

    def start(
        fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, *more: Any, **named: Any
    ) -> Any:
        session.observations.write("processes", asked=nprocs, called=frames.site(sys._getframe(1)))
        fn(rank, *args)
        return Joined()

    torch.multiprocessing.spawn = start
    torch.multiprocessing.start_processes = start
    original = torch.distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(*args: Any, **named: Any) -> None:
        os.environ.update(rendezvous)  # a script may set a port of its own
        kept = {name: named[name] for name in ("timeout", "group_name") if named.get(name) is not None}

        def begin() -> None:
            original("gloo", init_method="env://", rank=rank, world_size=size, **kept)

        collectives.around(begin, "init_process_group", sys._getframe(1), dict)

    torch.distributed.init_process_group = init_process_group
    for name in NAMES:
        if hasattr(torch.distributed, name):
            setattr(torch.distributed, name, _watched(getattr(torch.distributed, name), name, collectives))
    _replicas(collectives)


def _watched(original: Callable[..., Any], name: str, collectives: Collectives) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        def told() -> dict[str, Any]:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return {}
            tensor = None if name in _FREE else next((given[key] for key in _AGREED if key in given), None)
            root = next((given[key] for key in ("src", "dst") if isinstance(given.get(key), int)), None)
            group = given.get("group") if name != "new_group" else None
            return {
                "given": describe(tensor) if isinstance(tensor, torch.Tensor) else None,
                "root": root,
                "group": torch.distributed.get_process_group_ranks(group) if group is not None else None,
            }

        return collectives.around(lambda: original(*args, **kwargs), name, sys._getframe(1), told)

    return collective


def _replicas(collectives: Collectives) -> None:
    """DistributedDataParallel: its ranks meet when it is made, and in the backward of what it returned."""
    original_init, original_forward = DistributedDataParallel.__init__, DistributedDataParallel.forward
    waiting: list[str] = []

    @functools.wraps(original_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # Up to the user's own class and beyond it: who has asked for the copy.
        call = functools.partial(original_init, self, *args, **kwargs)
        collectives.around(call, "DistributedDataParallel", sys._getframe(1), dict)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = original_forward(self, *args, **kwargs)
        if torch.is_grad_enabled() and self.require_backward_grad_sync:
            waiting.append("backward")
        return out

    original_backward = torch.autograd.backward

    @functools.wraps(original_backward)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if not waiting:
            return original_backward(*args, **kwargs)
        waiting.clear()
        call = functools.partial(original_backward, *args, **kwargs)
        return collectives.around(call, "backward", sys._getframe(1), dict)

    DistributedDataParallel.__init__ = __init__
    DistributedDataParallel.forward = forward
    torch.autograd.backward = backward
