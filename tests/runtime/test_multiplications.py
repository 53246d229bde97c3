"""The multiplications of layers, against torch's own counter of operations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from shapefix.runtime.agent.multiplications import multiplications

LAYERS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]] = {
    "linear": (nn.Linear(6, 5), (torch.randn(3, 4, 6),)),
    "convolution": (nn.Conv2d(4, 6, 3, stride=2, groups=2), (torch.randn(2, 4, 9, 8),)),
    "convolution 1d": (nn.Conv1d(4, 6, 3, padding=1, dilation=2), (torch.randn(2, 4, 9),)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2), (torch.randn(2, 4, 5, 5),)),
    "transposed groups": (nn.ConvTranspose2d(4, 6, 2, groups=2), (torch.randn(2, 4, 5, 5),)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_they_are_those_that_torch_counts(name: str) -> None:
    layer, given = LAYERS[name]
    with FlopCounterMode(display=False) as counter:
        out = layer(*given)
    assert multiplications(layer, given, {}, out) == counter.get_total_flops() // 2


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_recurrent_layer_is_a_linear_layer_per_step(kind: Any, bidirectional: bool) -> None:
    layer = kind(5, 7, num_layers=2, bidirectional=bidirectional)
    data = torch.randn(4, 3, 5)
    weights = sum(each.numel() for name, each in layer.named_parameters() if "weight" in name)
    assert multiplications(layer, (data,), {}, layer(data)) == 4 * 3 * weights
    packed = nn.utils.rnn.pack_padded_sequence(data, torch.tensor([4, 3, 2]))
    assert multiplications(layer, (packed,), {}, layer(packed)) == 9 * weights


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention(batch_first: bool) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    query, key = torch.randn(3, 5, 8), torch.randn(3, 6, 8)
    if not batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    with FlopCounterMode(display=False) as counter:
        out = layer(query, key, value=key, need_weights=True)
    assert multiplications(layer, (query, key), {"value": key}, out) == counter.get_total_flops() // 2


def test_other_modules_have_none() -> None:
    x = torch.randn(2, 3)
    assert multiplications(nn.ReLU(), (x,), {}, x) is None
    assert multiplications(nn.Linear(3, 2), (), {}, None) is None
