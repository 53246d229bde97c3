"""Random operations of chains with new tensors as results: elementwise, reductions, products, layers."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from random_chains import Chain, Convert, Step
from random_steps import some_dim, step
from torch import Tensor

from shapefix.tensors import (
    concat,
    convolutions,
    dims,
    memory_format,
    networks,
    products,
    reductions,
    tensor_iterator,
)
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.polynomials import Size


def a_copy(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    repeats = [rng.randint(1, 2) for _ in range(rank)]
    return rng.choice(
        (
            step("clone()", lambda x: x.clone(), memory_format.preserve_format),
            step(
                "double()",
                lambda x: x.to(torch.int32).float(),
                lambda a: memory_format.preserve_format(memory_format.preserve_format(a)),
            ),
            step("relu()", lambda x: x.relu(), tensor_iterator.elementwise),
            step("+ 1", lambda x: x + 1, tensor_iterator.elementwise),
            step("contiguous()", lambda x: x.contiguous(), memory_format.as_contiguous),
            step("float()", lambda x: x.float(), lambda a: memory_format.to(a, changes=False)),
            step(f"repeat{repeats}", lambda x: x.repeat(repeats), lambda a: dims.repeat(a, repeats)),
            step("flip", lambda x: x.flip(list(range(rank))), lambda a: dims.flip(a, list(range(rank)))),
            step("roll", lambda x: x.roll(1), dims.roll),
            step("roll last", lambda x: x.roll(1, -1), lambda a: dims.roll(a, [-1])),
            step("tril", lambda x: x.masked_fill(x > 0, 0.0), lambda a: concat.masked_fill(a, a)),
        )
    )


def a_pair(chain: Chain, rng: random.Random) -> Step | None:
    """An elementwise operation with a second operand: the tensor itself, permuted, sliced, or a new one."""
    rank = chain.tensor.dim()
    if not rank:
        return None
    sizes = chain.sizes()
    kept = [size if rng.random() < 0.7 else Size.of(1) for size in sizes][rng.randint(0, rank - 1) :]
    order = rng.sample(range(len(kept)), len(kept))
    numbers = [chain.number(size) for size in kept]

    def other(convert: Convert) -> Layout:
        fresh = contiguous([convert(kept[dim]) for dim in order])
        return dims.permute(fresh, [order.index(dim) for dim in range(len(order))])

    def torch_other() -> Tensor:
        return torch.zeros([numbers[dim] for dim in order]).permute(
            [order.index(dim) for dim in range(len(order))]
        )

    text = f"other ({', '.join(map(str, kept))}) permuted {order}"
    if rng.random() < 0.5:
        return Step(
            f"x + {text}",
            lambda x: x + torch_other(),
            lambda a, convert: tensor_iterator.elementwise(a, other(convert)),
        )
    return Step(
        f"{text} + x",
        lambda x: torch_other() + x,
        lambda a, convert: tensor_iterator.elementwise(other(convert), a),
    )


def a_result(chain: Chain, rng: random.Random) -> Step | None:
    """Reductions, products, layers."""
    rank, sizes, dim = chain.tensor.dim(), chain.sizes(), some_dim(chain, rng)
    if not rank or not chain.tensor.numel():
        return None
    last, number = sizes[-1], chain.tensor.shape[-1]
    keep = rng.random() < 0.5
    weight = torch.zeros(3, number)
    index = torch.zeros([min(2, n) for n in chain.tensor.shape], dtype=torch.long)
    picks = torch.tensor([0, 0])
    return rng.choice(
        (
            step(
                f"sum({dim})", lambda x: x.sum(dim, keepdim=keep), lambda a: reductions.reduce(a, dim, keep)
            ),
            step(f"max({dim})", lambda x: x.max(dim)[0], lambda a: reductions.reduce(a, dim)),
            step("mean()", lambda x: x.mean(), reductions.reduce),
            step(f"softmax({dim})", lambda x: x.softmax(dim), lambda a: reductions.along_dim(a, dim)),
            step(f"cumsum({dim})", lambda x: x.cumsum(dim), lambda a: reductions.along_dim(a, dim)),
            step(f"sort({dim})", lambda x: x.sort(dim)[0], lambda a: reductions.sort(a, dim)),
            step(f"topk(1, {dim})", lambda x: x.topk(1, dim)[0], lambda a: reductions.topk(a, 1, dim)),
            Step(
                f"linear({last}, 3)",
                lambda x: F.linear(x, weight, torch.zeros(3)),
                lambda a, convert: products.linear(a, 3, convert(last)),
            ),
            step("x @ x.mT", lambda x: x @ x.mT, lambda a: products.matmul(a, dims.mT(a))),
            step("x.mT @ x", lambda x: x.mT @ x, lambda a: products.matmul(dims.mT(a), a)),
            Step(
                "x @ w.T",
                lambda x: x @ weight.T,
                lambda a, convert: products.matmul(a, dims.t(contiguous([3, convert(last)]))),
            ),
            Step(
                "layer_norm",
                lambda x: F.layer_norm(x, (number,)),
                lambda a, convert: networks.layer_norm(a, [convert(last)]),
            ),
            step(
                "embedding",
                lambda x: F.embedding(x.clamp(0, 2).long(), weight),
                lambda a: networks.embedding(a, number),
            ),
            step(f"cat x2 {dim}", lambda x: torch.cat([x, x], dim), lambda a: concat.cat([a, a], dim)),
            step(f"stack x2 {dim}", lambda x: torch.stack([x, x], dim), lambda a: concat.stack([a, a], dim)),
            step(
                "gather",
                lambda x: x.gather(0, index),
                lambda a: concat.gather(a, 0, contiguous(index.shape)),
            ),
            step(
                f"index_select({dim})",
                lambda x: x.index_select(dim, picks),
                lambda a: concat.index_select(a, dim, contiguous([2])),
            ),
            step("pad", lambda x: F.pad(x, (1, 0)), lambda a: concat.pad(a, (1, 0))),
            step(
                "one_hot",
                lambda x: F.one_hot(x.clamp(0, 1).long(), 2).float(),
                lambda a: concat.one_hot(a, 2),
            ),
            step(
                f"repeat_interleave(2, {dim})",
                lambda x: x.repeat_interleave(2, dim),
                lambda a: concat.repeat_interleave(a, 2, dim),
            ),
        )
    )


def a_convolution(chain: Chain, rng: random.Random) -> Step | None:
    """Convolution and pooling, of contiguous and channels_last inputs."""
    rank = chain.tensor.dim()
    if rank not in (3, 4, 5) or min(chain.tensor.shape) < 1:
        return None
    over, channels = rank - 2, chain.tensor.shape[1]
    kernel, stride, pad = (
        [rng.choice((1, 1, 2, 3)) for _ in range(over)],
        rng.choice((1, 1, 2)),
        rng.choice((0, 0, 1)),
    )
    pad = min(pad, min(kernel) // 2)
    weight, transposed = torch.zeros(2, channels, *kernel), torch.zeros(channels, 2, *kernel)
    conv = (F.conv1d, F.conv2d, F.conv3d)[over - 1]
    conv_transpose = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[over - 1]
    pool = (F.avg_pool1d, F.max_pool2d, F.max_pool3d)[over - 1]
    ceil = rng.random() < 0.3
    order = (0, *range(2, rank), 1)
    last = step(
        "channels_last",
        lambda x: (
            x.permute(order)
            .clone(memory_format=torch.contiguous_format)
            .permute(0, rank - 1, *range(1, rank - 1))
        ),
        lambda a: dims.permute(contiguous(dims.permute(a, order).sizes), (0, rank - 1, *range(1, rank - 1))),
    )
    text = f"kernel {kernel} stride {stride} pad {pad}"
    return rng.choice(
        (
            last,
            step(
                f"conv {text}",
                lambda x: conv(x, weight, None, stride, pad),
                lambda a: convolutions.conv(a, 2, kernel, stride, pad, in_channels=None),
            ),
            step(
                f"conv_transpose kernel {kernel} stride {stride}",
                lambda x: conv_transpose(x, transposed, None, stride),
                lambda a: convolutions.conv_transpose(a, 2, kernel, stride),
            ),
            step(
                f"pool {text} ceil {ceil}",
                lambda x: pool(x, kernel, stride, pad, ceil_mode=ceil),
                lambda a: convolutions.pool(a, kernel, stride, pad, ceil_mode=ceil),
            ),
        )
    )
