"""Linear layers: contiguous results with a last size of out_features."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.nn.layers import computed_dtype, functional, layer, result, weights
from shapefix.library.signatures import BoundArguments
from shapefix.tensors import products, reductions
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.products import check_size
from shapefix.tensors.tensor_iterator import broadcast_sizes

_FIRST = 4
"""Number of sizes that a tensor of unknown rank keeps through a layer."""


@layer("Identity")
def identity(call: Call, given: BoundArguments) -> Value:
    return given.value("input")


@layer("Linear")
@layer("modules.linear.NonDynamicallyQuantizableLinear", base="torch.nn.Linear")
@layer("LazyLinear")
def linear(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    features, expected = given.size("out_features"), None
    if "in_features" in given.values:
        expected = given.size("in_features")
    layout = None
    if tensor is not None and tensor.layout is not None and features is not None:
        layout = products.linear(tensor.layout, features, expected)
    elif tensor is not None and expected is not None:
        last_size_is(tensor, expected)
    dtype = computed_dtype(tensor)
    made = result(call, tensor, layout, Op.LINEAR, dtype=dtype, is_contiguous=True, last=features)
    if layout is None and tensor is not None and expected is not None:
        for dim in range(_FIRST):
            size = tensor.known_size(dim)
            if size is not None and same(size, expected) is False:
                # It is not the last one, and so stays.
                made.set_size(dim, size)
    return made


def last_size_is(tensor: TensorValue | None, expected: Size | None, operand: int = 0) -> None:
    """Check the last size of a tensor, even of unknown rank. Raises SizeMismatch if it provably differs."""
    last = None if tensor is None else tensor.known_size(-1)
    if last is not None and expected is not None:
        check_size(last, expected, dim=-1, operand=operand)


@functional("linear")
def linear_function(call: Call, given: BoundArguments) -> Value:
    tensor, weight = given.tensor("input"), given.tensor("weight")
    layout, features = None, None
    if weight is not None and weight.layout is not None:
        features = weight.layout.sizes[0] if weight.layout.rank == 2 else None
        if tensor is not None and tensor.layout is not None:
            bias = given.tensor("bias") if given.is_none("bias") is False else None
            layout = products.linear_function(
                tensor.layout, weight.layout, None if bias is None else bias.layout
            )
    dtype = computed_dtype(tensor)
    return result(call, tensor, layout, Op.LINEAR, dtype=dtype, is_contiguous=True, last=features)


@layer("Bilinear")
def bilinear(call: Call, given: BoundArguments) -> Value:
    one, two, features = given.tensor("input1"), given.tensor("input2"), given.size("out_features")
    last_size_is(one, given.size("in1_features"))
    last_size_is(two, given.size("in2_features"), operand=1)
    _same_batches(one, two)
    layout = None
    if one is not None and one.layout is not None and features is not None:
        layout = contiguous((*one.layout.sizes[:-1], features))
    return result(call, one, layout, Op.BILINEAR, is_contiguous=True, last=features)


@functional("bilinear", namespaces=("torch", "torch.nn.functional"))
def bilinear_function(call: Call, given: BoundArguments) -> Value:
    one, two, weight = given.tensor("input1"), given.tensor("input2"), given.tensor("weight")
    _same_batches(one, two)
    layout = None
    if one is not None and one.layout is not None and weight is not None and weight.layout is not None:
        layout = contiguous((*one.layout.sizes[:-1], weight.layout.sizes[0]))
    return result(call, one, layout, Op.BILINEAR, is_contiguous=True)


def _same_batches(one: TensorValue | None, two: TensorValue | None) -> None:
    """Check the inputs of a Bilinear. Raises ShapeError if more than their last sizes provably differ."""
    if one is None or two is None or one.layout is None or two.layout is None:
        return
    if one.layout.rank != two.layout.rank:
        message = f"input dimensions do not match: got {one.layout.rank} and {two.layout.rank}"
        raise WrongRank(message, two.layout.rank, (one.layout.rank,), 1)
    for dim, (want, have) in enumerate(zip(one.layout.sizes[:-1], two.layout.sizes[:-1], strict=True)):
        if same(have, want) is False:
            message = f"input batch dimensions do not match at dim {dim}: got {want} and {have}"
            raise SizeMismatch(message, have, want, dim, operand=1, other=0, other_dim=dim)


@layer("CosineSimilarity")
@functional("cosine_similarity", namespaces=("torch", "torch.nn.functional"))
def cosine_similarity(call: Call, given: BoundArguments) -> Value:
    one, two, dim = given.tensor("x1"), given.tensor("x2"), given.number("dim")
    layout = None
    if one is not None and two is not None and one.layout is not None and two.layout is not None:
        if dim is not None:
            both = contiguous(broadcast_sizes(one.layout.sizes, two.layout.sizes))
            layout = reductions.reduce(both, dim)
    return result(call, one, layout, Op.COSINE_SIMILARITY, is_contiguous=True)


@layer("PairwiseDistance")
@functional("pairwise_distance", namespaces=("torch", "torch.nn.functional"))
def pairwise_distance(call: Call, given: BoundArguments) -> Value:
    one, two, keepdim = given.tensor("x1"), given.tensor("x2"), given.flag("keepdim")
    layout = None
    if one is not None and two is not None and one.layout is not None and two.layout is not None:
        if keepdim is not None:
            both = contiguous(broadcast_sizes(one.layout.sizes, two.layout.sizes))
            layout = reductions.reduce(both, -1, keepdim)
    return result(call, one, layout, Op.PAIRWISE_DISTANCE, is_contiguous=True)


def _same_last_size(one: Layout, two: Layout) -> None:
    have, want = two.sizes[-1], one.sizes[-1]
    if same(have, want) is False:
        message = f"X1 and X2 must have the same number of columns: got {want} and {have}"
        raise SizeMismatch(message, have, want, two.rank - 1, operand=1, other=0, other_dim=one.rank - 1)


@functional("cdist", namespaces=("torch",))
def cdist(call: Call, given: BoundArguments) -> Value:
    one, two = given.tensor("x1"), given.tensor("x2")
    layout = None
    if one is not None and two is not None and one.layout is not None and two.layout is not None:
        if min(one.layout.rank, two.layout.rank) >= 2:
            _same_last_size(one.layout, two.layout)
            batch = broadcast_sizes(one.layout.sizes[:-2], two.layout.sizes[:-2])
            layout = contiguous((*batch, one.layout.sizes[-2], two.layout.sizes[-2]))
    return result(call, one, layout, Op.CDIST, is_contiguous=True)


weights(
    ("Linear",),
    weight=lambda given: (given.size("out_features"), given.size("in_features")),
    bias=lambda given: (given.size("out_features"),),
)
weights(
    ("Bilinear",),
    weight=lambda g: (g.size("out_features"), g.size("in1_features"), g.size("in2_features")),
    bias=lambda given: (given.size("out_features"),),
)
