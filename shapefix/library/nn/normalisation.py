"""Normalisation layers."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_size
from shapefix.library.nn.layers import functional, layer, result, weights
from shapefix.library.signatures import Given
from shapefix.tensors import results
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.memory_format import like
from shapefix.tensors.polynomials import Size

_BATCH = "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True"
_INSTANCE = "eps=1e-05, momentum=0.1, affine=False, track_running_stats=False"


@layer("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", takes=f"num_features, {_BATCH}")
@layer("LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", takes=_BATCH)
@layer("GroupNorm", takes="num_groups, num_channels, eps=1e-05, affine=True")
@functional(
    "batch_norm",
    takes="input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05",
)
@functional("group_norm", takes="input, num_groups, weight=None, bias=None, eps=1e-05")
def batch_norm(call: Call, given: Given) -> Value:
    tensor = given.tensor("input")
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = results.batch_norm(tensor.layout)
    return _normalised(call, tensor, layout)


@layer("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", takes=f"num_features, {_INSTANCE}")
@layer("LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", takes=_BATCH)
@functional(
    "instance_norm",
    takes="input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, "
    "momentum=0.1, eps=1e-05",
)
def instance_norm(call: Call, given: Given) -> Value:
    tensor = given.tensor("input")
    layout = None if tensor is None or tensor.layout is None else contiguous(tensor.layout.sizes)
    return _normalised(call, tensor, layout, is_contiguous=True)


@layer("LayerNorm", takes="normalized_shape, eps=1e-05, elementwise_affine=True, bias=True")
@functional("layer_norm", takes="input, normalized_shape, weight=None, bias=None, eps=1e-05")
@functional(
    "layer_norm",
    takes="input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
    namespaces=("torch",),
)
def layer_norm(call: Call, given: Given) -> Value:
    tensor, shape = given.tensor("input"), _shape(given)
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = results.layer_norm(tensor.layout, shape or ())
    return _normalised(call, tensor, layout, is_contiguous=True, last=shape[-1] if shape else None)


@layer("RMSNorm", takes="normalized_shape, eps=None, elementwise_affine=True")
@functional(
    "rms_norm",
    takes="input, normalized_shape, weight=None, eps=None",
    namespaces=("torch", "torch.nn.functional"),
)
def rms_norm(call: Call, given: Given) -> Value:
    tensor, shape = given.tensor("input"), _shape(given)
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = results.rms_norm(tensor.layout, shape or ())
    return _normalised(call, tensor, layout, last=shape[-1] if shape else None)


@layer("LocalResponseNorm", takes="size, alpha=0.0001, beta=0.75, k=1.0")
@functional("local_response_norm", takes="input, size, alpha=0.0001, beta=0.75, k=1.0")
@layer("CrossMapLRN2d", takes="size, alpha=0.0001, beta=0.75, k=1")
def local_response_norm(call: Call, given: Given) -> Value:
    tensor = given.tensor("input")
    layout = None if tensor is None or tensor.layout is None else like(tensor.layout)
    if layout is not None and "CrossMapLRN2d" in call.name:
        layout = unknown_strides(layout.sizes)
    return _normalised(call, tensor, layout)


def _normalised(
    call: Call,
    tensor: TensorValue | None,
    layout: Layout | None,
    *,
    is_contiguous: bool = False,
    last: Size | None = None,
) -> Value:
    """autocast lets a normalisation return another dtype than it was given."""
    if last is None and tensor is not None:
        last = tensor.settled(-1)
    return result(call, tensor, layout, "normalised", is_contiguous=is_contiguous, last=last)


def _shape(given: Given) -> list[Size] | None:
    """normalized_shape, a number or several; None where not known."""
    wanted = given.value("normalized_shape")
    items = elements(wanted)
    if items is None:
        return given.sizes("normalized_shape", 1)
    sizes = [size for size in map(as_size, items) if size is not None]
    return sizes if len(sizes) == len(items) else None


weights(("LayerNorm", "RMSNorm"), "elementwise_affine", weight=_shape)
weights(("LayerNorm",), bias=_shape)
_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
weights(
    _NORMS,
    "affine",
    weight=lambda given: (given.size("num_features"),),
    bias=lambda given: (given.size("num_features"),),
)
weights(
    _NORMS,
    "track_running_stats",
    running_mean=lambda given: (given.size("num_features"),),
    running_var=lambda given: (given.size("num_features"),),
)
weights(
    ("GroupNorm",),
    "affine",
    weight=lambda given: (given.size("num_channels"),),
    bias=lambda given: (given.size("num_channels"),),
)
