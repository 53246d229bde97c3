"""Objects of libraries that refer to no object of the code: their unknown methods clear no gradients."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
import torch
from checking import Check

LOOP = """
import torch
import torch.nn as nn
import {library}

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
{made}
for x in torch.randn(100, 4, 3):
    model(x).mean().backward()
    optimizer.step()
{last}
"""

HARMLESS = {
    "scale": ("", "scaler.get_scale()"),
    "rates": ("", "scheduler.get_last_lr()"),
    "backoff": ("", "if scaler.is_enabled():\n    scaler.get_growth_interval()"),
}
"""Code of torch only, executed below."""
OF_OTHERS = {
    "metric": ("metric = torchmetrics.Accuracy(task='binary').to('cpu')", "metric.reset()"),
    "metric of a batch": (
        "metric = torchmetrics.Accuracy(task='binary')",
        "metric.update(x, x)\nmetric.compute()",
    ),
    "number of a file": ("tool = torchmetrics.Tool(open('x').read())", "tool.show()"),
}
UNKNOWN = {
    "made with the model": ("tool = torchmetrics.Tool(model)", "tool.clear()"),
    "made with the optimizer in a list": ("tool = torchmetrics.Tool([optimizer])", "tool.clear()"),
    "given the optimizer later": ("tool = torchmetrics.Tool(1)\ntool.add(optimizer)", "tool.clear()"),
    "a part of it given the optimizer": (
        "tool = torchmetrics.Tool(1)\ntool.parts.add(optimizer)",
        "tool.clear()",
    ),
    "made with a method of the optimizer": ("tool = torchmetrics.Tool(optimizer.zero_grad)", "tool.clear()"),
    "optimizer of the scheduler": ("", "scheduler.optimizer.zero_grad()"),
    "made with unknown arguments": ("tool = torchmetrics.Tool(*torchmetrics.all())", "tool.clear()"),
}


def _code(made: str, last: str) -> str:
    return LOOP.format(library="torchmetrics", made=made, last=indent(last, "    "))


@pytest.mark.parametrize(("made", "last"), [*HARMLESS.values(), *OF_OTHERS.values()])
def test_the_missing_call_is_reported(check: Check, made: str, last: str) -> None:
    assert [each.code for each in check(_code(made, last), {"SF803"})] == ["SF803"]


@pytest.mark.parametrize(("made", "last"), UNKNOWN.values(), ids=UNKNOWN)
def test_nothing_is_reported_of_an_object_with_a_reference(check: Check, made: str, last: str) -> None:
    assert check(_code(made, last), {"SF803"}) == []


@pytest.mark.parametrize("last", [last for _, last in HARMLESS.values()])
def test_torch_keeps_the_gradients(last: str) -> None:
    names: dict[str, object] = {}
    exec(dedent(_code("", last)).replace("import torchmetrics", "").replace("100", "2"), names)
    model = names["model"]
    assert isinstance(model, torch.nn.Linear)
    assert model.bias.grad is not None
    # Each of the two passes adds 1.
    assert model.bias.grad.item() == pytest.approx(2)
