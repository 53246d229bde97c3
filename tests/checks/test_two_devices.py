"""SF602: one cause is one entry of the report."""

from __future__ import annotations

from checking import Check

from shapefix.report.folding import folded

CREATED_IN_FORWARD = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)

    def forward(self, ids):
        start = torch.zeros((ids.shape[0], 1), dtype=torch.long, device={device})
        return self.embedding(torch.cat([start, ids], dim=1))


def first():
    return Net()(torch.ones((2, 3), dtype=torch.long))


def second():
    ids = torch.arange(6).reshape(2, 3)
    return Net()(ids)
"""


def test_a_device_named_in_forward_is_one_cause_for_all_callers(check: Check) -> None:
    found = check(CREATED_IN_FORWARD.format(device="device"), {"SF602"})
    assert len(found) > 1
    assert len(folded(found)) == 1
    assert not check(CREATED_IN_FORWARD.format(device="ids.device"), {"SF602"})


def test_each_tensor_left_on_the_cpu_is_a_cause_of_its_own(check: Check) -> None:
    text = """\
import torch

x = torch.ones(3, device="cuda")
y, z = torch.zeros(3), torch.ones(3)
a = x + y
b = x + z
"""
    assert len(folded(check(text, {"SF602"}))) == 2


LEFT_ON_THE_CPU = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(nn.Flatten(), nn.Linear(8, 4))
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.blocks(x))


net = Net()
x, labels = torch.rand(3, 8).to("cuda"), torch.zeros(3, dtype=torch.long).to("cuda")
predicted = net(x).argmax(1)
right = (predicted == labels).sum()
"""


def test_what_a_model_left_on_the_cpu_computes_is_not_reported_again(check: Check) -> None:
    (found,) = check(LEFT_ON_THE_CPU, {"SF602"})
    assert "the weights of `self.blocks` are on the CPU" in found.message
    assert not check(LEFT_ON_THE_CPU.replace("net = Net()", "net = Net().to('cuda')"), {"SF602"})
