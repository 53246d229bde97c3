"""Layers given what they do not take: the interpreter is told that torch raises exactly where torch does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from differential import IMPORTS, interpret

from shapefix.interpreter.events import OpRejected
from shapefix.tensors.errors import NotDivisible

pytestmark = pytest.mark.slow

Draw = Callable[[random.Random], str]


def refused(source: str) -> list[OpRejected]:
    """What the interpreter says that torch refuses in source."""
    return [event for event in interpret(IMPORTS + source) if isinstance(event, OpRejected)]


def raises(source: str) -> Exception | None:
    """What torch raises when it runs source."""
    import torch

    torch.manual_seed(0)
    try:
        exec(compile(IMPORTS + source, "script.py", "exec"), {"unknown": int})
    except Exception as error:
        return error
    return None


def shape(rng: random.Random, *sizes: int, wrong: float = 0.15) -> list[int]:
    """The sizes, one or another of them changed, a dimension more or less now and then."""
    drawn = [size if rng.random() > wrong else rng.choice((3, 4, 5, 6, 8)) for size in sizes]
    if rng.random() < wrong and len(drawn) > 1:
        del drawn[rng.randrange(len(drawn))]
    elif rng.random() < wrong:
        drawn.insert(rng.randrange(len(drawn)), rng.choice((2, 4)))
    return drawn


def tensor(rng: random.Random, *sizes: int, wrong: float = 0.15) -> str:
    return f"torch.randn({', '.join(map(str, shape(rng, *sizes, wrong=wrong)))})"


def linear(rng: random.Random) -> str:
    return f"nn.Linear(8, 5)({tensor(rng, 2, 6, 8)})"


def bilinear(rng: random.Random) -> str:
    return f"nn.Bilinear(8, 6, 5)({tensor(rng, 2, 4, 8)}, {tensor(rng, 2, 4, 6)})"


def convolution(rng: random.Random) -> str:
    rank, kind = rng.choice((1, 2, 3)), rng.choice(("Conv", "ConvTranspose"))
    groups, kernel = rng.choice((1, 1, 2, 4)), rng.choice((1, 2, 3, 5))
    padding, dilation = rng.choice((0, 0, 1)), rng.choice((1, 1, 2))
    settings = f"padding={padding}, dilation={dilation}, stride={rng.choice((1, 2))}, groups={groups}"
    channels = rng.choice((4, 4, 8, 6))
    given = tensor(rng, 2, channels, *(rng.choice((2, 3, 4, 6)) for _ in range(rank)), wrong=0.08)
    return f"nn.{kind}{rank}d({channels}, {rng.choice((4, 4, 6))}, {kernel}, {settings})({given})"


def convolution_function(rng: random.Random) -> str:
    rank, groups = rng.choice((1, 2)), rng.choice((1, 1, 2))
    weight = tensor(rng, 6, 4 // groups, *[3] * rank, wrong=0.1)
    given = tensor(rng, 2, 4, *[5] * rank, wrong=0.1)
    return f"F.conv{rank}d({given}, {weight}, padding={rng.choice((0, 1))}, groups={groups})"


def pooling(rng: random.Random) -> str:
    rank, kind = rng.choice((1, 2, 3)), rng.choice(("Max", "Avg"))
    settings = f"{rng.choice((2, 3, 4))}, padding={rng.choice((0, 0, 1, 2))}, ceil_mode={rng.random() < 0.3}"
    return f"nn.{kind}Pool{rank}d({settings})({tensor(rng, 2, 4, *[rng.choice((2, 3, 6))] * rank)})"


def adaptive_pooling(rng: random.Random) -> str:
    rank = rng.choice((1, 2, 3))
    kind = rng.choice((f"AdaptiveAvgPool{rank}d", f"AdaptiveMaxPool{rank}d"))
    return f"nn.{kind}({rng.choice((1, 2, 3))})({tensor(rng, 2, 4, *[6] * rank)})"


def batch_norm(rng: random.Random) -> str:
    rank = rng.choice((1, 1, 2, 3))
    settings = f"affine={rng.random() < 0.7}, track_running_stats={rng.random() < 0.7}"
    spatial = [5] * rng.choice((rank, rank, rank - 1))
    return f"nn.BatchNorm{rank}d(4, {settings})({tensor(rng, 3, 4, *spatial)})"


def group_norm(rng: random.Random) -> str:
    channels = rng.choice((4, 6, 8))
    given = tensor(rng, 2, channels, *[5] * rng.choice((0, 1, 2)))
    return f"nn.GroupNorm({rng.choice((1, 2, 4, 3))}, {channels}, affine={rng.random() < 0.7})({given})"


def instance_norm(rng: random.Random) -> str:
    rank = rng.choice((1, 2, 3))
    settings = f"affine={rng.random() < 0.6}"
    return f"nn.InstanceNorm{rank}d(4, {settings})({tensor(rng, 2, 4, *[5] * rank)})"


def last_norm(rng: random.Random) -> str:
    kind = rng.choice(("LayerNorm", "RMSNorm"))
    wanted = rng.choice(("8", "(8,)", "(6, 8)", "[6, 8]"))
    return f"nn.{kind}({wanted})({tensor(rng, 2, 6, 8)})"


def recurrent(rng: random.Random) -> str:
    kind, layers = rng.choice(("RNN", "LSTM", "GRU")), rng.choice((1, 2))
    both, first = rng.random() < 0.4, rng.random() < 0.5
    settings = f"num_layers={layers}, bidirectional={both}, batch_first={first}"
    batch, steps = 3, 5
    sizes = rng.choice([(batch, steps, 8) if first else (steps, batch, 8), (steps, 8)])
    states = [layers * (1 + both), *([batch] if len(sizes) == 3 else []), 6]
    hidden = tensor(rng, *states, wrong=0.08)
    if kind == "LSTM":
        width = rng.choice((0, 0, 4))
        settings += f", proj_size={width}"
        hidden = f"({tensor(rng, *states[:-1], width or 6, wrong=0.06)}, {tensor(rng, *states, wrong=0.06)})"
    given = tensor(rng, *sizes, wrong=0.06)
    rest = f", {hidden}" if rng.random() < 0.7 else ""
    return f"nn.{kind}(8, 6, {settings})({given}{rest})"


def cell(rng: random.Random) -> str:
    kind = rng.choice(("RNNCell", "LSTMCell", "GRUCell"))
    lead = rng.choice(((3,), ()))
    hidden = tensor(rng, *lead, 6)
    if kind == "LSTMCell":
        hidden = f"({hidden}, {tensor(rng, *lead, 6, wrong=0.08)})"
    rest = f", {hidden}" if rng.random() < 0.7 else ""
    return f"nn.{kind}(8, 6)({tensor(rng, *lead, 8)}{rest})"


def attention(rng: random.Random) -> str:
    first, batched = rng.random() < 0.5, rng.random() < 0.8
    own = rng.random() < 0.4
    settings = f"batch_first={first}" + (", kdim=5, vdim=6" if own else "")

    def sequence(steps: int, width: int) -> str:
        sizes = (steps, width) if not batched else (2, steps, width) if first else (steps, 2, width)
        return tensor(rng, *sizes, wrong=0.05)

    given = [sequence(3, 8), sequence(4, 5 if own else 8), sequence(4, 6 if own else 8)]
    if rng.random() < 0.4:
        given.append(
            f"attn_mask={tensor(rng, *rng.choice(((3, 4), (4 if batched else 2, 3, 4))), wrong=0.06)}"
        )
    if rng.random() < 0.4:
        lead = (2,) if batched else ()
        given.append(f"key_padding_mask={tensor(rng, *lead, 4, wrong=0.08)} > 9")
    return f"nn.MultiheadAttention(8, {rng.choice((2, 2, 4, 3))}, {settings})({', '.join(given)})"


def encoder_layer(rng: random.Random) -> str:
    first = rng.random() < 0.5
    given = [tensor(rng, *((2, 5, 8) if first else (5, 2, 8)), wrong=0.08)]
    if rng.random() < 0.4:
        given.append(f"src_mask={tensor(rng, 5, 5, wrong=0.08)}")
    if rng.random() < 0.4:
        given.append(f"src_key_padding_mask={tensor(rng, 2, 5, wrong=0.08)} > 9")
    layer = f"nn.TransformerEncoderLayer(8, 2, 16, batch_first={first})"
    if rng.random() < 0.3:
        given = given[:1]
        layer = f"nn.TransformerEncoder({layer}, 2)"
    return f"{layer}({', '.join(given)})"


def decoder_layer(rng: random.Random) -> str:
    first = rng.random() < 0.5
    sizes = [(2, steps, 8) if first else (steps, 2, 8) for steps in (5, 3)]
    given = [tensor(rng, *size, wrong=0.06) for size in sizes]
    if rng.random() < 0.4:
        given.append(f"tgt_mask={tensor(rng, 5, 5, wrong=0.08)}")
    if rng.random() < 0.4:
        given.append(f"memory_mask={tensor(rng, 5, 3, wrong=0.08)}")
    if rng.random() < 0.3:
        given.append(f"memory_key_padding_mask={tensor(rng, 2, 3, wrong=0.08)} > 9")
    layer = f"nn.TransformerDecoderLayer(8, 2, 16, batch_first={first})"
    if rng.random() < 0.3:
        layer, given = f"nn.Transformer(8, 2, 1, 1, 16, batch_first={first})", given[:2]
    return f"{layer}({', '.join(given)})"


def shuffling(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return f"nn.PixelShuffle(2)({tensor(rng, 2, 8, 3, 5, wrong=0.2)})"
    return f"nn.PixelUnshuffle(2)({tensor(rng, 2, 3, 4, 6, wrong=0.2)})"


def sequential(rng: random.Random) -> str:
    layers = [
        f"nn.Conv2d(3, {rng.choice((4, 4, 4, 6))}, 3)",
        f"nn.BatchNorm2d({rng.choice((4, 4, 4, 6))})",
        "nn.ReLU(inplace=True)",
        f"nn.MaxPool2d({rng.choice((2, 2, 2, 4))})",
        "nn.Flatten()",
        f"nn.Linear({rng.choice((36, 36, 36, 16))}, 5)",
        "nn.Dropout(0.1)",
        f"nn.Linear({rng.choice((5, 5, 5, 6))}, 2)",
    ]
    return f"nn.Sequential({', '.join(layers)})({tensor(rng, 2, 3, 8, 8, wrong=0.05)})"


LAYERS: list[Draw] = [
    *(linear, bilinear, convolution, convolution_function, pooling, adaptive_pooling, batch_norm, group_norm),
    *(
        instance_norm,
        last_norm,
        recurrent,
        cell,
        attention,
        encoder_layer,
        decoder_layer,
        shuffling,
        sequential,
    ),
]
"""Each draws a layer and what it is given, right or wrong."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draw", LAYERS, ids=lambda draw: draw.__name__)
def test_what_torch_refuses_is_refused_and_nothing_else(draw: Draw) -> None:
    rng = random.Random(draw.__name__)
    right = wrong = 0
    for _ in range(120):
        source = f"y = {draw(rng)}\n"
        error, ours = raises(source), refused(source)
        assert bool(ours) == bool(error), (
            f"{source}torch: {error!r}\nshapefix: {[str(e.error) for e in ours]}"
        )
        right, wrong = right + (not error), wrong + bool(error)
    assert min(right, wrong) >= 15


