"""Sizes of grouped matrix products, as in mixtures of experts.

torch's own computation of these sizes rejects all dtypes except bfloat16, although its kernels accept float32
and float16.
"""

from __future__ import annotations

from typing import Any

import torch

FUNCTION = getattr(torch.ops.aten, "_grouped_mm", None) and torch.ops.aten._grouped_mm.default
_ALIGNMENT = 16  # bytes, for each row of the result


def product(
    left: Any, right: Any, offs: Any = None, bias: Any = None, out_dtype: torch.dtype | None = None
) -> Any:
    """A tensor with the size, the strides and the dtype of the result.

    Raises RuntimeError if the inner sizes or the dtypes differ, like the kernel.
    """
    if left.dtype != right.dtype:
        raise RuntimeError(
            f"Expected mat_a and mat_b to have the same dtype, got {left.dtype}, {right.dtype}"
        )
    ragged_inside = left.dim() == right.dim() == 2
    if not ragged_inside and left.size(-1) != right.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    rows, columns = left.size(-2), right.size(-1)
    size = [rows, columns]
    if ragged_inside:
        size = [offs.size(0), rows, columns]
    elif left.dim() == right.dim():
        size = [left.size(0), rows, columns]
    dtype = out_dtype or left.dtype
    step = _ALIGNMENT // dtype.itemsize
    width = (columns + step - 1) // step * step
    stride = [width, 1] if len(size) == 2 else [rows * width, width, 1]
    return torch.empty_strided(size, stride, dtype=dtype, device=left.device)
