"""Checks of writes at indexed places: index and source must fit the tensor."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.library.signatures import arguments_of
from shapefix.tensors import concat


def check_scatter(call: Call, tensor: TensorValue) -> None:
    """Check a scatter, index_add or index_copy. Raises ShapeError for provably mismatched arguments."""
    name = call.name.rpartition(".")[2]
    given = arguments_of(call)
    dim, index = given.number("dim"), given.value("index")
    source = given.value("src" if name.startswith("scatter") else "source")
    if tensor.layout is None or dim is None or not isinstance(index, TensorValue) or index.layout is None:
        return
    wanted = source.layout if isinstance(source, TensorValue) else None
    if name.startswith("scatter"):
        concat.scatter(tensor.layout, dim, index.layout, wanted)
    elif wanted is not None:
        concat.index_add(tensor.layout, dim, index.layout, wanted)
