"""Run a script for a GPU on the CPU: values moved to `cuda` stay there.

torch.cuda.is_available() remains false; a script that asks takes its own way.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .gpu_streams import NoOpStream, no_nvtx

NAME = "the CPU in place of a GPU"
_CPU = torch.device("cpu")
_TYPES = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip


def install(devices: int) -> None:
    """Keep on the CPU all values moved to one of the expected GPUs."""
    _types()
    _tensors()
    _cuda(devices)
    _libraries()
    _CpuForGpu().__enter__()


def on_cpu(value: Any) -> Any:
    """A device of the CPU for one of a GPU, by name or object; any other value as it is."""
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, str) and value.startswith("torch.cuda."):
        return f"torch.{value.removeprefix('torch.cuda.')}"
    return value


class _CpuForGpu(TorchFunctionMode):  # type: ignore[misc]
    """Replaces the GPU in the argument `device` of each function of torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if kwargs and "device" in kwargs:
            kwargs = {**kwargs, "device": on_cpu(kwargs["device"])}
        return func(*args, **(kwargs or {}))


def _moving(original: Callable[..., Any]) -> Callable[..., Any]:
    """A method for moves to a device or a type, given by its place or its name; a number is a GPU."""

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = [
            _CPU if number == 0 and type(each) is int else on_cpu(each) for number, each in enumerate(args)
        ]
        if type(kwargs.get("device")) is int:
            kwargs["device"] = _CPU
        return original(self, *given, **{name: on_cpu(each) for name, each in kwargs.items()})

    return method


def _tensors() -> None:
    """Move nothing to a GPU; the parser of arguments in C++ would look for one."""
    tensor = torch.Tensor
    tensor.to, tensor.type = _moving(tensor.to), _moving(tensor.type)
    tensor.cuda = lambda self, *args, **kwargs: self
    tensor.pin_memory = lambda self, *args, **kwargs: self
    tensor.record_stream = lambda self, stream: None
    torch.nn.Module.to = _moving(torch.nn.Module.to)
    torch.nn.Module.cuda = lambda self, device=None: self


def _types() -> None:
    for name in _TYPES:
        setattr(torch.cuda, name, getattr(torch, name))


def _cuda(devices: int) -> None:
    """Give the functions of torch.cuda a result, and no effect."""
    properties = SimpleNamespace(
        name=NAME, major=8, minor=0, total_memory=0, multi_processor_count=1, warp_size=32, gcnArchName=""
    )
    results: dict[str, Any] = {
        "current_device": 0, "device_count": devices, "get_device_name": NAME, "get_arch_list": [],
        "get_device_capability": (8, 0), "get_device_properties": properties, "mem_get_info": (0, 0),
        "memory_summary": "",
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        **dict.fromkeys(("set_device", "synchronize", "init", "set_per_process_memory_fraction")),
    }  # fmt: skip
    for name, result in results.items():
        setattr(torch.cuda, name, lambda *args, result=result, **kwargs: result)
    torch.cuda.device = lambda device=None: contextlib.nullcontext()
    torch.cuda.stream = lambda stream=None: contextlib.nullcontext()
    torch.cuda.current_stream = torch.cuda.default_stream = lambda device=None: NoOpStream()
    torch.cuda.Stream = torch.cuda.Event = NoOpStream
    no_nvtx()


def _libraries() -> None:
    """Replace the GPU outside of torch functions with tensors."""
    torch.load = _on_cpu_by_default(torch.load)
    torch.Generator = _generator(torch.Generator)
    torch.set_default_device = _replaced(torch.set_default_device, "device", 0)
    torch.set_default_tensor_type = _replaced(torch.set_default_tensor_type, "t", 0)
    replicas = torch.nn.parallel.DistributedDataParallel
    original = replicas.__init__

    @functools.wraps(original)
    def __init__(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *more: Any,
                 **named: Any) -> None:  # fmt: skip
        original(self, module, None, None, *more, **named)

    replicas.__init__ = __init__
    if torch.distributed.is_available():
        from torch.distributed import device_mesh

        mesh = _replaced(device_mesh.init_device_mesh, "device_type", 0)
        torch.distributed.init_device_mesh = device_mesh.init_device_mesh = mesh
        original_barrier = torch.distributed.barrier

        @functools.wraps(original_barrier)
        def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
            return original_barrier(group, async_op)

        torch.distributed.barrier = barrier


def _replaced(original: Callable[..., Any], name: str, position: int) -> Callable[..., Any]:
    """A function with the CPU in place of a GPU in one of its arguments."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = [on_cpu(each) if number == position else each for number, each in enumerate(args)]
        if name in kwargs:
            kwargs[name] = on_cpu(kwargs[name])
        return original(*given, **kwargs)

    return function


def _on_cpu_by_default(load: Callable[..., Any]) -> Callable[..., Any]:
    """torch.load to the CPU, unless the script names another device."""

    @functools.wraps(load)
    def function(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        names = map_location is None or isinstance(map_location, dict)
        return load(f, "cpu" if names else on_cpu(map_location), *args, **kwargs)

    return function


def _generator(original: Any) -> Any:
    """torch.Generator, always on the CPU."""

    class GeneratorType(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, original)

    class Generator(metaclass=GeneratorType):
        """A generator of random numbers on the CPU."""

        def __new__(cls, device: Any = None) -> Any:
            return original()

    return Generator
