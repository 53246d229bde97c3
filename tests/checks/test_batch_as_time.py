"""SF521: layers without batch_first, reported where the output of a sample depends on another one."""

from __future__ import annotations

import pytest
import torch
from checking import Check

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(8, 5, 4)), batch_size=4)
linear, norm = nn.Linear(4, 4), nn.LayerNorm(4)
"""
LAYERS = {
    "nn.LSTM(4, 6)": "net({})[0]",
    "nn.GRU(4, 6, num_layers=2)": "net({})[0]",
    "nn.RNN(4, 6, batch_first=False)": "net({})[0]",
    "nn.LSTM(4, 6, bidirectional=True, batch_first=True)": "net({})[0]",
    "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)": "net({})",
    "nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)": "net({})",
}
INPUTS = [
    ("x", 0),
    ("torch.relu(norm(linear(x)))", 0),
    ("x.view(x.size(0), 10, 2).repeat(1, 1, 2)", 0),
    ("x * 2 + 1", 0),
    ("x.transpose(0, 1)", 1),
    ("x.permute(1, 0, 2).contiguous()", 1),
    ("linear(x.transpose(1, 0))", 1),
]


def is_mixed(code: str, dim: int) -> bool:
    """Whether the output of the last sample changes with the first one."""
    scope: dict[str, object] = {}
    exec(f"{HEAD}{code}", scope)
    run, batch = scope["run"], scope["x"]
    assert callable(run)
    assert isinstance(batch, torch.Tensor)
    changed = batch.clone()
    changed[0] += 1
    one, other = run(batch), run(changed)
    return not torch.allclose(one.select(dim, 3), other.select(dim, 3))


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(("given", "dim"), INPUTS)
def test_reported_where_samples_are_mixed(check: Check, layer: str, given: str, dim: int) -> None:
    call = LAYERS[layer].format(given)
    code = f"net = {layer}\n\ndef run(x):\n    return {call}\n\nfor (x,) in loader:\n    run(x)\n"
    is_reported = [each.code for each in check(f"{HEAD}{code}", {"SF521"})] == ["SF521"]
    mixed = is_mixed(code, dim)
    if "batch_first=True" in layer and dim == 1:
        # The same mistake the other way round: known for recurrent layers.
        assert mixed
        assert is_reported == layer.startswith("nn.LSTM")
    else:
        assert is_reported == mixed
