"""Streams, events and marks without any effect, for devices without real ones."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.cuda.nvtx


class NoOpStream:
    """A stream or an event without any effect."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> NoOpStream:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def elapsed_time(self, other: object) -> float:
        return 0.0

    def record(self, *args: Any) -> None:
        pass

    synchronize = wait = wait_event = wait_stream = record_event = record


def no_nvtx() -> None:
    """Make the marks of torch.cuda.nvtx do nothing."""
    for name in ("mark", "range_push", "range_pop", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)
    torch.cuda.nvtx.range = lambda *args, **kwargs: contextlib.nullcontext()
