"""The collective calls of one of several ranks, and the place of its wait.

Each rank writes its own lines; shapefix.runtime.ranks compares them.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TypedDict

import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

from ..protocol import CollectiveDoneLine, CollectiveLine, CollectiveWaitLine, DescribedValue
from . import frames
from .describe import describe
from .distributed import FinishedProcesses, write_request
from .session import Session

NAMES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object",
    "monitored_barrier", "new_group", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "scatter",
    "scatter_object_list",
)  # fmt: skip
# The argument whose sizes must be equal on all ranks; what is scattered may differ.
_AGREED = ("tensor", "input_tensor", "output")
_UNEQUAL_SIZES = ("all_to_all", "all_to_all_single")
_AT_MOST, _PATIENCE = 2000, 3.0


class CollectiveArguments(TypedDict):
    """The arguments of a collective required to agree on all ranks."""

    tensor: DescribedValue | None
    root: int | None
    group: list[int] | None


_NO_ARGUMENTS = CollectiveArguments(tensor=None, root=None, group=None)


class Collectives:
    """The collective calls of one rank, in their order.

    files is the path of the lines of all ranks, without the dot and the rank at its end.
    """

    def __init__(self, session: Session, files: str, rank: int, size: int) -> None:
        self._session = session
        self._others = [f"{files}.{each}" for each in range(size) if each != rank]
        self._running = False
        self._number = 0
        self._called: dict[str, list[str]] = {}
        self._open: tuple[str, float] | None = None
        self._works: dict[int, tuple[int, str]] = {}
        self._looked = 0.0

    def call(
        self,
        original: Callable[[], Any],
        name: str,
        caller: Any,
        arguments: Callable[[], CollectiveArguments] = lambda: _NO_ARGUMENTS,
    ) -> Any:
        """Call original, and write a line before and after it.

        The call waits for the other ranks.
        """
        session = self._session
        if self._running or not session.watches() or self._number >= _AT_MOST:
            return original()
        session.raise_if_stopped()
        self._number += 1
        session.collectives += 1
        number, known = self._number, arguments()
        line = CollectiveLine(
            kind="collective",
            number=number,
            called_at=frames.site(caller),
            name=name,
            tensor=known["tensor"],
            root=known["root"],
            group=known["group"],
        )
        # Written before the call: it may never return, or end the process.
        session.sink.write(line)
        group = str(known["group"])
        self._called.setdefault(group, []).append(_agreement(line))
        self._open = group, time.monotonic()
        self._running = True
        try:
            out = original()
        finally:
            self._running = False
            self._open = None
        session.sink.write(CollectiveDoneLine(kind="collective_done", number=number))
        if isinstance(out, torch.distributed.Work):
            self._works[id(out)] = number, group
        return out

    def wait(self, work: Any, original: Callable[[], Any]) -> Any:
        """Call original, a wait for an asynchronous collective, between two lines."""
        number, group = self._works.pop(id(work), (0, ""))
        session = self._session
        if not number or self._running or not session.watches():
            return original()
        session.sink.write(CollectiveWaitLine(kind="collective_wait", number=number, over=False))
        self._open = group, time.monotonic()
        try:
            out = original()
        finally:
            self._open = None
        session.sink.write(CollectiveWaitLine(kind="collective_wait", number=number, over=True))
        return out

    def is_deadlocked(self) -> bool:
        """Whether this rank has waited for seconds while another rank calls a different collective."""
        waits, now = self._open, time.monotonic()
        if waits is None or now - max(waits[1], self._looked) < _PATIENCE:
            return False
        self._looked = now
        group = waits[0]
        own = self._called[group]
        theirs = [_calls(path, group) for path in self._others]
        return any(one != other for each in theirs for one, other in zip(own, each, strict=False))


def _agreement(call: CollectiveLine) -> str:
    """The parts of a collective required to agree on all ranks."""
    tensor: DescribedValue = call["tensor"] or {}
    return repr((call["name"], tensor.get("size"), tensor.get("dtype"), call["root"]))


def _calls(path: str, group: str) -> list[str]:
    """The collectives of a group written by another rank so far."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            lines = [json.loads(line) for line in file if '"collective"' in line]
    except (OSError, ValueError):
        return []
    known = [line for line in lines if line["kind"] == "collective" and str(line["group"]) == group]
    return [_agreement(line) for line in known]


