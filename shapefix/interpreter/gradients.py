"""Whether a tensor carries the graph that autograd walks back through."""

from __future__ import annotations

from collections.abc import Collection

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.dtypes import is_complex, is_floating

NONE_PROVED: frozenset[int] = frozenset()


def requires_grad(tensor: TensorValue) -> bool | None:
    """What `tensor.requires_grad` is at this moment, None where that is not known."""
    if tensor.dtype is not None and not (is_floating(tensor.dtype) or is_complex(tensor.dtype)):
        return False
    # A view of something that a graph was written into has one, too.
    return None if tensor.graph is False and tensor.storage.grafted else tensor.graph


def carries_graph(tensor: TensorValue, proved: Collection[int] = NONE_PROVED) -> bool | None:
    """Whether gradients flow back through tensor, None where that is not known.

    proved are the ids of tensors of which it turned out later on that they do: somebody called backward.
    """
    known = requires_grad(tensor)
    if known is not None:
        return known
    return True if any(id(each) in proved for each in lineage(tensor)) else None


def lineage(tensor: TensorValue) -> list[TensorValue]:
    """The tensor, and all that it was computed from in a way that gradients flow back to."""
    found = [tensor]
    seen = {id(tensor)}
    for each in found:
        for source in each.sources:
            if id(source) not in seen and requires_grad(source) is not False:
                seen.add(id(source))
                found.append(source)
    return found
