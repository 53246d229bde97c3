"""Whole numbers that know where the code states them."""

from __future__ import annotations

from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant


class IntegerLiteral(Constant):
    """An int, or a product of ints, and the place where it is written: `271`, `16 * 5 * 5`."""

    __slots__ = ("place",)

    def __init__(self, value: int, place: Place) -> None:
        super().__init__(value)
        self.place = place
