"""Plain arithmetic that computes something else than was meant, and copies at each call of a model."""

from __future__ import annotations

from pathlib import Path

from probing import named, probed, row

HEAD = """
import numpy as np
import torch
import torch.nn as nn

x, y = torch.randn(16, 8), torch.randn(16)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""


def test_a_loss_by_hand_that_compares_each_with_each(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
for _ in range(9):
    error = model(x) - y  # fault
    loss = 0.5 * (error ** 2).mean() + 1e-4 * sum(each.pow(2).sum() for each in model.parameters())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("SF509", row(script, "fault"))
    assert "f32[16, 1] and f32[16] are combined before the loss" in found.message
    assert "both are broadcast to (16, 16)" in found.message


def test_pairs_that_are_meant_and_rows_that_are_scaled(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.centres, self.head = nn.Parameter(torch.randn(16)), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(torch.exp(-(x - self.centres) ** 2))  # (16, 1) and (16,), on purpose

net = nn.Sequential(model, Kernel())
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(9):
    scores = net(x).squeeze(1)
    ranking = (scores.unsqueeze(1) - scores.unsqueeze(0)).sigmoid() * (y.unsqueeze(1) < y).float()
    (ranking.mean() + (scores - y).pow(2).mean() + (net(x) * torch.rand(1)).mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert ran.run.trained, ran.run.process.output


def test_float64_that_came_from_numpy(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scale = model, torch.from_numpy(np.linspace(0, 1, 16))

    def forward(self, x):
        return self.inner(x).squeeze(1) * self.scale  # fault

net = Scaled()
for _ in range(9):
    net(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    assert [(each.code, each.name, each.span.row) for each in ran.found] == [
        (*named("silent-float64"), row(script, "fault"))
    ]
    assert (
        ran.found[0].message
        == "f32[16] and f64[16] are combined: the result, and everything computed from it, is float64"
    )


def test_a_large_copy_is_a_note(tmp_path: Path) -> None:
    script = """
import torch
import torch.nn as nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 64)

    def forward(self, x):
        heads = self.project(x).unflatten(-1, (4, 16)).transpose(1, 2)
        return heads.transpose(2, 3).reshape(x.shape)  # copied

model = Attention()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(9):
    model(torch.randn(64, 1100, 64)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    ran = probed(tmp_path, script)
    assert ran.found == []
    (note,) = ran.notes
    assert (note.name, note.span.row) == ("large-copy", row(script, "copied"))
    assert note.message.startswith(
        "`reshape` copies 17.2 MiB on each call of `Attention`: f32[64, 4, 16, 1100]"
    )
