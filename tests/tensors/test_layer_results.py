"""Layouts of layers and functions that the random chains do not cover, compared with torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from shapefix.tensors import concat, convolutions, networks, products, reductions, tensor_iterator
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, sizes_of
from shapefix.tensors.polynomials import Size

N = torch.nn


def layout_of(tensor: torch.Tensor) -> Layout:
    return Layout(sizes_of(tensor.shape), sizes_of(tensor.stride()))


def agrees(layout: Layout, tensor: torch.Tensor) -> None:
    assert layout.sizes == sizes_of(tensor.shape)
    for dim, size in enumerate(tensor.shape):
        assert size == 1 or layout.strides[dim] == tensor.stride(dim), f"{layout}, torch {tensor.stride()}"


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("shape", [(2, 5, 8), (5, 8), (1, 1, 8)])
def test_recurrence(shape: tuple[int, ...], bidirectional: bool, batch_first: bool) -> None:
    for projection in (None, 3):
        module = N.LSTM(
            8, 6, 2, batch_first=batch_first, bidirectional=bidirectional, proj_size=projection or 0
        )
        output, (hidden, _) = module(torch.randn(shape))
        ours = networks.recurrent(
            contiguous(shape),
            6,
            layers=2,
            bidirectional=bidirectional,
            batch_first=batch_first,
            projection=projection,
            features=8,
        )
        agrees(ours[0], output)
        agrees(ours[1], hidden)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("evaluates", [True, False])
def test_attention_modules(batch_first: bool, average: bool, evaluates: bool) -> None:
    module = N.MultiheadAttention(8, 2, batch_first=batch_first).train(not evaluates)
    for query, key in ((torch.randn(2, 5, 8), torch.randn(2, 5, 8)), (torch.randn(5, 8), torch.randn(5, 8))):
        with torch.set_grad_enabled(not evaluates):
            output, weights = module(query, key, key, average_attn_weights=average)
        self_attended, _ = module(query, query, query)
        ours = networks.multihead_attention(
            layout_of(query), layout_of(key), heads=2, batch_first=batch_first, average=average
        )
        agrees(ours[0], self_attended)
        agrees(ours[1], weights)
        assert output.shape == self_attended.shape


def test_the_fast_path_of_attention_gives_another_layout() -> None:
    x = torch.randn(2, 5, 8)
    module = N.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        output, _ = module(x, x, x)
    ours = networks.multihead_attention(layout_of(x), layout_of(x), batch_first=True, fast_path=True)[0]
    agrees(ours, output)
    unknown = networks.multihead_attention(layout_of(x), layout_of(x), batch_first=True, fast_path=None)[0]
    assert not unknown.is_constant


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij,jk", [(3, 4), (4, 2)]),
        ("i,i->", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("ii->i", [(3, 3)]),
        ("b...->...", [(2, 3, 4)]),
    ],
)
def test_sizes_of_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    found = torch.einsum(equation, *(torch.randn(shape) for shape in shapes))
    assert products.einsum(equation, [contiguous(shape) for shape in shapes]).sizes == sizes_of(found.shape)


@pytest.mark.parametrize("padding", [0, 1, "same", "valid"])
def test_convolutions_of_symbolic_images(padding: int | str) -> None:
    batch, height = Size.symbol("B"), Size.symbol("h", 3)
    ours = convolutions.conv(contiguous([batch, 3, height, 32]), 8, (3, 3), padding=padding, in_channels=3)
    shrinks = padding in (0, "valid")
    assert ours == contiguous([batch, 8, height - 2 * shrinks, 32 - 2 * shrinks])
    found = N.Conv2d(3, 8, 3, padding=padding)(torch.randn(2, 3, 32, 32))
    assert found.shape[-1] == (30 if shrinks else 32)


def test_convolution_arithmetic() -> None:
    x = torch.randn(2, 3, 15, 17)
    module = N.Conv2d(3, 4, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1))
    agrees(convolutions.conv(layout_of(x), 4, (3, 5), (2, 3), (1, 2), (2, 1)), module(x))
    up = N.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)
    agrees(convolutions.conv_transpose(layout_of(x), 4, (3, 3), 2, 1, 1), up(x))
    agrees(convolutions.pool(layout_of(x), (2, 2)), F.max_pool2d(x, 2))
    agrees(
        convolutions.pool(layout_of(x), (3, 3), 2, 1, ceil_mode=True),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    )
    agrees(convolutions.resize(layout_of(x), (7, None)), F.adaptive_avg_pool2d(x, (7, None)))
    agrees(convolutions.conv(layout_of(x[0]), 4, (3, 3)), N.Conv2d(3, 4, 3)(x[0]))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_channels_last_goes_through(memory_format: torch.memory_format) -> None:
    x = torch.randn(2, 6, 4, 4).to(memory_format=memory_format)
    ours = layout_of(x)
    agrees(networks.batch_norm(ours), N.BatchNorm2d(6)(x))
    agrees(networks.batch_norm(ours), N.GroupNorm(2, 6)(x))
    agrees(networks.rms_norm(ours, [4]), F.rms_norm(x, (4,)))
    agrees(convolutions.resize(ours, (8, 8)), F.interpolate(x, size=(8, 8)))
    agrees(concat.cat([ours, ours], 1), torch.cat([x, x], 1))
    agrees(concat.stack([ours, ours], 0), torch.stack([x, x], 0))
    agrees(concat.pad(ours, (1, 1)), F.pad(x, (1, 1)))
    agrees(networks.layer_norm(ours, [4]), F.layer_norm(x, (4,)))
    agrees(concat.masked_fill(ours, ours), x.masked_fill(x > 0, 0.0))
    agrees(
        convolutions.conv(ours, 3, (1, 1), weight_channels_last=False), F.conv2d(x, torch.randn(3, 6, 1, 1))
    )
    weight = torch.randn(3, 6, 2, 2).to(memory_format=torch.channels_last)
    agrees(convolutions.conv(ours, 3, (2, 2), weight_channels_last=True), F.conv2d(x, weight))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4,), (4,)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4,)),
        ((5, 1, 3, 4), (2, 4, 6)),
        ((3, 4), (2, 4, 5)),
    ],
)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    agrees(products.matmul(contiguous(left), contiguous(right)), torch.randn(left) @ torch.randn(right))


T, X = Size.symbol("T"), contiguous([2, 3])


@pytest.mark.parametrize(
    ("ours", "torchs"),
    [
        (lambda: products.matmul(X, X), lambda x: x @ x),
        (lambda: products.linear(X, 5, 4), lambda x: N.Linear(4, 5)(x)),
        (lambda: networks.layer_norm(X, [4]), lambda x: F.layer_norm(x, (4,))),
        (lambda: concat.cat([X, contiguous([2, 4])]), lambda x: torch.cat([x, torch.zeros(2, 4)])),
        (lambda: concat.stack([X, contiguous([2, 4])]), lambda x: torch.stack([x, torch.zeros(2, 4)])),
        (lambda: tensor_iterator.elementwise(X, contiguous([4])), lambda x: x + torch.zeros(4)),
        (lambda: reductions.reduce(X, 2), lambda x: x.sum(2)),
        (lambda: reductions.reduce(X, (1, 1)), lambda x: x.sum((1, 1))),
        (lambda: reductions.topk(X, 4), lambda x: x.topk(4)),
        (
            lambda: concat.gather(X, 0, contiguous([1])),
            lambda x: x.gather(0, torch.zeros(1, dtype=torch.long)),
        ),
        (lambda: concat.pad(X, (1, 1, 1)), lambda x: F.pad(x, (1, 1, 1))),
        (lambda: convolutions.conv(X, 1, (3,), in_channels=3), lambda x: N.Conv1d(3, 1, 3)(x)),
        (lambda: convolutions.conv(X, 1, (4,), in_channels=2), lambda x: N.Conv1d(2, 1, 4)(x)),
        (lambda: networks.recurrent(X, 1, features=4), lambda x: N.GRU(4, 1)(x)),
        (lambda: products.einsum("ij,jk->ik", [X, X]), lambda x: torch.einsum("ij,jk->ik", x, x)),
    ],
)
def test_both_refuse(ours: Callable[[], Layout], torchs: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        torchs(torch.randn(2, 3))
    with pytest.raises(ShapeError):
        ours()


def test_what_only_may_be_wrong_is_let_through() -> None:
    assert products.matmul(contiguous([2, T]), contiguous([3, 4])).sizes == contiguous([2, 4]).sizes
    assert products.linear(contiguous([2, T]), 5, 4) == contiguous([2, 5])
    assert tensor_iterator.elementwise(contiguous([T]), contiguous([4])).sizes == sizes_of([4])
    with pytest.raises(ShapeError):
        products.linear(contiguous([2, T + 4]), 5, 4)
