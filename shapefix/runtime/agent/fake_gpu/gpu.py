"""The simulated GPU: its tensors have sizes and strides but no values; those on the CPU stay real.

For C++ such a tensor is on the CPU, so that neither autograd nor a copy looks for a driver. For Python, and
for the kernels that compute sizes, it is on `cuda:0`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from . import grouped_matmul
from .known_values import KnownValues, item, selected_count
from .storages import Storages

DEVICE = torch.device("cuda", 0)
_CPU, _META = torch.device("cpu"), torch.device("meta")
_aten = torch.ops.aten
_WRAPPERS = (__file__, "torch/_compile.py", "_dynamo/eval_frame.py")
_UNKNOWN = "the result of {} depends on values, which the simulated GPU does not have"
_DEVICE_OF = torch.ops.prim.device.default


class _Sizes(FakeTensorMode):  # type: ignore[misc]
    """torch's own computation of sizes, without looking for a driver."""

    avoid_device_init = property(lambda self: True)

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        there = (kwargs or {}).get("device")
        if there is not None and torch.device(there).type == "cpu":
            kwargs = {**kwargs, "device": DEVICE}  # the name that C++ uses for the simulated GPU
        return super().dispatch(func, types, args, kwargs)


def on_device(value: Any) -> bool:
    """Whether a tensor is on the simulated GPU."""
    return isinstance(value, FakeTensor)


