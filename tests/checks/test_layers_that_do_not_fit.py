"""Models whose layers do not fit, drawn at random: what is reported crashes, and what is repaired runs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.repair.fixpoint import repair

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
CODES = ("SF501", "SF502", "SF506", "SF511")
ALLOWED = (Applicability.SAFE, Applicability.UNSAFE)

Draw = Callable[[random.Random], str]


def findings(text: str, check: Check) -> list[Diagnostic]:
    """What the rules about layers find in a script."""
    return [each for each in check(text) if each.code in CODES]


def raised(text: str) -> Exception | None:
    """What torch raises when it runs a script."""
    import torch

    torch.manual_seed(0)
    try:
        exec(compile(text, "script.py", "exec"), {})
    except Exception as error:
        return error
    return None


def one_of(rng: random.Random, right: int, *, wrong: float = 0.35) -> int:
    """A size: the right one, or another."""
    return right if rng.random() > wrong else rng.choice([n for n in (2, 3, 6, 10, 24) if n != right])


def activation(rng: random.Random) -> str:
    return rng.choice(("nn.ReLU()", "nn.ReLU(inplace=True)", "nn.Dropout(0.1)", "nn.GELU()", "nn.Identity()"))


def dense(rng: random.Random) -> str:
    first, hidden = rng.choice((8, 16)), rng.choice((12, 20))
    return f"""
model = nn.Sequential(
    {activation(rng)},
    nn.Linear({one_of(rng, first)}, {hidden}),
    {activation(rng)},
    nn.LayerNorm({one_of(rng, hidden)}),
    nn.Linear({one_of(rng, hidden)}, 4),
)
y = model(torch.randn(5, {rng.choice(("", "7, "))}{first}))
"""


def convolutional(rng: random.Random) -> str:
    size = rng.choice((8, 10))
    side = size // 2
    flat = rng.choice(("nn.Flatten(),", "nn.Flatten(),", ""))
    return f"""
model = nn.Sequential(
    nn.Conv2d({one_of(rng, 3)}, 4, 3, padding=1),
    nn.{rng.choice(("BatchNorm2d", "BatchNorm2d", "BatchNorm1d"))}({one_of(rng, 4)}),
    {activation(rng)},
    nn.MaxPool2d(2),
    {flat}
    nn.Linear({one_of(rng, 4 * side * side)}, 10),
)
y = model(torch.randn(2, 3, {size}, {size}))
"""


def placed_channels(rng: random.Random) -> str:
    rank = rng.choice((1, 2, 3))
    sizes = [2, *([7] * rank)]
    sizes.insert(rng.choice((1, -1, len(sizes))), 5)
    if rng.random() < 0.3:
        del sizes[0]
    return f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv{rank}d({one_of(rng, 5, wrong=0.2)}, 6, 3)

    def forward(self, images):
        return self.conv(images)


images = torch.rand({", ".join(map(str, sizes))})
y = Net()(images)
"""


def gray(rng: random.Random) -> str:
    sizes = rng.choice(("16, 12, 12", "16, 144", "16, 1, 12, 12", "16, 3, 12, 12", "2, 1, 1, 12, 12"))
    return f"""
conv = nn.Conv2d(1, 4, {rng.choice((3, 5))})
images = torch.rand({sizes})
y = conv(images)
"""


def norm(rng: random.Random) -> str:
    rank, size = rng.choice((1, 2, 3)), 6
    shape = [3, *[4] * rng.choice((rank, rank, 0, 1, 2))]
    shape.insert(rng.choice((1, 1, len(shape), 0)), size)
    kind = rng.choice(
        (f"BatchNorm{rank}d", f"BatchNorm{rank}d", f"InstanceNorm{rank}d", "GroupNorm", "LayerNorm")
    )
    groups = "3, " if kind == "GroupNorm" else ""
    affine = ", affine=True" if kind.startswith("Instance") else ""
    return f"""
def normed(x, norm):
    return norm(x)


norm = nn.{kind}({groups}{one_of(rng, size, wrong=0.2)}{affine})
x = torch.randn({", ".join(map(str, shape))})
y = F.relu(norm(x)) if len(x.shape) > 99 else norm(x * 2)
"""


def last_size(rng: random.Random) -> str:
    layer, given = rng.choice(
        (
            ("nn.LSTM({}, 6, batch_first=True)", "x"),
            ("nn.GRU({}, 6)", "x"),
            ("nn.GRUCell({}, 6)", "x[0]"),
            ("nn.MultiheadAttention({}, 2, batch_first=True)", "x, x, x"),
            ("nn.TransformerEncoderLayer({}, 2, 16)", "x"),
            ("nn.Linear({}, 2)", "x"),
            ("nn.Bilinear({0}, {0}, 2)", "x, x"),
        )
    )
    return f"layer = {layer.format(one_of(rng, 8))}\nx = torch.randn(3, 5, 8)\ny = layer({given})\n"


MODELS: list[Draw] = [dense, convolutional, placed_channels, gray, norm, last_size]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draw", MODELS, ids=lambda draw: draw.__name__)
def test_what_crashes_is_reported_and_what_is_repaired_runs(
    draw: Draw, check: Check, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(draw.__name__)
    seen: Counter[str] = Counter()
    for _ in range(60):
        text = HEAD + draw(rng)
        error, found = raised(text), findings(text, check)
        assert bool(found) == bool(error), f"{text}torch: {error!r}\n{[each.message for each in found]}"
        seen["crash" if error else "run"] += 1
        if not found:
            continue
        repaired = repair(
            text, lambda text: findings(text, check), lambda fix, _: fix.applicability in ALLOWED
        )
        if repaired.applied and not repaired.remaining:
            seen["repaired"] += 1
            still = raised(repaired.text)
            assert still is None, f"{text}\n{repaired.text}\n{still!r}"
    record_property("counted", f"{draw.__name__}: {dict(seen)}")
    assert seen["run"] >= 5
    assert seen["repaired"] >= 10
