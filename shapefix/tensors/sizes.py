"""The public face of sizes: what they are, what can be computed with them, what can be proved of them."""

from shapefix.tensors.bounds import NO_BOUNDS, Bounds, assuming, at_least, lowest, same
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.polynomials import ONE, ZERO, Size, divide, every_symbol, product
from shapefix.tensors.quotients import (
    ceil_divide,
    floor_divide,
    maximum,
    minimum,
    modulo,
    quotient,
    substitute,
)
from shapefix.tensors.symbols import Atom, OpaqueStride, PerItemSize, RangeItem, Symbol

__all__ = [
    "NO_BOUNDS",
    "ONE",
    "ZERO",
    "Atom",
    "Bounds",
    "OpaqueStride",
    "PerItemSize",
    "RangeItem",
    "ShapeError",
    "Size",
    "Symbol",
    "assuming",
    "at_least",
    "ceil_divide",
    "divide",
    "every_symbol",
    "floor_divide",
    "lowest",
    "maximum",
    "minimum",
    "modulo",
    "product",
    "quotient",
    "same",
    "substitute",
]
