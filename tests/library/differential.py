"""One piece of code, run by the interpreter and by torch itself: what `reveal` shows must be the same."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shapefix.domains.gradients import carries_graph
from shapefix.interpreter.containers import DictValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event, Revealed
from shapefix.interpreter.modules import Module
from shapefix.interpreter.program import parsed, run_program
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Value
from shapefix.library.library import TorchLibrary
from shapefix.tensors.layout import Layout, has_unknown_strides
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Symbol

if TYPE_CHECKING:
    import torch

IMPORTS = """
import torch
import torch.nn.functional as F
from torch import nn
"""

SIZES = {"B": 2, "T": 6, "V": 8}


class NoFiles:
    """A project of a single file."""

    def locate(self, importing: Module, module: str, level: int) -> str | None:
        return None

    def module(self, path: str) -> Module | None:
        return None

    def allow(self, size: int) -> None:
        return None

    def text(self, script: Module, path: str) -> str | None:
        return None


def interpret(source: str) -> list[Event]:
    """The events of running source, on its own, with everything that the library knows."""
    ev = Evaluator(TorchLibrary(), NoFiles(), 200_000)
    run_program(ev, parsed("script.py", "script", source), 50_000)
    return ev.events


def revealed(source: str) -> list[Value]:
    """What the `reveal(...)` calls of source show, in their order."""
    code = IMPORTS + textwrap.dedent(source)
    return [event.value for event in interpret(code) if isinstance(event, Revealed)]


def layouts(source: str) -> list[str]:
    """The revealed tensors as text: sizes and strides, "?" where the rank is not known."""
    return [str(value.layout or "?") if isinstance(value, TensorValue) else "?" for value in revealed(source)]


def executed(source: str) -> list[Any]:
    """What torch computes for the `reveal(...)` calls of source, in their order."""
    import torch

    seen: list[Any] = []

    def reveal(value: Any) -> Any:
        seen.append(value)
        return value

    torch.manual_seed(0)
    namespace = {"reveal": reveal, "sizes": lambda: tuple(SIZES.values()), "__name__": "__main__"}
    exec(compile(IMPORTS + textwrap.dedent(source), "script.py", "exec", dont_inherit=True), namespace)
    return seen


def agree(source: str, *, strides: bool = True, symbolic: bool = True) -> None:
    """Check that torch does to source what the interpreter says, with B, T and V known and then unknown.

    With them known every revealed tensor must have known sizes, and known strides unless strides is False.
    """
    known = ", ".join(SIZES) + " = " + ", ".join(map(str, SIZES.values())) + "\n"
    source = textwrap.dedent(source)
    real = executed(known + source)
    ours = revealed(known + source)
    assert len(ours) == len(real) > 0, f"{len(real)} values revealed by torch, {len(ours)} by the interpreter"
    for one, other in zip(ours, real, strict=True):
        compare(one, other, require_sizes=True, require_strides=strides)
    if symbolic:
        ours = revealed(", ".join(SIZES) + " = sizes()\n" + source)
        assert len(ours) == len(real)
        for one, other in zip(ours, real, strict=True):
            compare(one, other)


def compare(ours: Value, real: Any, *, require_sizes: bool = False, require_strides: bool = False) -> None:
    """Check all that is known of ours against the real value; raises AssertionError."""
    import torch

    if isinstance(real, torch.Tensor):
        if not isinstance(ours, TensorValue):
            assert not require_sizes, f"a tensor of sizes {tuple(real.shape)} is {type(ours).__name__}"
            assert not isinstance(ours, (Constant, Integer, DictValue))
            return
        _compare_tensors(ours, real, require_sizes, require_strides)
    elif isinstance(real, (tuple, list)):
        items = elements(ours)
        if items is None:
            assert not require_sizes, f"{len(real)} items are {type(ours).__name__}"
            return
        assert len(items) == len(real)
        for one, other in zip(items, real, strict=True):
            compare(one, other, require_sizes=require_sizes, require_strides=require_strides)
    elif isinstance(real, Mapping) and isinstance(ours, DictValue):
        assert set(ours.fields) == set(real)
        for key, value in real.items():
            compare(ours.fields[key], value, require_sizes=require_sizes, require_strides=require_strides)
    elif isinstance(ours, Constant):
        assert ours.value == real
    elif isinstance(ours, Integer):
        size = _with_values(ours.size)
        assert size is None or size == real
    elif require_sizes:
        assert isinstance(ours, LibraryObject), f"{real!r} is {type(ours).__name__}"


def _compare_tensors(
    ours: TensorValue, real: torch.Tensor, require_sizes: bool, require_strides: bool
) -> None:
    shown = f"interpreter {ours.layout or '?'}, torch {tuple(real.shape)} strides {real.stride()}"
    graph = carries_graph(ours)
    assert graph in (None, real.requires_grad), f"requires_grad {graph}, torch has {real.requires_grad}"
    if ours.dtype is not None:
        assert f"torch.{ours.dtype}" == str(real.dtype), f"dtype {ours.dtype}, torch has {real.dtype}"
    if ours.layout is None:
        assert not require_sizes, shown
        assert not ours.contiguous or real.is_contiguous(), shown
        for dim in range(-real.dim(), real.dim()):
            known_size = ours.known_size(dim)
            number = None if known_size is None else _with_values(known_size)
            assert number is None or number == real.shape[dim], f"dimension {dim} is {number}; {shown}"
        return
    assert ours.layout.rank == real.dim(), shown
    opaque = has_unknown_strides(ours.layout)
    assert not (require_strides and opaque), shown
    for size, stride, want_size, want_stride in _dimensions(ours.layout, real):
        assert size is None or size == want_size, shown
        if want_size != 1 and not opaque and real.numel():
            assert stride is None or stride == want_stride, shown


def _dimensions(layout: Layout, real: torch.Tensor) -> Iterator[tuple[int | None, int | None, int, int]]:
    for size, stride, want_size, want_stride in zip(
        layout.sizes, layout.strides, real.shape, real.stride(), strict=True
    ):
        yield _with_values(size), _with_values(stride), want_size, want_stride


def _with_values(size: Size) -> int | None:
    """The size with the numbers of SIZES put in; None where it has other symbols."""
    values: dict[Symbol, int | Size] = {
        symbol: SIZES[symbol.name] for symbol in every_symbol(size) if symbol.name in SIZES
    }
    return substitute(size, values).value
