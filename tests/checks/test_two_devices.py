"""SF602: one cause is one entry of the report, and its repair is at the cause."""

from __future__ import annotations

import textwrap
from contextlib import nullcontext

import pytest
import torch
from checking import Check
from torch._subclasses.fake_tensor import FakeTensorMode

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
print(a)
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


IN_PLACE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.fc = nn.Linear(3, 2)
        self.register_buffer("offset", torch.zeros(1, 3, 1, 1))

    def forward(self, x):
        {body}
        return self.fc(x.mean((2, 3)))


net = {net}
images, labels = torch.rand(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)
images, labels = {images}, labels.to("cuda")
predicted = net(images).argmax(1)
right = (predicted == labels).sum()
"""
BODIES = (
    "residual = x; x = self.conv(x); x += residual",
    "out = torch.zeros(4, 3, 8, 8, device=x.device); out += self.conv(x); x = out",
    "out = torch.zeros(4, 3, 8, 8).to(x.device); out += self.conv(x); x = out",
    "out = torch.zeros_like(x); out += self.conv(x); x = out",
    "x = self.conv(x); x *= self.offset",
    "y = self.offset.expand(4, -1, 8, 8).clone(); y += x; x = y",
)


@pytest.mark.parametrize("body", BODIES)
def test_writes_in_place_keep_the_device(body: str, check: Check) -> None:
    moved = IN_PLACE.format(body=body, net="Net().to('cuda')", images="images.to('cuda')")
    assert not check(moved, {"SF602"})


@pytest.mark.parametrize("body", BODIES)
def test_a_model_left_on_the_cpu_is_moved_not_its_result(body: str, check: Check) -> None:
    found = check(IN_PLACE.format(body=body, net="Net()", images="images.to('cuda')"), {"SF602"})
    assert found
    assert len(found) == 1 or {each.habit for each in found} == {found[0].habit}
    assert not any(fix.edits for each in found for fix in each.fixes)


@pytest.mark.parametrize("body", BODIES)
def test_a_device_taken_from_the_input_is_not_a_cause_of_its_own(body: str, check: Check) -> None:
    found = check(IN_PLACE.format(body=body, net="Net().to('cuda')", images="images"), {"SF602"})
    assert len(found) <= 1


def test_a_model_is_on_the_cpu_since_its_creation(check: Check) -> None:
    text = """\
import torch
from torch import nn


class Scaled(nn.Linear):
    def __init__(self):
        super().__init__(8, 2)


net = Scaled()
scores = net(torch.rand(3, 8, device="cuda"))
"""
    (found,) = check(text, {"SF602"})
    lines = [text.splitlines()[step.span.row - 1] for step in found.evidence]
    assert "net = Scaled()" in lines
    assert not any("super" in line for line in lines)


def test_what_took_over_the_device_of_a_module_is_not_moved_itself(check: Check) -> None:
    text = """\
import torch
import lightning as pl
from torch import nn


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)


net = Net()
x = torch.zeros(3, device=net.device)
y = x + torch.rand(3, device="cuda")
"""
    (found,) = check(text, {"SF602"})
    assert not any(fix.edits for fix in found.fixes)


@pytest.mark.parametrize(("sizes", "found"), [("3 / 2", 0), ("[1.5]", 1)])
def test_a_weight_without_dimensions_goes_with_a_gpu(check: Check, sizes: str, found: int) -> None:
    code = (
        "import torch\nfrom torch import nn\n"
        "device = torch.device('cuda')\nnet = nn.Linear(4, 1).to(device)\n"
        f"loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor({sizes}))\n"
        "x, y = torch.ones(8, 4, device=device), torch.ones(8, 1, device=device)\n"
        "loss(net(x), y).backward()\n"
    )
    assert [each.code for each in check(code, {"SF602"})] == ["SF602"] * found
    with FakeTensorMode():
        scores = torch.empty(8, 1, device="cuda")
        weight = torch.empty(() if sizes == "3 / 2" else (1,))
        with pytest.raises(RuntimeError, match="device") if found else nullcontext():
            torch.nn.BCEWithLogitsLoss(pos_weight=weight)(scores, scores)


@pytest.mark.parametrize(
    ("name", "found"), [("os.environ['DEVICE']", 0), ("getenv('DEVICE')", 0), ("sys.argv[1]", 1)]
)
def test_a_variable_of_the_environment_may_be_the_cpu(check: Check, name: str, found: int) -> None:
    code = f"""
    import os, sys
    from os import getenv
    import torch
    from torch import nn

    os.environ["DEVICE"] = "cpu"
    net = nn.Embedding(4, 2)
    net(torch.zeros(3, 1, dtype=torch.long, device=torch.device({name})))
    """
    assert len(check(textwrap.dedent(code), {"SF602"})) == found


def test_what_is_assigned_is_not_moved_in_place(check: Check) -> None:
    code = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(4, 2)
total = torch.rand(8, 2).cpu()
total += torch.zeros(8, 2, device=device)
"""
    (finding,) = check(code, {"SF602"})
    assert [edit for fix in finding.fixes for edit in fix.edits] == []
