"""The public face of results: the layouts of what torch operations return.

Every function takes layouts, sizes and plain numbers, and raises ShapeError only where torch would
raise whatever the values of the symbols.
"""

from shapefix.tensors.concat import (
    cat,
    gather,
    index_add,
    index_select,
    masked_fill,
    masked_select,
    one_hot,
    pad,
    padded_sequences,
    repeat_interleave,
    scatter,
    stack,
)
from shapefix.tensors.convolutions import conv, conv_transpose, pool, resized
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.memory_format import as_contiguous, like, suggested, suggests_channels_last, to
from shapefix.tensors.networks import (
    batch_norm,
    embedding,
    group_norm,
    instance_norm,
    layer_norm,
    multihead_attention,
    recurrent,
    rms_norm,
)
from shapefix.tensors.products import (
    added_product,
    contraction,
    einsum,
    exact_product,
    linear,
    linear_function,
    matmul,
    outer,
    scaled_dot_product_attention,
)
from shapefix.tensors.reductions import along, cumsum, reduce, softmax, sort, topk
from shapefix.tensors.tensor_iterator import (
    broadcast_sizes,
    check_fills,
    elementwise,
    is_dense,
    mismatch_beyond_one,
)

__all__ = [
    "ShapeError",
    "added_product",
    "along",
    "as_contiguous",
    "batch_norm",
    "broadcast_sizes",
    "cat",
    "check_fills",
    "contraction",
    "conv",
    "conv_transpose",
    "cumsum",
    "einsum",
    "elementwise",
    "embedding",
    "exact_product",
    "gather",
    "group_norm",
    "index_add",
    "index_select",
    "instance_norm",
    "is_dense",
    "layer_norm",
    "like",
    "linear",
    "linear_function",
    "masked_fill",
    "masked_select",
    "matmul",
    "mismatch_beyond_one",
    "multihead_attention",
    "one_hot",
    "outer",
    "pad",
    "padded_sequences",
    "pool",
    "recurrent",
    "reduce",
    "repeat_interleave",
    "resized",
    "rms_norm",
    "scaled_dot_product_attention",
    "scatter",
    "softmax",
    "sort",
    "stack",
    "suggested",
    "suggests_channels_last",
    "to",
    "topk",
]
