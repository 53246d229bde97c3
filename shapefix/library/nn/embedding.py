"""Embeddings: the sizes of the indices, then the dimension; contiguous."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown, Value, integer
from shapefix.library.nn.layers import functional, layer, result, weights
from shapefix.library.ops.value_range import outside_of
from shapefix.library.registry import function
from shapefix.library.rejections import reject
from shapefix.library.signatures import BoundArguments
from shapefix.tensors import networks
from shapefix.tensors.errors import IndexOutOfRange
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


@layer("Embedding")
def embedding(call: Call, given: BoundArguments) -> Value:
    _check_ids(call, given, given.size("num_embeddings"), "num_embeddings" in given.values)
    return _embedded(call, given.tensor("input"), given.size("embedding_dim"))


@functional("embedding")
def embedding_function(call: Call, given: BoundArguments) -> Value:
    weight = given.tensor("weight")
    known = weight is not None and weight.layout is not None and weight.layout.rank == 2
    _check_ids(call, given, weight.layout.sizes[0] if known and weight and weight.layout else None, known)
    return _embedded(call, given.tensor("input"), _width(given))


def _check_ids(call: Call, given: BoundArguments, rows: Size | None, known: bool) -> None:
    """Report stated ids outside of the rows of an embedding."""
    ids = given.tensor("input")
    if ids is None or rows is None or not known:
        return
    outside = outside_of(ids, rows)
    if outside is None:
        return
    error = IndexOutOfRange(f"index {outside} is out of range for an embedding of {rows}", outside, rows, 0)
    layer, weight = call.receiver, given.value("weight")
    operands: dict[str, Value] = {"input": ids} if layer is not None else {"input": ids, "weight": weight}
    name = layer.kind if isinstance(layer, LibraryObject) else call.name
    reject(call, error, operands, function=name, layer=layer, settings=given.values)


def _width(given: BoundArguments) -> Size | None:
    weight = given.tensor("weight")
    if weight is None or weight.layout is None or weight.layout.rank != 2:
        return None
    return weight.layout.sizes[1]


def _embedded(call: Call, indices: TensorValue | None, width: Size | None) -> TensorValue:
    layout = None
    if indices is not None and indices.layout is not None and width is not None:
        layout = networks.embedding(indices.layout, width)
    return result(call, indices, layout, Op.EMBEDDING, is_contiguous=True, last=width)


@layer("EmbeddingBag")
def embedding_bag(call: Call, given: BoundArguments) -> Value:
    return _bagged(call, given, given.size("embedding_dim"))


@functional("embedding_bag")
def embedding_bag_function(call: Call, given: BoundArguments) -> Value:
    return _bagged(call, given, _width(given))


def _bagged(call: Call, given: BoundArguments, width: Size | None) -> TensorValue:
    indices = given.tensor("input")
    layout: Layout | None = None
    if indices is not None and indices.layout is not None and width is not None:
        if indices.layout.rank == 2:
            layout = contiguous((indices.layout.sizes[0], width))
        else:
            offsets, ends = given.tensor("offsets"), given.flag("include_last_offset")
            if offsets is not None and offsets.layout is not None and ends is not None:
                layout = contiguous((offsets.layout.sizes[0] - int(ends), width))
    return result(call, indices, layout, Op.EMBEDDING, is_contiguous=True, last=width)


@function("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
def from_pretrained(call: Call) -> Value:
    """Create a layer with the given tensor as its weight."""
    weight = call.value(0, "embeddings")
    kind = call.name.rpartition(".")[0]
    if not isinstance(weight, TensorValue) or weight.layout is None or weight.layout.rank != 2:
        return LibraryObject(kind, {}, call.place, {"embedding_dim": Unknown("embedding_dim")})
    rows, width = map(integer, weight.layout.sizes)
    fields = {"num_embeddings": rows, "embedding_dim": width, "weight": weight}
    return LibraryObject(kind, {}, call.place, fields)


weights(
    ("Embedding", "EmbeddingBag"),
    weight=lambda given: (given.size("num_embeddings"), given.size("embedding_dim")),
)
