"""Autocast on the simulated GPU: torch's own casts require a device known to C++."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

# The lists of at::autocast for CUDA (aten/src/ATen/autocast_mode.h).
_LOWER = (
    "_convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "prelu",
    "addmm",
    "addmv",
    "addr",
    "matmul",
    "einsum",
    "mm",
    "mv",
    "linalg_vecdot",
    "linear",
    "addbmm",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "linalg_multi_dot",
    "scaled_dot_product_attention",
)
_FLOAT32 = (
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "pow.Scalar",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "group_norm",
    "frobenius_norm.dim",
    "nuclear_norm",
    "nuclear_norm.dim",
    "cosine_similarity",
    "poisson_nll_loss",
    "cosine_embedding_loss",
    "nll_loss",
    "nll_loss2d",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "mse_loss",
    "margin_ranking_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "binary_cross_entropy_with_logits",
    "dist",
    "pdist",
    "cdist",
    "renorm",
    "logsumexp",
    "softmax.int",
    "log_softmax.int",
    "cumprod",
    "cumsum",
    "linalg_vector_norm",
    "linalg_matrix_norm",
    "prod",
    "prod.dim_int",
    "sum",
    "sum.dim_IntList",
    "norm.Scalar",
    "norm.ScalarOpt_dim",
    "cross_entropy_loss",
)
_WIDEST = (
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "vdot",
    "grid_sampler",
    "index_put",
    "tensordot",
    "scatter_add",
)
_KEEP_DTYPE = (
    "softmax.int",
    "log_softmax.int",
    "cumprod",
    "cumsum",
    "prod",
    "prod.dim_int",
    "sum",
    "sum.dim_IntList",
)


class AutocastRules:
    """The casts of one process. Cast weights are cached until the outermost autocast ends."""

    def __init__(self, on_device: Callable[[Any], bool]) -> None:
        self._on_device = on_device
        self._weights: dict[int, tuple[Any, Any]] = {}
        self._key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
        self._library = torch.library.Library("aten", "IMPL")

    def install(self) -> None:
        """Replace torch's own casts for CUDA."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._register(_LOWER, lambda _: torch.get_autocast_dtype("cuda"))
            self._register(_FLOAT32, lambda _: torch.float32)
            self._register(_WIDEST, self._widest)
        original = torch.clear_autocast_cache

        def clear_autocast_cache() -> None:
            self._weights.clear()
            original()

        torch.clear_autocast_cache = clear_autocast_cache

    def _register(self, names: Iterable[str], dtype: Callable[[Any], torch.dtype]) -> None:
        for name in names:
            packet, _, overload = name.partition(".")
            operation = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if operation is not None:
                with contextlib.suppress(RuntimeError):  # this torch casts it in another way
                    self._library.impl(name, self._cast_first(operation, name, dtype), "AutocastCUDA")

    def _cast_first(self, operation: Any, name: str, dtype: Callable[[Any], torch.dtype]) -> Any:
        def cast_first(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(self._key):
                explicit = name in _KEEP_DTYPE and kwargs.get("dtype") is not None
                if explicit:
                    return operation(*args, **kwargs)
                to = dtype((args, kwargs))
                return operation(
                    *[self._cast(each, to) for each in args],
                    **{key: self._cast(each, to) for key, each in kwargs.items()},
                )

        return cast_first

    def _cast(self, value: Any, to: torch.dtype) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(each, to) for each in value)
        if not isinstance(value, torch.Tensor) or not self._on_device(value):
            return value
        if not value.is_floating_point() or value.dtype in (to, torch.float64):
            return value
        weight = value.is_leaf and value.requires_grad and value.dtype == torch.float32
        if not weight or to == torch.float32 or not torch.is_autocast_cache_enabled():
            return value.to(to)
        if id(value) not in self._weights:
            self._weights[id(value)] = (value, value.to(to))
        return self._weights[id(value)][1]

    def _widest(self, values: Any) -> torch.dtype:
        found = [
            each.dtype
            for each in torch.utils._pytree.tree_leaves(values)
            if isinstance(each, torch.Tensor) and self._on_device(each) and each.is_floating_point()
        ]
        return torch.float32 if torch.float32 in found else torch.get_autocast_dtype("cuda")