class FakeGpu(TorchDispatchMode):  # type: ignore[misc]
    """Runs each operation on the device of its tensors, and adds new tensors on the GPU to storages.

    A selection by a mask of unknown values selects everything. stop is called with a reason, and does not
    return, if a size depends on values in another way; record_guess is called if an unknown value is read.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled, and skipping would import torch._dynamo

    def __init__(
        self,
        storages: Storages,
        stop: Callable[[str], NoReturn],
        record_guess: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.storages = storages
        self.stop = stop
        self.record_guess = record_guess
        self.sizes = _Sizes(allow_non_fake_inputs=True)
        self.values = KnownValues()
        self._made_on_cpu: Any = WeakTensorKeyDictionary()

    def install(self) -> None:
        """Install the GPU in this process."""
        original = FakeTensor.__torch_dispatch__.__func__

        def __torch_dispatch__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is _DEVICE_OF:
                return _for_cpp(args)
            return original(cls, func, types, args, kwargs)

        FakeTensor.__torch_dispatch__ = classmethod(__torch_dispatch__)
        fake_tensor._DISPATCH_META_HANDLERS[_DEVICE_OF] = _for_cpp
        self.__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _DEVICE_OF:
            return _for_cpp(args)
        ours = any(isinstance(each, FakeTensor) for each in tree_leaves((args, kwargs)))
        there = kwargs.get("device")
        if not ours and (there is None or torch.device(there).type != "cuda"):
            return self._on_cpu(func, args, kwargs)
        if func is _aten._local_scalar_dense.default:
            known = self.values.of(args[0])
            if known is None:
                self.record_guess()
            return item(args[0], known)
        if func is _aten.copy_.default and not isinstance(args[0], FakeTensor):
            args[0].copy_(self.fetched(args[1], args[0].dtype))
            return args[0]
        out = self._computed(func, args, kwargs)
        for each in tree_leaves(out):
            if isinstance(each, FakeTensor) and each.fake_device.type != "cuda":
                each.fake_device = DEVICE
        if func is _aten._to_copy.default and not isinstance(args[0], FakeTensor):
            self.values.copied(args[0], out)
        elif func is _aten.copy_.default and not isinstance(args[1], FakeTensor):
            self.values.copied(args[1].expand(args[0].shape), out)
        else:
            self.values.computed(func, args, kwargs, out)
        self.storages.add(out, str(func))
        return out

    def fetched(self, tensor: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Copy a tensor from the GPU to the CPU: known values, otherwise zeros."""
        known = self.values.of(tensor)
        if known is not None:
            return known.to(dtype=dtype or tensor.dtype, copy=True)
        self.record_guess()
        return torch.zeros(tuple(tensor.shape), dtype=dtype or tensor.dtype)

    def _on_cpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation on the CPU, except for C++'s tensors on behalf of the simulated GPU."""
        if any(isinstance(each, torch.Tensor) for each in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        frame = _frame()
        engine = frame.f_code.co_name == "_engine_run_backward"
        if engine and any(isinstance(each, FakeTensor) for each in frame.f_locals.get("t_outputs", ())):
            return self.__torch_dispatch__(func, (), args, {**kwargs, "device": DEVICE})
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor) and out.dim():
            self._made_on_cpu[out] = _call(frame)
        return out

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is grouped_matmul.FUNCTION:
            with self.sizes:
                return grouped_matmul.product(*args, **kwargs)
        try:
            with self.sizes:
                return func(*args, **kwargs)
        except DynamicOutputShapeException:
            return self._with_guessed_size(func, args)
        except (DataDependentOutputException, UnsupportedFakeTensorException):
            self.stop(_UNKNOWN.format(func))
        except RuntimeError as error:
            if type(error).__name__ != "FakeTensorDeviceMismatchError":
                raise
            args, kwargs, moved = self._moved_to_gpu(args, kwargs)
            if not moved:
                raise RuntimeError(str(error)) from None
            with self.sizes:
                return func(*args, **kwargs)

    def _moved_to_gpu(self, args: Any, kwargs: Any) -> tuple[Any, Any, int]:
        """Move arguments to the GPU if the same call from Python created them on the CPU."""
        caller, moved = _call(_frame()), 0

        def move(value: Any) -> Any:
            nonlocal moved
            real = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
            if not real or self._made_on_cpu.get(value) != caller:
                return value
            moved += 1
            return _aten._to_copy(value, device=DEVICE)

        return tree_map(move, args), tree_map(move, kwargs), moved

    def _empty(self, size: tuple[int, ...], dtype: torch.dtype) -> Any:
        with self.sizes:
            return torch.empty(size, dtype=dtype, device=DEVICE)

    def _even_counts(self, numbers: Any, classes: int) -> Any:
        """Equal counts for all classes, for unknown numbers."""
        counts = self._empty((classes,), torch.int64)
        each, rest = divmod(numbers.numel(), classes)
        self.values.assume(counts, torch.tensor([each + (number < rest) for number in range(classes)]))
        return counts

    def _selected(self, mask: Any) -> int:
        return selected_count(mask, self.values.of)

    def _with_guessed_size(self, func: Any, args: Any) -> Any:
        """Run an operation with a size dependent on values."""
        if func is _aten.nonzero.default:
            return self._empty((self._selected(args[0]), args[0].dim()), torch.int64)
        if func is _aten.masked_select.default:
            return self._empty((self._selected(args[1]),), args[0].dtype)
        if func is _aten.bincount.default and len(args) > 2 and args[2]:
            return self._even_counts(args[0], args[2])
        if func is not _aten.index.Tensor:
            self.stop(_UNKNOWN.format(func))
        indices: list[Any] = []
        for each in args[1]:
            if each is None or each.dtype not in (torch.bool, torch.uint8):
                indices.append(each)
            else:
                indices += [self._empty((self._selected(each),), torch.int64)] * each.dim()
        with self.sizes:
            return func(args[0], indices)


def _frame() -> FrameType:
    """The frame running an operation, outside this module and torch's wrappers of it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_WRAPPERS):
        frame = frame.f_back
    return frame


def _call(frame: FrameType) -> tuple[int, int]:
    """A key for the current call of a frame."""
    return id(frame), frame.f_lasti


def _for_cpp(args: Any) -> torch.device:
    return _META if args[0].fake_mode.in_kernel_invocation else _CPU
