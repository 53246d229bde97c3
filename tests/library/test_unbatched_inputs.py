"""Layers that take inputs without a batch: code that relies on the smaller rank is right, as torch has it."""

from __future__ import annotations

import pytest
from checking import Check

LAYERS = {
    "nn.Conv1d(3, 4, 3)": (3, 9),
    "nn.Conv2d(3, 4, 3)": (3, 9, 9),
    "nn.Conv3d(3, 4, 3)": (3, 9, 9, 9),
    "nn.ConvTranspose1d(3, 4, 3)": (3, 9),
    "nn.ConvTranspose2d(3, 4, 3)": (3, 9, 9),
    "nn.MaxPool1d(2)": (4, 9),
    "nn.MaxPool2d(2)": (4, 9, 9),
    "nn.AvgPool2d(2)": (4, 9, 9),
    "nn.AdaptiveAvgPool2d(1)": (4, 9, 9),
    "nn.InstanceNorm2d(4)": (4, 9, 9),
    "nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2))": (3, 9, 9),
}
USES = {
    "unpacked": "{names} = y.shape",
    "permuted": "y = y.permute({order})",
    "squeezed": "y = y.squeeze({last})",
    "indexed": "y = y[{index}]",
    "flat": "y = nn.Linear(y.numel(), 2)(y.flatten())",
    "summed": "y = y.sum({last})",
    "a row each": "c = y.shape[0]; y = y.view(c, -1); c, n = y.shape",
    "stacked": "y = torch.cat([y, torch.ones(y.shape)])",
}
FUNCTION = """
import torch
from torch import nn

layer = {layer}

def run(x):
    y = layer(x)
    {use}
    return y
"""
SHAPE_RULES = ("SF501", "SF502", "SF503", "SF504", "SF506", "SF507", "SF510", "SF511")


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("batch", [(), (2,)], ids=["unbatched", "batched"])
@pytest.mark.parametrize("layer", LAYERS)
def test_code_for_one_rank_or_the_other_is_right(
    layer: str, batch: tuple[int, ...], use: str, check: Check
) -> None:
    import torch

    sizes = (*batch, *LAYERS[layer])
    rank = len(sizes)
    text = FUNCTION.format(
        layer=layer,
        use=USES[use].format(
            names=", ".join(f"n{dim}" for dim in range(rank)),
            order=", ".join(map(str, reversed(range(rank)))),
            last=rank - 1,
            index=", ".join(["0"] * rank),
        ),
    )
    namespace: dict[str, object] = {}
    exec(text, namespace)
    run = namespace["run"]
    assert callable(run)
    run(torch.zeros(sizes))
    assert not check(text, SHAPE_RULES)


@pytest.mark.parametrize(
    ("use", "known"),
    [
        ("a, b, c, d, e = y.shape", "x = torch.zeros(2, 3, 9, 9)"),
        ("y = y.permute(0, 2, 1)", "x = torch.zeros(2, 3, 9, 9)"),
        ("y = nn.Linear(5, 2)(nn.AdaptiveAvgPool2d(1)(y).flatten(1))", ""),
        ("y = nn.Conv2d(5, 4, 3)(y)", ""),
        ("y = y.mean()[0]", ""),
        ("y = nn.functional.mse_loss(y, torch.zeros_like(y))[0]", ""),
        ("b, c, h = y.view(y.size(0), -1).shape", ""),
        ("y = y.reshape(-1, 4)[:, 0, 0]", ""),
    ],
)
def test_what_fails_for_every_rank_is_found(use: str, known: str, check: Check) -> None:
    text = FUNCTION.format(layer="nn.Conv2d(3, 4, 3)", use=use)
    found = check(f"{text}\n{known}\n{'run(x)' if known else ''}\n", SHAPE_RULES)
    assert len(found) == 1


def test_recurrent_layers_take_one_sequence(check: Check) -> None:
    import torch

    text = FUNCTION.format(layer="nn.LSTM(3, 4, batch_first=True)", use="t, d = y[0].shape; h = y[1][0][0]")
    namespace: dict[str, object] = {}
    exec(text, namespace)
    run = namespace["run"]
    assert callable(run)
    run(torch.zeros(9, 3))
    assert not check(text, SHAPE_RULES)


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
@pytest.mark.parametrize("batch", [(), (5,)], ids=["unbatched", "batched"])
def test_the_states_of_a_recurrent_layer_show_the_rank_of_its_input(
    layer: str, batch: tuple[int, ...], check: Check
) -> None:
    import torch

    def text(names: str) -> str:
        state = f"torch.zeros({(1, *batch, 4)})"
        states = f"({state}, {state})" if layer == "LSTM" else state
        return FUNCTION.format(
            layer=f"nn.{layer}(3, 4, batch_first=True)",
            use=f"{names} = y[0].shape",
        ).replace("layer(x)", f"layer(x, {states})")

    right, wrong = ("t, d", "b, t, d") if not batch else ("b, t, d", "t, d")
    namespace: dict[str, object] = {}
    exec(text(right), namespace)
    run = namespace["run"]
    assert callable(run)
    run(torch.zeros(*batch, 9, 3))
    assert not check(text(right), SHAPE_RULES)
    assert len(check(text(wrong), SHAPE_RULES)) == 1


def test_a_view_of_unknown_rank_keeps_it_unknown(check: Check) -> None:
    use = "x = x.view(*x.size()[:2], -1); layer(x); torch.bmm(x, x.permute(0, 2, 1))"
    assert not check(FUNCTION.format(layer="nn.Conv2d(3, 4, 3)", use=use), SHAPE_RULES)
