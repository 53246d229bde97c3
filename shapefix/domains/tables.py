"""Tables of pandas: uses of them that Python or torch rejects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place


class TableMisuse(Enum):
    """Use of a table that raises: a TABLE or COLUMN as a tensor, a column of TEXTS, a LABEL that is gone."""

    TABLE = "table"
    COLUMN = "column"
    TEXTS = "texts"
    LABEL = "label"


@dataclass(frozen=True, eq=False, slots=True)
class TableMisused(Event):
    """Use of a table that raises; function is the function or attribute.

    source is the code that made the column of texts, or that shuffled the rows; None if unknown. detail is
    the name of the column.
    """

    reason: TableMisuse
    function: str
    source: Place | None = None
    detail: str = ""
