"""Tables of pandas: uses rejected by Python or torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place


class TableMisuse(Enum):
    """Rejected uses of a table: a TABLE or COLUMN as a tensor, a column of TEXTS, a missing LABEL.

    Its rows are in another order; with a GAP, some of them are left out.
    """

    TABLE = "table"
    COLUMN = "column"
    TEXTS = "texts"
    LABEL = "label"
    GAP = "gap"


@dataclass(frozen=True, eq=False, slots=True)
class TableMisused(Event):
    """Rejected use of a table; function is the function or attribute.

    source is the place of creating the texts, or of shuffling the rows; None if unknown. detail is the name
    of the column.
    """

    reason: TableMisuse
    function: str
    source: Place | None = None
    detail: str = ""
