"""Tensors split over ranks, and values without a wait for other ranks."""

from __future__ import annotations

from typing import Any

import torch


def is_sharded(tensor: Any) -> bool:
    """Whether a tensor has a part of its values on each rank, or is a flat parameter of FSDP."""
    return hasattr(tensor, "to_local") or hasattr(tensor, "_is_flat_param")


def local_part(tensor: Any) -> Any:
    """The part of a tensor on this rank; the tensor itself if it is not sharded."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the values of a tensor are here: FSDP frees the memory of whole parameters after their use."""
    if is_sharded(tensor):
        return False
    if tensor.is_sparse or tensor.layout != torch.strided or not tensor.numel():
        return True
    try:
        storage = tensor.untyped_storage()
    except (AttributeError, RuntimeError, NotImplementedError):
        return True
    return bool(storage.size())
