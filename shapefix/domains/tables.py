"""Tables of pandas: uses rejected by Python or torch."""

from __future__ import annotations

from enum import Enum

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.light_dataclasses import dataclass


class TableMisuse(Enum):
    """Rejected uses of a table: a TABLE or COLUMN as a tensor, a column of TEXTS, a missing LABEL.

    MIXED are booleans beside numbers, which share no dtype.
    Its rows are in another order; with a GAP, some of them are left out. ITEMS are the values of a
    dictionary, a set or a generator, which are no sequence: an array of them is one object.
    """

    TABLE = "table"
    COLUMN = "column"
    TEXTS = "texts"
    MIXED = "mixed"
    LABEL = "label"
    GAP = "gap"
    ITEMS = "items"


@dataclass(frozen=True, eq=False, slots=True)
class TableMisused(Event):
    """Rejected use of a table; function is the function or attribute.

    source is the place of creating the texts or the array of one object, or of shuffling the rows; None if
    unknown. detail is the name of the column, or the class of the items.
    """

    reason: TableMisuse
    function: str
    source: Place | None = None
    detail: str = ""
