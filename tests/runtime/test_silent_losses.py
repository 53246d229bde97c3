"""Losses and gradients that raise nothing, and train nothing or something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import named, probed, row

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F

x, y = torch.randn(16, 8), torch.randn(16)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""

FAULTS = {
    "silent-broadcast": """
for _ in range(9):
    loss = nn.MSELoss()(model(x), y)  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "silent-float64": """
import numpy as np

y = torch.from_numpy(np.random.rand(16, 1))
for _ in range(9):
    loss = F.mse_loss(model(x), y)  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "one-class": """
for _ in range(9):
    loss = F.cross_entropy(model(x), torch.zeros(16).long())  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "ignored-targets": """
tagger = nn.Linear(8, 5)
optimizer = torch.optim.SGD(tagger.parameters(), 0.1)
for _ in range(9):
    loss = F.cross_entropy(tagger(x), torch.full((16,), -100))  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "target-range": """
y = torch.arange(16.0).remainder(5).unsqueeze(1)
for _ in range(9):
    loss = nn.BCEWithLogitsLoss()(model(x), y)  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "loss-not-finite": """
class Scale(nn.Module):
    def forward(self, x):
        return torch.log(x - x.max())

model = nn.Sequential(model, Scale())
for _ in range(9):
    loss = model(x).mean()
    loss.backward()  # fault
    optimizer.step()
    optimizer.zero_grad()
""",
    "gradient-not-finite": """
for _ in range(9):
    loss = (model(x) * 0).abs().sqrt().mean()
    loss.backward()
    optimizer.step()  # fault
    optimizer.zero_grad()
""",
    "fresh-loss": """
for _ in range(9):
    loss = F.mse_loss(model(x).squeeze(1), y)
    loss = torch.tensor(loss.item(), requires_grad=True)
    loss.backward()  # fault
    optimizer.step()
    optimizer.zero_grad()
""",
    "unconnected-loss": """
for _ in range(9):
    loss = F.mse_loss(model(x).squeeze(1), y)
    loss.backward()  # fault
    optimizer.zero_grad()
    optimizer.step()
""",
    "clamped-loss": """
for _ in range(9):
    loss = F.mse_loss(model(x).squeeze(1), y + 99).clamp(max=10.0)
    loss.backward()  # fault
    optimizer.step()
    optimizer.zero_grad()
""",
    "zero-gradient": """
for _ in range(9):
    loss = F.mse_loss(model(x).squeeze(1).round(), y)
    loss.backward()  # fault
    optimizer.step()
    optimizer.zero_grad()
""",
}

SAID = {
    "silent-broadcast": "`mse_loss` compares f32[16, 1] with f32[16]: both are broadcast to (16, 16)",
    "silent-float64": "the target of `mse_loss` is f64[16, 1]: the loss is computed in float64",
    "one-class": "`cross_entropy` with one class is always 0: it gets f32[16, 1]",
    "ignored-targets": "all 16 targets of `cross_entropy` are its `ignore_index` -100: the mean is nan",
    "target-range": "the targets of `binary_cross_entropy_with_logits` range from 0 to 4, but it expects",
    "loss-not-finite": "the loss is nan: `1` (Scale) is the first module whose output is not finite "
    "(a logarithm of numbers from",
    "gradient-not-finite": "the loss is finite, but the gradients of `0.weight`, `0.bias`, ",
    "fresh-loss": "the loss is a new tensor without a computation graph: no parameter gets a gradient",
    "unconnected-loss": "none of the 4 parameters has a gradient when SGD steps, although backward was",
    "clamped-loss": "the loss is outside the bounds of `clamp`, where its gradient is 0: the gradients",
    "zero-gradient": "the gradients of all 4 parameters are exactly 0: the optimizer step changes nothing",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_found_at_its_line(kind: str, tmp_path: Path) -> None:
    script = HEAD + FAULTS[kind]
    ran = probed(tmp_path, script)
    found = {(each.code, each.name): each for each in ran.found}
    assert named(kind) in found, ran.text + ran.run.process.output
    assert found[named(kind)].span.row == row(script, "fault")
    assert SAID[kind] in found[named(kind)].message
    others = [named("zero-gradient")] if kind == "one-class" else []
    assert [each for each in found if each != named(kind)] == others
