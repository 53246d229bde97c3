"""Distributions, deep copies and positions in texts, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
from checking import Check
from differential import executed, revealed

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.library.distributions import CONTINUOUS

HEAD = """\
import copy
import torch
from torch import nn
from torch.distributions import Beta, Categorical, Gamma, Laplace, LogNormal, Normal, Uniform

p = torch.rand(8, 3, requires_grad=True)
q = p + 1
"""
VALUES = [
    f"{name}(p, q).{method}"
    for name in CONTINUOUS
    for method in ("rsample()", "sample()", "entropy()", "log_prob((p.detach() + 1) / 2)")
] + [
    "Normal(p, q[:1]).rsample()",
    "Categorical(logits=p).sample()",
    "Categorical(p).entropy()",
    "Categorical(logits=p).log_prob(torch.zeros(8, dtype=torch.long))",
    "torch.tensor(['abc'.index(each) for each in 'ab'])",
    "torch.tensor([abs(i - 2) for i in range(4)])",
    "torch.tensor([i ** 2 for i in range(4)])",
    "torch.tensor([i / 2 for i in range(4)])",
]


@pytest.mark.parametrize("code", VALUES)
def test_sizes_and_dtype_are_those_of_torch(code: str) -> None:
    (real,), (ours,) = executed(f"{HEAD}reveal({code})\n"), revealed(f"{HEAD}reveal({code})\n")
    assert isinstance(ours, TensorValue)
    # `abs` of a number is not followed to the sizes of a tensor.
    assert ours.layout is not None or "abs" in code
    assert ours.layout is None or [size.value for size in ours.layout.sizes] == list(real.shape)
    assert ours.dtype in (None, str(real.dtype).removeprefix("torch."))


@pytest.mark.parametrize("code", [each for each in VALUES if "(p" in each or "=p" in each])
def test_a_graph_is_reported_missing_only_where_torch_has_none(code: str, check: Check) -> None:
    text = f"{HEAD}value = {code}\nvalue.sum().backward()\n"
    held: dict[str, Any] = {}
    exec(f"{HEAD}value = {code}\n", held)
    found = check(text, {"SF904"})
    assert not (found and held["value"].requires_grad)


def test_a_deep_copy_of_a_module_is_another_module_of_its_layers(check: Check) -> None:
    made = "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())\nother = copy.deepcopy(net)\n"
    changed = "other[0] = nn.Linear(3, 9)\nnet(torch.rand(2, 3)) @ torch.rand(4, 5)\n"
    assert not check(f"{HEAD}{made}{changed}", {"SF501", "SF503"})
    assert check(f"{HEAD}{made}other(torch.rand(2, 5))\n", {"SF501"})
    assert check(f"{HEAD}{made}other(torch.rand(2, 3)) @ torch.rand(5, 5)\n", {"SF503"})
