"""Sampling images along grids."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import Value
from shapefix.library.nn.layers import functional, result
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import size_list
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


@functional("grid_sample")
def grid_sample(call: Call, given: BoundArguments) -> Value:
    """Sample (N, C, ...) at (N, out..., 2 or 3): the result is (N, C, out...)."""
    tensor, grid = given.tensor("input"), given.tensor("grid")
    layout: Layout | None = None
    if tensor is not None and tensor.layout is not None and grid is not None and grid.layout is not None:
        if tensor.layout.rank == grid.layout.rank and tensor.layout.rank in (4, 5):
            layout = contiguous((*tensor.layout.sizes[:2], *grid.layout.sizes[1:-1]))
    return result(call, tensor, layout, Op.GRID_SAMPLE)


@functional("affine_grid")
def affine_grid(call: Call, given: BoundArguments) -> Value:
    """Grid (N, H, W, 2) for an output (N, C, H, W)."""
    sizes = size_list(given.value("size"))
    layout = None
    if sizes is not None and len(sizes) in (4, 5):
        layout = contiguous((sizes[0], *sizes[2:], Size.of(len(sizes) - 2)))
    return result(call, given.tensor("theta"), layout, Op.GRID_SAMPLE, is_contiguous=True)
