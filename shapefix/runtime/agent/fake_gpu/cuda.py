"""`torch.cuda` of the simulated GPU: available, never busy, and with the requested memory."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
import torch.utils._pytree

from ..gpu_streams import NoOpStream, no_nvtx
from . import tensor_types
from .storages import Storages

NAME = "no GPU (sizes only)"
_CAPABILITY = (8, 0)


def install(storages: Storages, memory: int) -> None:
    """Make torch.cuda report one GPU with this many bytes of memory."""
    allocator = storages.allocator
    properties = SimpleNamespace(
        name=NAME, major=_CAPABILITY[0], minor=_CAPABILITY[1], total_memory=memory, multi_processor_count=108,
        warp_size=32, regs_per_multiprocessor=65536, gcnArchName="", max_threads_per_multi_processor=2048,
    )  # fmt: skip
    state = torch.get_rng_state

    def no_op(*args: Any, **kwargs: Any) -> None:
        return None

    def stats(*args: Any, **kwargs: Any) -> dict[str, int]:
        return {
            "allocated_bytes.all.current": allocator.allocated,
            "allocated_bytes.all.peak": allocator.peak_allocated,
            "reserved_bytes.all.current": allocator.reserved,
            "reserved_bytes.all.peak": allocator.peak_reserved,
        }

    constants: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_name": NAME, "get_device_properties": properties, "get_device_capability": _CAPABILITY,
        "is_bf16_supported": True, "_is_in_bad_fork": False, "is_current_stream_capturing": False,
        "get_arch_list": ["sm_80"],
    }  # fmt: skip
    functions: dict[str, Any] = {
        "memory_allocated": lambda device=None: allocator.allocated,
        "max_memory_allocated": lambda device=None: allocator.peak_allocated,
        "memory_reserved": lambda device=None: allocator.reserved,
        "max_memory_reserved": lambda device=None: allocator.peak_reserved,
        "mem_get_info": lambda device=None: (max(memory - allocator.reserved, 0), memory),
        "memory_stats": stats,
        "empty_cache": allocator.release_cached,
        "reset_peak_memory_stats": lambda device=None: allocator.reset_peaks(),
        "memory_summary": lambda *args, **kwargs: "",
        "get_rng_state": lambda device=None: state(),
        "get_rng_state_all": lambda: [state()],
        "device": lambda device=None: contextlib.nullcontext(),
        "stream": lambda stream=None: contextlib.nullcontext(),
        "current_stream": lambda device=None: NoOpStream(),
        "default_stream": lambda device=None: NoOpStream(),
    }
    for name, constant in constants.items():
        setattr(torch.cuda, name, lambda *args, constant=constant, **kwargs: constant)
    for name, function in functions.items():
        setattr(torch.cuda, name, function)
    for name in (
        "_lazy_init", "init", "synchronize", "set_device", "manual_seed", "manual_seed_all",
        "seed", "seed_all", "set_rng_state", "set_rng_state_all", "ipc_collect",
        "reset_max_memory_allocated", "reset_max_memory_cached", "set_per_process_memory_fraction",
        "reset_accumulated_memory_stats",
    ):  # fmt: skip
        setattr(torch.cuda, name, no_op)
    torch.cuda.Stream = torch.cuda.Event = NoOpStream
    no_nvtx()
    _accelerator(functions, no_op)
    torch.nn.parallel.DataParallel.forward = _replica
    tensor_types.install()
    # The fast paths of these layers are C++ that reads real memory.
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.cudnn.enabled = False


def _accelerator(functions: dict[str, Any], no_op: Any) -> None:
    """Make torch.accelerator report the GPU of torch.cuda, as far as this version of torch has it."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    constants = {
        "is_available": True, "device_count": 1, "current_accelerator": torch.device("cuda"),
        "current_device_index": 0, "current_device_idx": 0,
    }  # fmt: skip
    for name, constant in constants.items():
        setattr(accelerator, name, lambda *args, constant=constant, **kwargs: constant)
    for name in ("set_device_index", "set_device_idx", "set_stream", "synchronize"):
        setattr(accelerator, name, no_op)
    accelerator.device_index = lambda device=None: contextlib.nullcontext()
    accelerator.get_memory_info = functions["mem_get_info"]
    for name in ("empty_cache", "reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        setattr(accelerator, name, functions.get(name, no_op))
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
                 "memory_stats", "current_stream"):  # fmt: skip
        setattr(accelerator, name, functions[name])


def _replica(self: Any, *inputs: Any, **kwargs: Any) -> Any:
    """The forward of DataParallel with one GPU: it moves the tensors there, and calls the module."""
    given, named = torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cuda, (inputs, kwargs))
    return self.module(*given, **named)
