"""Models that are evaluated in training mode, or trained in evaluation mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import probed, row

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
train_loader = DataLoader(TensorDataset(x, y), batch_size=16)
val_loader = DataLoader(TensorDataset(x, y), batch_size=16)
model = nn.Sequential(nn.Linear(8, 16), {layer}, nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train():
    {train}
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()  # trains
        optimizer.step()

@torch.no_grad()
def evaluate():
    {evaluate}
    for inputs, targets in {loader}:
        model(inputs)  # evaluates

for epoch in range(2):
    {order}
"""


def script(
    layer: str = "nn.Dropout(0.5)",
    train: str = "model.train()",
    evaluate: str = "model.eval()",
    loader: str = "val_loader",
    order: str = "train(), evaluate()",
) -> str:
    return SCRIPT.format(layer=layer, train=train, evaluate=evaluate, loader=loader, order=order)


WRONG = {
    "no eval": (script(evaluate="pass"), "evaluates", "dropout stays active"),
    "no eval with batch norm": (
        script(layer="nn.BatchNorm1d(16)", evaluate="pass"),
        "evaluates",
        "batch norm uses and updates the statistics of the batch",
    ),
    "no train": (script(train="pass", order="evaluate(), train()"), "trains", "dropout is off"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mode_is_found(tmp_path: Path, name: str) -> None:
    text, mark, message = WRONG[name]
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.span.row) == ("SF804", row(text, mark))
    assert message in found.message


RIGHT = {
    "both modes": script(),
    "nothing depends on the mode": script(layer="nn.ReLU()", train="pass", evaluate="pass"),
    "dropout of 0": script(layer="nn.Dropout(0)", evaluate="pass"),
    "always in evaluation mode": script(train="model.eval()", order="train(), evaluate()"),
    "statistics of the training data": script(evaluate="model.train()", loader="train_loader"),
    "frozen batch norm": script(
        layer="nn.BatchNorm1d(16)", train="model.train(); model[1].eval()", order="evaluate(), train()"
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_may_be_intended_is_not(tmp_path: Path, name: str) -> None:
    assert [each.code for each in probed(tmp_path, RIGHT[name]).found if each.code == "SF804"] == []


def test_an_evaluation_with_gradients_is_repaired(tmp_path: Path) -> None:
    text = script().replace("@torch.no_grad()\n", "")
    (found,) = probed(tmp_path, text).found
    (fix,) = found.fixes
    (edit,) = fix.edits
    assert (found.code, edit.content, edit.span.row) == (
        "SF702",
        "@torch.no_grad()\n",
        row(text, "evaluates") - 3,
    )
