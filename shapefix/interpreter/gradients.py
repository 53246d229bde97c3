"""Whether a tensor carries the graph that autograd walks back through."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FALSE, TRUE, Unknown
from shapefix.tensors.dtypes import is_complex, is_floating

if TYPE_CHECKING:
    from shapefix.interpreter.evaluator import Evaluator

NONE_PROVED: frozenset[int] = frozenset()


def requires_grad(tensor: TensorValue) -> bool | None:
    """What `tensor.requires_grad` is at this moment, None where that is not known."""
    if tensor.dtype is not None and not (is_floating(tensor.dtype) or is_complex(tensor.dtype)):
        return False
    # A view of something that a graph was written into has one, too.
    return None if tensor.graph is False and tensor.storage.grafted else tensor.graph


def require_grad(ev: Evaluator, tensor: TensorValue, asked: bool | None) -> None:
    """Note that tensor is told whether to require a gradient, None where that is not known.

    One that required none before is a leaf from then on: gradients flow to it, and no further.
    """
    ev.training.setdefault(tensor, FALSE)
    if asked is not True or requires_grad(tensor) is not True:
        leaf = TRUE if asked and requires_grad(tensor) is False else Unknown()
        ev.journal.write(ev.training, tensor, leaf)
    ev.journal.write(tensor, "graph", asked)


def is_leaf(ev: Evaluator, tensor: TensorValue) -> bool:
    """Whether tensor was certainly made one that gradients flow to, and no further."""
    return ev.training.get(tensor) is TRUE


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
