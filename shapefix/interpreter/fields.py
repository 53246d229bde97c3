"""Dictionaries with the contents of values and scopes."""

from __future__ import annotations

from typing import Any

from shapefix.tensors.symbols import next_serial


class ObjectFields(dict[Any, Any]):
    """Contents of a value or a scope; born is their moment in the order of creation of symbols."""

    __slots__ = ("born",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.born = next_serial()
