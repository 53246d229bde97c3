"""Move tensors and modules to the simulated GPU and back."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from .gpu import DEVICE, FakeGpu


def is_gpu(device: Any) -> bool:
    """Whether a device argument is a GPU: `cuda`, `cuda:0`, 0 or a torch.device."""
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    if isinstance(device, str):
        return device.split(":")[0] == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


class _ToGpu(torch.autograd.Function):  # type: ignore[misc]
    """From the CPU to the GPU."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, dtype: Any, gpu: Any) -> Any:
        ctx.gpu, ctx.dtype = gpu, tensor.dtype
        return torch.ops.aten._to_copy(tensor, device=DEVICE, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return ctx.gpu.fetched(gradient, ctx.dtype), None, None


class _ToCpu(torch.autograd.Function):  # type: ignore[misc]
    """From the GPU to the CPU."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, dtype: Any, gpu: Any) -> Any:
        ctx.dtype = tensor.dtype
        return gpu.fetched(tensor, dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return torch.ops.aten._to_copy(gradient, device=DEVICE, dtype=ctx.dtype), None, None


def install(gpu: FakeGpu) -> None:
    """Make `to`, `cuda`, `cpu`, `torch.tensor` and similar functions support the simulated GPU."""
    _tensors(gpu)
    _factories()
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.utils.swap_tensors = _swap
    from torch.optim import optimizer
    from torch.utils import _foreach_utils

    # By default, optimizers and clipping process all parameters at once on CUDA, which needs more memory.
    optimizer._foreach_supported_types.append(FakeTensor)
    _foreach_utils._foreach_supported_types.append(FakeTensor)
    cuda = nn.Module.cuda
    functools.update_wrapper(_module_cuda, cuda)
    nn.Module.cuda = _module_cuda


def _module_cuda(self: nn.Module, device: Any = None) -> nn.Module:
    return self.to(DEVICE)


def _tensors(gpu: FakeGpu) -> None:
    plain = torch.Tensor.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = [*args, kwargs.get("device"), kwargs.get("other")]
        device = next((each for each in values if isinstance(each, (torch.device, str))), None)
        if device is None and args and isinstance(args[0], int) and not isinstance(args[0], bool):
            device = args[0]
        other = next((each for each in values if isinstance(each, torch.Tensor)), None)
        if other is not None:
            device = other.device
        ours = isinstance(self, FakeTensor)
        up = device is not None and is_gpu(device)
        if device is None or (ours and torch.device(device).type == "meta") or not (up or ours):
            return plain(self, *args, **kwargs)
        dtype = next((each for each in (*args, kwargs.get("dtype")) if isinstance(each, torch.dtype)), None)
        dtype = other.dtype if other is not None else dtype
        if ours and up:
            copy = kwargs.get("copy", False)
            format = kwargs.get("memory_format", torch.preserve_format)
            return plain(self, dtype=dtype or self.dtype, copy=copy, memory_format=format)
        if up:
            return _moved(_ToGpu, self, dtype, gpu)
        return _moved(_ToCpu, self, dtype, gpu)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        return to(self, DEVICE)

    def cpu(self: Any, **kwargs: Any) -> Any:
        return to(self, "cpu")

    def numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, FakeTensor):
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return plain_numpy(self, *args, **kwargs)

    def new_tensor(self: Any, data: Any, **kwargs: Any) -> Any:
        if isinstance(self, FakeTensor):
            return torch.tensor(data, **{"dtype": self.dtype, "device": DEVICE, **kwargs})
        return plain_new(self, data, **kwargs)

    def __format__(self: Any, how: str) -> str:
        if isinstance(self, FakeTensor):
            return format(self.item(), how) if self.dim() == 0 else repr(self)
        text: str = plain_format(self, how)
        return text

    torch.Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
    torch.Tensor.is_cpu = property(lambda self: self.device.type == "cpu")
    torch.Tensor.get_device = lambda self: 0 if isinstance(self, FakeTensor) else -1
    plain_format = torch.Tensor.__format__
    torch.Tensor.__format__ = __format__
    plain_numpy, plain_new = torch.Tensor.numpy, torch.Tensor.new_tensor
    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = to, cuda, cpu
    torch.Tensor.numpy, torch.Tensor.new_tensor = numpy, new_tensor
    torch.Tensor.pin_memory = lambda self, device=None: self
    torch.Tensor.is_pinned = lambda self, device=None: False
    torch.Tensor.record_stream = lambda self, stream: None


def _moved(function: Any, tensor: Any, dtype: Any, gpu: FakeGpu) -> Any:
    if tensor.requires_grad and torch.is_grad_enabled():
        return function.apply(tensor, dtype, gpu)
    with torch.no_grad():
        return function.forward(_Context(), tensor, dtype, gpu)


class _Context:
    """The context of a Function's forward without a backward."""

    gpu: Any = None
    dtype: Any = None


def _factories() -> None:
    for name in ("tensor", "as_tensor", "asarray"):
        plain = getattr(torch, name)

        def factory(data: Any, *args: Any, plain: Any = plain, **kwargs: Any) -> Any:
            device = kwargs.get("device")
            if device is None:
                device = _default_device()
            if isinstance(data, FakeTensor):
                moved = data.to(kwargs.get("device") or DEVICE)
                return moved if kwargs.get("dtype") is None else moved.to(kwargs["dtype"])
            if not is_gpu(device):
                return plain(data, *args, **kwargs)
            wanted = kwargs.pop("requires_grad", False)
            made = plain(data, *args, **{**kwargs, "device": "cpu"}).to(DEVICE)
            return made.requires_grad_() if wanted else made

        setattr(torch, name, functools.wraps(plain)(factory))


def _default_device() -> Any:
    """The device set by `torch.device` as a context, or by torch.set_default_device.

    torch.get_default_device would create a tensor to find out.
    """
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return "cpu"


def _swap(left: Any, right: Any) -> None:
    """torch.utils.swap_tensors for tensors with weak references to them."""
    left.__class__, right.__class__ = right.__class__, left.__class__
    own, others = dict(left.__dict__), dict(right.__dict__)
    for tensor, attributes in ((left, others), (right, own)):
        tensor.__dict__.clear()
        tensor.__dict__.update(attributes)
    torch._C._swap_tensor_impl(left, right)
