"""The types `torch.cuda.FloatTensor` and its kin, for the simulated GPU."""

from __future__ import annotations

from typing import Any

import torch

from .gpu import DEVICE

_DTYPES = {
    "BFloat16Tensor": torch.bfloat16, "BoolTensor": torch.bool, "ByteTensor": torch.uint8,
    "CharTensor": torch.int8, "DoubleTensor": torch.float64, "FloatTensor": torch.float32,
    "HalfTensor": torch.float16, "IntTensor": torch.int32, "LongTensor": torch.int64,
    "ShortTensor": torch.int16,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class _CudaType(type):
    """The class of such a type: a tensor is an instance if its dtype and device agree."""

    dtype: torch.dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.dtype == cls.dtype and value.device.type == "cuda"

    def __call__(cls, *given: Any, device: Any = None) -> Any:
        """A tensor of some sizes, with some values, or with those of another tensor."""
        first = given[0] if len(given) == 1 else None
        if isinstance(first, torch.Tensor):
            return first.to(DEVICE, cls.dtype)
        if first is None or isinstance(first, (int, torch.Size)):
            sizes = first if isinstance(first, torch.Size) else given
            return torch.empty(tuple(sizes) or (0,), dtype=cls.dtype, device=DEVICE)
        return torch.tensor(first, dtype=cls.dtype, device=DEVICE)


def install() -> None:
    """Give torch.cuda its types, and let `type` and set_default_tensor_type take them."""
    types = {name: _CudaType(name, (), {"dtype": dtype}) for name, dtype in _DTYPES.items()}
    for name, each in types.items():
        setattr(torch.cuda, name, each)
    plain, plain_default = torch.Tensor.type, torch.set_default_tensor_type

    def cuda_type(wanted: Any) -> Any:
        """One of the types above, by itself or by its name; None for another type."""
        if isinstance(wanted, str) and wanted.startswith("torch.cuda."):
            return types.get(wanted.removeprefix("torch.cuda."))
        return wanted if isinstance(wanted, _CudaType) else None

    def type_of(self: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        on_gpu = self.device.type == "cuda"
        if dtype is None:
            return f"torch.cuda.{_NAMES.get(self.dtype, 'Tensor')}" if on_gpu else plain(self)
        wanted = cuda_type(dtype)
        if wanted is not None:
            return self.to(DEVICE, wanted.dtype)
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
        cpu = _DTYPES.get(str(name).removeprefix("torch."))
        if on_gpu and cpu is not None:
            return self.to("cpu").to(cpu)
        return plain(self, dtype, *args, **kwargs)

    def set_default_tensor_type(t: Any) -> None:
        wanted = cuda_type(t)
        if wanted is None:
            plain_default(t)
            return
        torch.set_default_dtype(wanted.dtype)
        torch.set_default_device(DEVICE)

    torch.Tensor.type = type_of
    torch.set_default_tensor_type = set_default_tensor_type