def with_unknown_sizes(code: str, rng: random.Random) -> str:
    """The code with some of the numbers in `torch.randn(...)` replaced by what nobody can know."""

    def replaced(match: re.Match[str]) -> str:
        numbers = match[1].split(", ")
        shown = [f"unknown({n})" if rng.random() < 0.4 else n for n in numbers]
        return f"torch.randn({', '.join(shown)})"

    return re.sub(r"torch\.randn\((.*?)\)", replaced, code)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draw", LAYERS, ids=lambda draw: draw.__name__)
def test_nothing_is_refused_that_torch_takes_where_sizes_are_unknown(draw: Draw) -> None:
    rng = random.Random(draw.__name__)
    found = 0
    for _ in range(60):
        source = f"y = {with_unknown_sizes(draw(rng), rng)}\n"
        ours = refused(source)
        found += bool(ours)
        assert not ours or raises(source), f"{source}{[str(event.error) for event in ours]}"
    assert found


UNRANKED = (
    "nn.LayerNorm(6)",
    "nn.RMSNorm(6)",
    "nn.LSTM(6, 3)",
    "nn.GRUCell(6, 3)",
    "nn.MultiheadAttention(6, 2)",
    "nn.TransformerEncoderLayer(6, 2)",
    "nn.Bilinear(6, 6, 3)",
)


