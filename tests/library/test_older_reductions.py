"""Losses with the older arguments size_average and reduce: torch itself says what they compute."""

from __future__ import annotations

import itertools
import warnings

import pytest
from differential import executed, revealed

from shapefix.interpreter.tensor_values import TensorValue

ELEMENTWISE = (
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "PoissonNLLLoss",
)
FUNCTIONS = ("mse_loss", "l1_loss", "binary_cross_entropy", "kl_div", "soft_margin_loss")
SETTINGS = [
    ", ".join(
        f"{name}={value}" for name, value in zip(("size_average", "reduce"), values, strict=True) if value
    )
    for values in itertools.product(("", "None", "True", "False"), repeat=2)
]
OTHERS = (
    "nn.CrossEntropyLoss(None, False)(x, ids)",
    "nn.NLLLoss(torch.ones(3), False)(x, ids)",
    "F.cross_entropy(x, ids, None, False)",
    "F.cross_entropy(x, ids, None, True, -100, False)",
    "nn.TripletMarginLoss(size_average=False)(x, y, x)",
    "nn.CosineEmbeddingLoss(size_average=False)(x, y, torch.ones(4))",
    "nn.MarginRankingLoss(reduce=False)(x, y, torch.ones(4, 3))",
    "nn.MultiLabelSoftMarginLoss(reduce=False)(x, y)",
    "nn.MultiMarginLoss(size_average=False)(x, ids)",
)


def losses(settings: str) -> list[str]:
    """Expressions of losses with these settings."""
    given = f", {settings}" if settings else ""
    made = [f"nn.{name}({settings})(x, y)" for name in ELEMENTWISE]
    made += [f"F.{name}(x, y{given})" for name in FUNCTIONS]
    classes = [f"nn.CrossEntropyLoss({settings})(x, ids)", f"F.nll_loss(x, ids{given})"]
    return made + classes


def agree(expressions: list[str]) -> None:
    lines = "".join(f"reveal({expression})\n" for expression in expressions)
    source = (
        "import torch.nn.functional as F\n"
        "x, y, ids = torch.full((4, 3), 0.5), torch.ones(4, 3), torch.tensor([0, 1, 2, 0])\n" + lines
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = executed(source)
    for expression, ours, theirs in zip(expressions, revealed(source), real, strict=True):
        assert isinstance(ours, TensorValue), expression
        if ours.layout is not None:
            assert tuple(size.value for size in ours.layout.sizes) == tuple(theirs.shape), expression
        # A number is known to be one.
        assert ours.layout is not None or theirs.dim() > 0, expression


@pytest.mark.parametrize("settings", SETTINGS)
def test_sizes_of_losses(settings: str) -> None:
    agree(losses(settings))


def test_sizes_of_losses_with_positions() -> None:
    agree(list(OTHERS))
