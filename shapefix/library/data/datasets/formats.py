"""Formats of a dataset's rows: lists or tensors, for all columns or some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shapefix.domains.raggedness import ragged
from shapefix.domains.tokens import row_of
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.joins import without_length
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Number, Text, Unknown, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import contiguous
from shapefix.tensors.polynomials import Size

TORCH, CUSTOM = "torch", "custom"


@dataclass(frozen=True)
class Format:
    """Format "python", "torch", or "custom" for a transform; kind is None if unknown.

    columns are those in a row that is read, None for all; with rest the others are, too, unformatted.
    """

    kind: str | None
    columns: frozenset[str] | None = None
    rest: bool = False

    def without(self, names: frozenset[str]) -> Format:
        """Format of a dataset after the loss of these columns."""
        return self if self.columns is None else replace(self, columns=self.columns - names)

    def only(self, names: frozenset[str]) -> Format:
        """Format of a dataset reduced to these columns."""
        return self if self.columns is None else replace(self, columns=self.columns & names)

    def extended(self, names: frozenset[str]) -> Format:
        """Format of a dataset extended by these columns of `map`; reading a row returns them, too."""
        return self if self.columns is None else replace(self, columns=self.columns | names)

    def renamed(self, names: Mapping[str, str]) -> Format:
        """Format of a dataset with renamed columns."""
        if self.columns is None:
            return self
        return replace(self, columns=frozenset(names.get(name, name) for name in self.columns))


PLAIN = Format("python")


def unknown_column(key: object) -> Value:
    """One cell of a column with nothing known but its name."""
    return Unknown(key if isinstance(key, str) else "")


def formatted(rows: DictValue, format: Format) -> DictValue:
    """Row as read from a dataset of this format."""
    if format == PLAIN:
        return rows
    if format.kind not in ("python", TORCH):
        return DictValue({}, closed=False, absent=unknown_column)
    columns = format.columns
    fields: dict[object, Value] = {}
    for name, value in rows.fields.items():
        if columns is None or name in columns:
            fields[name] = as_tensors(value, str(name)) if format.kind == TORCH else value
        elif format.rest:
            fields[name] = value
    if columns is not None:
        fields.update({name: Unknown(name) for name in sorted(columns - fields.keys())})
    closed = rows.closed or (columns is not None and not format.rest)
    absent = unknown_column if format.kind == TORCH else rows.absent
    return DictValue(fields, closed, absent=absent, written=rows.written)


def as_tensors(value: Value, name: str) -> Value:
    """Convert a cell to the format "torch": numbers and lists of them become tensors, texts stay."""
    if isinstance(value, Text) or (isinstance(value, Constant) and (value.value is None or _is_text(value))):
        return value
    sizes: list[Size] = []
    inner: Value | None = value
    while isinstance(inner, (ListValue, TupleValue)):
        contents = inner.contents if isinstance(inner, ListValue) else ListValue(inner.items).contents
        sizes.append(contents.length if contents.length is not None else Size.symbol(name))
        inner = without_length(contents).element
    if isinstance(inner, Text) or (isinstance(inner, Constant) and _is_text(inner)):
        return value
    dtype = _dtype(inner)
    if dtype is None or (len(sizes) > 1 and ragged(value) is not None):
        return Unknown(name)
    return TensorValue(contiguous(sizes), dtype=dtype or None, row=row_of(value))


def _is_text(value: Constant) -> bool:
    return isinstance(value.value, (str, bytes))


def _dtype(value: Value | None) -> str | None:
    """Dtype of the tensor made of such numbers; empty if ambiguous."""
    if isinstance(value, Integer):
        return "int64"
    if isinstance(value, Number):
        return ""
    if isinstance(value, Constant):
        return {bool: "bool", int: "int64", float: "float32"}.get(type(value.value))
    return None