@pytest.mark.parametrize("layer", UNRANKED)
def test_a_last_size_is_enough(layer: str) -> None:
    names = "y, y, y" if "Multihead" in layer else "y, y" if "Bilinear" in layer else "y"
    (event,) = refused(f"def run(x):\n    y = nn.Linear(4, 5)(x)\n    return {layer}({names})\n")
    assert event.function == layer.partition("(")[0].replace("nn.", "torch.nn.")
    assert not refused(f"def run(x):\n    y = nn.Linear(4, 6)(x)\n    return {layer}({names})\n")


@pytest.mark.parametrize(
    ("layer", "settings"),
    [
        ("Conv2d", "3, 8, 3, groups=2"),
        ("Conv1d", "4, 6, 3, groups=4"),
        ("ConvTranspose2d", "3, 8, 3, groups=2"),
        ("GroupNorm", "3, 8"),
        ("MultiheadAttention", "8, 3"),
        ("TransformerEncoderLayer", "8, 3"),
    ],
)
def test_a_layer_that_cannot_be_made(layer: str, settings: str) -> None:
    source = f"layer = nn.{layer}({settings})\n"
    assert raises(source)
    (event,) = refused(source)
    assert isinstance(event.error, NotDivisible)
    assert refused(f"class Own(nn.{layer}):\n    def __init__(self):\n        super().__init__({settings})\n")


@pytest.mark.parametrize("layer", ["MaxPool2d", "AvgPool2d", "Conv2d", "Unfold"])
def test_a_stride_of_zero_is_refused(layer: str) -> None:
    channels = "3, 8, " if layer == "Conv2d" else ""
    source = f"nn.{layer}({channels}2, stride=0)(torch.ones(1, 3, 8, 8))\n"
    assert raises(source)
    assert len(refused(source)) == 1
