"""Normalization layers."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_size
from shapefix.library.nn.layers import functional, layer, result, weights
from shapefix.library.optim.modes import mode_of
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import assume_rank
from shapefix.tensors import networks
from shapefix.tensors.errors import OneValuePerChannel
from shapefix.tensors.layout import Layout, unknown_strides
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.networks import check_divisible
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size, product
from shapefix.tensors.products import check_size


def _groups_fit(given: BoundArguments) -> None:
    channels, groups = given.size("num_channels"), given.size("num_groups")
    if channels is not None and groups is not None:
        check_divisible(channels, groups, "num_channels")


def _batch_norm_layer(rank: int | None, *kinds: str) -> None:
    """Register the layers over `rank` spatial dimensions: 0 or 1 for rank 1, any number for None."""
    ranks = (2, 3, 4, 5) if rank is None else (2, 3) if rank == 1 else (rank + 2,)

    @layer(*kinds, *(f"Lazy{kind}" for kind in kinds if rank is not None))
    def batch_norm(call: Call, given: BoundArguments) -> Value:
        tensor = given.tensor("input")
        layout = None
        # Without weights and statistics no size depends on the number of channels.
        has_sizes = given.flag("affine") or given.flag("track_running_stats")
        channels = given.size("num_features") if has_sizes and "num_features" in given.values else None
        if tensor is not None and len(ranks) == 1:
            assume_rank(call, tensor, ranks[0])
        if tensor is not None and tensor.layout is not None:
            layout = networks.batch_norm(tensor.layout, channels, ranks)
            if _uses_batch(call, given):
                _refuse_one_value(layout)
        elif channels is not None:
            _channels_are(tensor, channels)
        return _normalized(call, tensor, layout, Op.BATCH_NORM)


def _uses_batch(call: Call, given: BoundArguments) -> bool:
    """Check whether a batch norm certainly normalizes with the statistics of the batch."""
    is_training = call.receiver is not None and mode_of(call.ev, call.receiver) is True
    return is_training or given.flag("track_running_stats") is False


def _refuse_one_value(layout: Layout) -> None:
    """Raise OneValuePerChannel if the statistics of each channel have a single value."""
    if product((layout.sizes[0], *layout.sizes[2:])).value == 1:
        raise OneValuePerChannel("more than 1 value per channel is needed for a mean and a variance")


for _rank in (1, 2, 3):
    _batch_norm_layer(_rank, f"BatchNorm{_rank}d")
_batch_norm_layer(None, "SyncBatchNorm")


def _channels_are(tensor: TensorValue | None, channels: Size) -> None:
    """Check the channels of a tensor of unknown rank. Raises SizeMismatch if they provably differ."""
    have = None if tensor is None else tensor.known_size(1)
    if have is not None:
        check_size(have, channels, dim=1)


@functional("batch_norm")
def batch_norm_function(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = networks.batch_norm(tensor.layout, ranks=range(2, 9))
        if given.flag("training"):
            _refuse_one_value(layout)
        for name in ("running_mean", "running_var", "weight", "bias"):
            held = given.tensor(name)
            if held is not None and held.layout is not None and held.layout.rank == 1:
                check_size(tensor.layout.sizes[1], held.layout.sizes[0], dim=1)
    return _normalized(call, tensor, layout, Op.BATCH_NORM)


@layer("GroupNorm", validate=_groups_fit)
@functional("group_norm")
def group_norm(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None
    channels = given.size("num_channels") if given.flag("affine") and "num_channels" in given.values else None
    if tensor is not None and tensor.layout is not None:
        layout = networks.group_norm(tensor.layout, given.size("num_groups"), channels)
    elif channels is not None:
        _channels_are(tensor, channels)
    return _normalized(call, tensor, layout, Op.GROUP_NORM)


def _instance_norm_layer(rank: int) -> None:
    @layer(f"InstanceNorm{rank}d", f"LazyInstanceNorm{rank}d")
    def instance_norm(call: Call, given: BoundArguments) -> Value:
        tensor = given.tensor("input")
        layout = None
        # torch only warns if there are no weights.
        has_sizes = given.flag("affine") and "num_features" in given.values
        channels = given.size("num_features") if has_sizes else None
        if tensor is not None and tensor.layout is not None:
            layout = networks.instance_norm(tensor.layout, rank, channels)
        elif tensor is not None and channels is not None and tensor.known_size(-rank - 1) is not None:
            check_size(tensor.size(-rank - 1), channels, dim=-rank - 1)
        return _normalized(call, tensor, layout, Op.INSTANCE_NORM, is_contiguous=True)


for _rank in (1, 2, 3):
    _instance_norm_layer(_rank)


@functional("instance_norm")
def instance_norm_function(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = networks.instance_norm(tensor.layout)
    return _normalized(call, tensor, layout, Op.INSTANCE_NORM, is_contiguous=True)


@layer("LayerNorm")
@functional("layer_norm")
@functional("layer_norm", namespaces=("torch",))
def layer_norm(call: Call, given: BoundArguments) -> Value:
    tensor, shape = given.tensor("input"), _shape(given)
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = networks.layer_norm(tensor.layout, shape or ())
    else:
        _last_sizes_are(tensor, shape)
    return _normalized(
        call, tensor, layout, Op.LAYER_NORM, is_contiguous=True, last=shape[-1] if shape else None
    )


@layer("RMSNorm")
@functional("rms_norm", namespaces=("torch", "torch.nn.functional"))
def rms_norm(call: Call, given: BoundArguments) -> Value:
    tensor, shape = given.tensor("input"), _shape(given)
    layout = None
    if tensor is not None and tensor.layout is not None:
        layout = networks.rms_norm(tensor.layout, shape or ())
    else:
        _last_sizes_are(tensor, shape)
    return _normalized(call, tensor, layout, Op.RMS_NORM, last=shape[-1] if shape else None)


@layer("LocalResponseNorm")
@functional("local_response_norm")
@layer("CrossMapLRN2d")
def local_response_norm(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None if tensor is None or tensor.layout is None else preserve_format(tensor.layout)
    if layout is not None and "CrossMapLRN2d" in call.name:
        layout = unknown_strides(layout.sizes)
    return _normalized(call, tensor, layout, Op.LOCAL_RESPONSE_NORM)


def _normalized(
    call: Call,
    tensor: TensorValue | None,
    layout: Layout | None,
    op: Op,
    *,
    is_contiguous: bool = False,
    last: Size | None = None,
) -> Value:
    """Result of unknown dtype: under autocast it may differ from the input's."""
    if last is None and tensor is not None:
        last = tensor.known_size(-1)
    return result(call, tensor, layout, op, is_contiguous=is_contiguous, last=last)


def _last_sizes_are(tensor: TensorValue | None, shape: list[Size] | None) -> None:
    """Check the last sizes of a tensor of unknown rank. Raises SizeMismatch if they provably differ."""
    for dim in range(-len(shape or ()), 0):
        have = None if tensor is None else tensor.known_size(dim)
        if have is not None and shape is not None:
            check_size(have, shape[dim], dim)


def _shape(given: BoundArguments) -> list[Size] | None:
    """normalized_shape, a number or several; None if unknown."""
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
weights(
    tuple(f"InstanceNorm{rank}d" for rank in (1, 2, 3)),
    "affine",
    weight=lambda given: (given.size("num_features"),),
    bias=lambda given: (given.size("num_features"),),
)
weights(
    tuple(f"Lazy{norm}Norm{rank}d" for norm in ("Batch", "Instance") for rank in (1, 2, 3)),
    "affine",
    weight=lambda given: None,
    bias=lambda given: None,
)
