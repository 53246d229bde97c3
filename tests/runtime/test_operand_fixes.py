"""Fixes for the operands of losses, layers and arithmetic: torch accepts each repaired script."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from probing import probed

from shapefix.repair import edits

pytestmark = pytest.mark.slow

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
model = nn.Linear(4, {classes})
x = torch.randn(6, 4)
y = {target}
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loss = {loss}
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert loss.dtype == torch.float32
"""
CASES = {
    "classes as floats": (3, "torch.tensor([0., 1, 2, 0, 1, 2])", "nn.CrossEntropyLoss()(model(x), y)"),
    "classes as int32": (3, "torch.randint(0, 3, (6,)).int()", "F.nll_loss(model(x).log_softmax(1), y)"),
    "a call in rows": (
        3,
        "torch.randint(0, 3, (6,)).int()",
        "F.nll_loss(\n    model(x).log_softmax(1),\n    y,\n)",
    ),
    "binary targets as ints": (
        1,
        "torch.randint(0, 2, (6,))",
        "nn.BCEWithLogitsLoss()(input=model(x)[:, 0], target=y)",
    ),
    "binary probabilities": (
        1,
        "torch.randint(0, 2, (6,))",
        "F.binary_cross_entropy(model(x).sigmoid().squeeze(1), y)",
    ),
    "a column of predictions": (1, "torch.rand(6)", "nn.BCEWithLogitsLoss()(model(x), y)"),
    "a column of targets": (1, "torch.rand(6, 1)", "F.binary_cross_entropy_with_logits(model(x)[:, 0], y)"),
    "a silent broadcast": (1, "torch.rand(6)", "nn.MSELoss()(model(x), y)"),
    "an input in float64": (3, "torch.randint(0, 3, (6,))", "F.cross_entropy(model(x.double()), y)"),
    "an input of integers": (3, "torch.randint(0, 3, (6,))", "F.cross_entropy(model(x.long() + 1), y)"),
    "an operand from NumPy": (
        3,
        "torch.rand(6)",
        "F.mse_loss((model(x) * torch.from_numpy(torch.ones(3).double().numpy())).mean(1), y)",
    ),
    "float64 targets": (1, "torch.rand(6, dtype=torch.float64)", "F.mse_loss(model(x)[:, 0], y * 2)"),
}


def run_strictly(script: str) -> None:
    """Run a script; a silent broadcast is a warning of torch, and an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(script, {})


@pytest.mark.parametrize("name", CASES)
def test_the_repaired_script_trains(tmp_path: Path, name: str) -> None:
    classes, target, loss = CASES[name]
    script = HEAD.format(classes=classes, target=target, loss=loss)
    with pytest.raises((RuntimeError, ValueError, AssertionError, Warning)):
        run_strictly(script)
    (found,) = (each for each in probed(tmp_path, script).found if each.name != "AssertionError")
    (fix,) = found.fixes
    repaired, _, _ = edits.apply(script, [fix])
    run_strictly(repaired)