def install(session: Session, files: str) -> None:
    """Join torchrun's process group, with gloo even if the script requests another backend.

    files is the path of the lines of all ranks, without the dot and the rank at its end.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rendezvous = {name: os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")}
    collectives = Collectives(session, files, rank, size)
    session.is_deadlocked = collectives.is_deadlocked

    def start(
        fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, *more: Any, **named: Any
    ) -> Any:
        write_request(session, nprocs, sys._getframe(1))
        fn(rank, *args)
        return FinishedProcesses()

    torch.multiprocessing.spawn = start
    torch.multiprocessing.start_processes = start
    original = torch.distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(*args: Any, **named: Any) -> None:
        os.environ.update(rendezvous)  # a script may set a port of its own
        kept = {name: named[name] for name in ("timeout", "group_name") if named.get(name) is not None}

        def begin() -> None:
            original("gloo", init_method="env://", rank=rank, world_size=size, **kept)

        collectives.call(begin, "init_process_group", sys._getframe(1))

    torch.distributed.init_process_group = init_process_group
    for name in NAMES:
        if hasattr(torch.distributed, name):
            setattr(torch.distributed, name, _watched(getattr(torch.distributed, name), name, collectives))
    _replicas(collectives)
    _works(collectives)
    _sharded_on_cpu()


def _works(collectives: Collectives) -> None:
    """Watch the waits for asynchronous collectives."""
    original = torch.distributed.Work.wait

    @functools.wraps(original)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        return collectives.wait(self, lambda: original(self, *args, **kwargs))

    torch.distributed.Work.wait = wait


def _sharded_on_cpu() -> None:
    """Let FullyShardedDataParallel run without a GPU; it looks for one unless it gets a device."""
    try:
        from torch.distributed.fsdp import FullyShardedDataParallel
    except ImportError:
        return
    original = FullyShardedDataParallel.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.cuda.is_available():
            given = signature.bind(self, *args, **kwargs).arguments
            given.pop("self")
            given["device_id"] = torch.device("cpu")
            args, kwargs = (), given
        original(self, *args, **kwargs)

    FullyShardedDataParallel.__init__ = __init__


def _watched(original: Callable[..., Any], name: str, collectives: Collectives) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        def arguments() -> CollectiveArguments:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return _NO_ARGUMENTS
            tensor = (
                None
                if name in _UNEQUAL_SIZES
                else next((given[key] for key in _AGREED if key in given), None)
            )
            root = next((given[key] for key in ("src", "dst") if isinstance(given.get(key), int)), None)
            group = given.get("group") if name != "new_group" else None
            ranks = torch.distributed.get_process_group_ranks(group) if group is not None else None
            described = describe(tensor) if isinstance(tensor, torch.Tensor) else None
            return CollectiveArguments(tensor=described, root=root, group=ranks)

        return collectives.call(lambda: original(*args, **kwargs), name, sys._getframe(1), arguments)

    return collective


def _replicas(collectives: Collectives) -> None:
    """Watch DistributedDataParallel: its constructor and its backward synchronize the ranks."""
    original_init, original_forward = DistributedDataParallel.__init__, DistributedDataParallel.forward
    waiting: list[str] = []

    @functools.wraps(original_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        call = functools.partial(original_init, self, *args, **kwargs)
        collectives.call(call, "DistributedDataParallel", sys._getframe(1))

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
        return collectives.call(call, "backward", sys._getframe(1))

    DistributedDataParallel.__init__ = __init__
    DistributedDataParallel.forward = forward
    torch.autograd.backward = backward
