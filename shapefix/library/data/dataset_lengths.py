"""Numbers of samples in datasets and in batches."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Value, as_size
from shapefix.library.registry import lookup_method
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchSize


def length_of(call: Call, dataset: Value | None) -> Size | None:
    """Number of samples in a dataset; None if unknown."""
    if isinstance(dataset, TensorValue):
        return dataset.known_size(0)
    if isinstance(dataset, TupleValue):
        return Size.of(len(dataset.items))
    if isinstance(dataset, ListValue):
        return dataset.length
    if isinstance(dataset, LibraryObject):
        tensors = elements(dataset.fields.get("tensors"))
        if tensors:
            return length_of(call, tensors[0]) if isinstance(tensors[0], TensorValue) else None
        method = lookup_method(dataset.kind, "__len__")
        if method is None:
            return None
        return as_size(method(Call(call.ev, f"{dataset.kind}.__len__", call.place, Arguments(), dataset)))
    if isinstance(dataset, InstanceValue) and member(dataset.cls, "__len__") is not None:
        return as_size(call_method(call.ev, dataset, "__len__", Arguments(), call.place.node))
    return None


def batch_size(name: str, full: Size | None, length: Size | None, loader: Place | None) -> Size:
    """Size of any one batch of full samples out of length; a remainder makes the last batch smaller.

    name is the name of the symbol for a size that is not a constant.
    """
    if full is None:
        return Size.symbol(name)
    if full.value is not None and length is not None and length.value is not None and full.value > 0:
        if length.value % full.value == 0:
            return full
        if length.value < full.value:
            return length
    return Size.from_symbol(BatchSize(name, full, length, loader))
