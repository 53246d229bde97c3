"""Values in words for editors and listings, with their places, and the calls of modules.

The module imports nothing of the analysis: the language server starts without it.
"""

from __future__ import annotations

from dataclasses import replace

from shapefix.diagnostics import Span
from shapefix.light_dataclasses import dataclass

RETURNED = "return"
"""The name of the result of a function."""


@dataclass(frozen=True)
class DisplayedValue:
    """A value in words; for a tensor also its sizes and strides, None if they are not known.

    Sizes are numbers, or text such as `H // 2`. is_number is True for integers, known or symbolic.
    """

    text: str
    dtype: str | None = None
    sizes: tuple[int | str, ...] | None = None
    strides: tuple[int | str, ...] | None = None
    device: str | None = None
    is_number: bool = False


@dataclass(frozen=True)
class HeldName:
    """A name, or a part of its value, and its different values over the passes of a loop.

    It is assigned, returned or a parameter in the statement from row to end_row; of a compound statement
    these are the rows of its head. function is the qualified name around it, "" at the top level, and its
    rows are from first_row to last_row. whole is the name without the part.
    """

    name: str
    whole: str
    values: tuple[DisplayedValue, ...]
    row: int
    end_row: int
    function: str
    first_row: int
    last_row: int

    def moved(self, rows: int) -> HeldName:
        """Return the same some rows further down."""
        return replace(
            self,
            row=self.row + rows,
            end_row=self.end_row + rows,
            first_row=self.first_row + rows,
            last_row=self.last_row + rows,
        )


@dataclass(frozen=True)
class SizedCall:
    """A call of a function with tensors of known sizes: its place, and the sizes by parameter."""

    span: Span
    sizes: tuple[tuple[str, DisplayedValue], ...]


@dataclass(frozen=True)
class CallsOfForward:
    """The different calls of a method `forward`, by the row of its definition."""

    row: int
    calls: tuple[SizedCall, ...]
