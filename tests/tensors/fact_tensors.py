"""Tensors of the truth table: in torch, and as layouts over constants and over symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from shapefix.tensors import dims, indexing, legality, reductions, tensor_iterator, views
from shapefix.tensors.layout import Layout, channels_last, contiguous
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Symbol
from shapefix.tensors.verdicts import Illegal, ViewVerdict

NUMBERS = {"B": 2, "T": 6, "V": 8, "H": 2, "D": 4}
ALL = slice(None)


class Tensors:
    """x float (B, T, V), y int (B, T), h (B, T, H, D), image (B, 3, 4, 4), x4 with twice the batch."""

    def __init__(self) -> None:
        b, t, v, h, d = NUMBERS.values()
        self.x = torch.randn(b, t, v)
        self.x4 = torch.randn(2 * b, t, v)
        self.y = torch.zeros(b, t, dtype=torch.long)
        self.h = torch.randn(b, t, h, d)
        self.image = torch.randn(b, 3, 4, 4).to(memory_format=torch.channels_last)


class Layouts:
    """The same tensors as layouts, over constants or symbols."""

    def __init__(self, symbolic: bool) -> None:
        self.values: dict[Symbol, int] = {}
        sizes = {name: Size.symbol(name) if symbolic else Size.of(value) for name, value in NUMBERS.items()}
        for name, size in sizes.items():
            for symbol in size.symbols:
                self.values[symbol] = NUMBERS[name]
        self.B, self.T, self.V, self.H, self.D = sizes.values()
        self.x = contiguous([self.B, self.T, self.V])
        self.x4 = contiguous([2 * self.B, self.T, self.V])
        self.y = contiguous([self.B, self.T])
        self.h = contiguous([self.B, self.T, self.H, self.D])
        self.image = channels_last([self.B, 3, 4, 4])

    def view(self, layout: Layout | None, *sizes: int | Size) -> ViewVerdict:
        assert layout is not None
        return legality.view(layout, *views.target_of(sizes))


def at(layout: Layout, *specs: indexing.Spec) -> Layout:
    return indexing.index(layout, specs)


IDX = torch.tensor([0, 2, 1])
INDICES = indexing.IntegerIndex(contiguous([3]))
B, T, V, H, D = NUMBERS.values()


@dataclass(frozen=True)
class Row:
    """One row of the table.

    symbols_may_not_know allows an undecided verdict over symbols, if it depends on more than sizes above 1.
    """

    text: str
    torch: Callable[[Tensors], object]
    ours: Callable[[Layouts], ViewVerdict]
    symbols_may_not_know: bool = False


def topk_hits(t: Tensors) -> Tensor:
    return torch.randn(B, 10).topk(5, -1)[1].t().eq(torch.zeros(B, dtype=torch.long))


def topk_hits_layout(s: Layouts) -> Layout:
    found = dims.t(reductions.topk(contiguous([s.B, 10]), 5))
    return tensor_iterator.elementwise(found, dims.expand(contiguous([1, s.B]), found.sizes))


def applies(verdict: Illegal, layouts: Layouts) -> bool:
    """Check that the conditions of an illegal view hold for the values of the symbols."""
    return all((substitute(size, layouts.values).value or 0) > 1 for size in verdict.conditions)
