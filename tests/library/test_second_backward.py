"""A second backward through one graph, compared with torch: reported where torch raises, and nowhere else."""

from __future__ import annotations

import pytest
from checking import Check
from raised_errors import raises

from shapefix.repair.edits import apply

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(6, 4), torch.rand(6, 4)), batch_size=2)
net, head, frozen = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 4), nn.Linear(4, 4)
cell, gru, lstm = nn.GRUCell(4, 4), nn.GRU(4, 4), nn.LSTM(4, 4)
leaf = torch.rand(2, 4, requires_grad=True)
data = torch.rand(2, 4)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.state = torch.zeros(2, 4)

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


class Center:
    def __init__(self):
        self.value = torch.zeros(4)

    def update(self, out):
        self.value = 0.9 * self.value + 0.1 * out.mean(0)


class Detached(Memory):
    def forward(self, x):
        self.state = self.cell(x, self.state.detach())
        return self.state


"""
LOOPS = ("for x, y in loader:\n", "for i in range(3):\n    x = torch.rand(2, 4)\n    y = torch.rand(2, 4)\n")
IN_LOOPS = {
    "a row written with its graph": (
        "bank = torch.zeros(5, 4)",
        "out = net(x)\n(out.mean(0) * bank[0]).sum().backward()\nbank[1] = out.mean(0)",
    ),
    "a row written without its graph": (
        "bank = torch.zeros(5, 4)",
        "out = net(x)\n(out.mean(0) * bank[0]).sum().backward()\nbank[1] = out.mean(0).detach()",
    ),
    "a row written without recording": (
        "bank = torch.zeros(5, 4)",
        "out = net(x)\n(out @ bank.t()).sum().backward()\nwith torch.no_grad():\n    bank[1] = out.mean(0)",
    ),
    "a bank read without its graph": (
        "bank = torch.zeros(5, 4)",
        "out = net(x)\n(out @ bank.detach().t()).sum().backward()\nbank[1] = out.mean(0)",
    ),
    "a new bank in each pass": (
        "bank = torch.zeros(5, 4)",
        "bank = torch.zeros(5, 4)\nout = net(x)\n(out @ bank.t()).sum().backward()\nbank[1] = out.mean(0)",
    ),
    "a bank that only keeps sums": (
        "bank = torch.zeros(2, 4)",
        "(leaf + x + bank).sum().backward()\nbank[0] = (leaf + x).sum(0)",
    ),
    "a bank that is never used": (
        "bank = torch.zeros(5, 4)",
        "out = net(x)\nout.sum().backward()\nbank[1] = out.mean(0)",
    ),
    "a mean moved in place": (
        "center = torch.zeros(4)",
        "out = net(x)\n(out - center.expand(2, 4)).pow(2).sum().backward()\n"
        "center.mul_(0.9).add_(0.1 * out.mean(0))",
    ),
    "a mean moved in place without its graph": (
        "center = torch.zeros(4)",
        "out = net(x)\n(out - center.expand(2, 4)).pow(2).sum().backward()\n"
        "center.mul_(0.9).add_(0.1 * out.detach().mean(0))",
    ),
    "a moving mean used through another operation": (
        "center = torch.zeros(4)",
        "out = net(x)\nF.mse_loss(out, center.expand(2, 4)).backward()\n"
        "center = 0.9 * center + 0.1 * out.mean(0)",
    ),
    "a moving mean detached where it is used": (
        "center = torch.zeros(4)",
        "out = net(x)\nF.mse_loss(out, center.detach().expand(2, 4)).backward()\n"
        "center = 0.9 * center + 0.1 * out.mean(0)",
    ),
    "a moving mean whose choice alone is used": (
        "center = torch.zeros(4)",
        "out = net(x)\nF.cross_entropy(out, center.argmax().expand(2)).backward()\n"
        "center = 0.9 * center + 0.1 * out.mean(0)",
    ),
    "a moving mean set back in each pass": (
        "center = torch.zeros(4)",
        "out = net(x)\nF.mse_loss(out, center.expand(2, 4)).backward()\n"
        "center = 0.9 * center + 0.1 * out.mean(0)\n"
        "center = torch.zeros(4)",
    ),
    "a mean in an attribute": (
        "center = Center()",
        "out = net(x)\nF.mse_loss(out, center.value.expand(2, 4)).backward()\ncenter.update(out)",
    ),
    "a mean in an attribute, without its graph": (
        "center = Center()",
        "out = net(x)\nF.mse_loss(out, center.value.expand(2, 4)).backward()\ncenter.update(out.detach())",
    ),
    "a mean in an attribute for every other pass": (
        "center = Center()",
        "out = net(x)\nF.mse_loss(out, center.value.expand(2, 4)).backward()\n"
        "center.update(out)\ncenter.value = center.value.detach()",
    ),
    "a kept graph for the state": (
        "center = torch.zeros(4)",
        "out = net(x)\nF.mse_loss(out, center.expand(2, 4)).backward(retain_graph=True)\n"
        "center = out.mean(0)",
    ),
    "a forward before the loop": ("out = net(data)", "(head(out) - y).pow(2).mean().backward()"),
    "its part": ("out = net(data)", "out[0].sum().backward()"),
    "a detached forward before the loop": ("out = net(data).detach()", "head(out).sum().backward()"),
    "a forward in the loop": ("out = net(data)", "out = net(x)\nout.sum().backward()"),
    "the next forward": ("out = net(data)", "out.sum().backward()\nout = net(x)"),
    "only additions before the loop": ("out = leaf + 1", "(out * y).sum().backward()"),
    "only views before the loop": ("out = leaf.view(8).view(2, 4).t()", "(out.t() * y).sum().backward()"),
    "a product before the loop": ("out = leaf * data", "(out + y).sum().backward()"),
    "a kept graph": ("out = net(data)", "out.sum().backward(retain_graph=True)"),
    "a state": ("h = torch.zeros(2, 4)", "h = cell(x, h)\nh.sum().backward()"),
    "a detached state": ("h = torch.zeros(2, 4)", "h = cell(x, h.detach())\nh.sum().backward()"),
    "a state detached later": ("h = torch.zeros(2, 4)", "h = cell(x, h)\nh.sum().backward()\nh = h.detach()"),
    "a state that is not used": ("h = torch.zeros(2, 4)", "h = cell(x)\nh.sum().backward()"),
    "a state reset": ("s = torch.zeros(2, 4)\nh = s", "h = s\nh = cell(x, h)\nh.sum().backward()"),
    "another state": ("s = torch.zeros(2, 4)\nh = s", "h = cell(x, s)\nh.sum().backward()"),
    "a state in other words": ("h = torch.zeros(2, 4)", "new = cell(x, h)\nnew.sum().backward()\nh = new"),
    "a state of an LSTM": (
        "h = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))",
        "out, h = lstm(x[None], h)\n(out - y).mean().backward()",
    ),
    "a detached state of an LSTM": (
        "h = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))",
        "out, h = lstm(x[None], h)\n(out - y).mean().backward()\nh = (h[0].detach(), h[1].detach())",
    ),
    "a detached state in a comprehension": (
        "h = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))",
        "h = tuple(each.detach() for each in h)\nout, h = lstm(x[None], h)\nout.mean().backward()",
    ),
    "a state that begins as None": ("h = None", "out, h = gru(x[None], h)\nout.mean().backward()"),
    "a detached state that begins as None": (
        "h = None",
        "out, h = gru(x[None], h)\nout.mean().backward()\nh = h.detach()",
    ),
    "a state detached if there is one": (
        "h = None",
        "if h is not None:\n    h = h.detach()\nout, h = gru(x[None], h)\nout.mean().backward()",
    ),
    "a tuple that begins as None": ("h = None", "out, h = lstm(x[None], h)\n(out - y).mean().backward()"),
    "a state of a GRU": ("h = torch.zeros(1, 2, 4)", "out, h = gru(x[None], h)\nout.mean().backward()"),
    "a state without gradients": (
        "h = torch.zeros(2, 4)",
        "with torch.no_grad():\n    h = cell(x, h)\nhead(h).sum().backward()",
    ),
    "a running loss": ("total = 0", "loss = net(x).sum()\ntotal += loss\ntotal.backward()"),
    "a running number": ("total = 0", "loss = net(x).sum()\ntotal += loss.item()\nloss.backward()"),
    "a running loss beside": ("total = 0", "loss = net(x).sum()\ntotal += loss\nloss.backward()"),
    "a running loss reset": ("total = 0", "total = 0\ntotal += net(x).sum()\ntotal.backward()"),
    "a loss set before": ("loss = 0", "loss = net(x).sum()\nloss.backward()"),
    "a memory": ("model = Memory()", "model(x).sum().backward()"),
    "a detached memory": ("model = Detached()", "model(x).sum().backward()"),
    "a break": ("out = net(data)", "out.sum().backward()\nbreak"),
    "a condition": (
        "out = net(data)\ndone = False",
        "if not done: out.sum().backward()\ndone = True",
    ),
    "a flag": (
        "h = torch.zeros(2, 4)\nfirst = True",
        "if not first:\n    h = h.detach()\nfirst = False\nh = cell(x, h)\nh.sum().backward()",
    ),
    "items of a list": ("outs = [net(data) for _ in range(9)]", "outs.pop().sum().backward()"),
    "an exponential average": (
        "mean = torch.zeros(())",
        "mean = 0.9 * mean + net(x).sum()\nmean.backward()",
    ),
    "zeros as a start": ("total = torch.zeros(1)", "total = total + net(x).mean()\ntotal.backward()"),
    "a shared parameter": ("scale = leaf * 1", "(scale.detach() * net(x)).sum().backward()"),
    "two losses": ("", "out = net(x)\nhead(out).sum().backward()\n(out - y).mean().backward()"),
    "a sum of losses": ("", "out = net(x)\n(head(out).sum() + (out - y).mean()).backward()"),
    "two forwards": ("", "head(net(x)).sum().backward()\n(net(x) - y).mean().backward()"),
    "an adversary": (
        "",
        "fake = net(x)\nhead(fake.detach()).sum().backward()\nhead(fake).sum().backward()",
    ),
    "an adversary without detach": (
        "",
        "fake = net(x)\nhead(fake).sum().backward()\nhead(fake).sum().backward()",
    ),
    "a kept first graph": ("", "out = net(x)\nout.sum().backward(retain_graph=True)\nout.mean().backward()"),
    "two branches": (
        "",
        "out = net(x)\nif x.sum() > 0:\n    out.sum().backward()\nelse:\n    out.mean().backward()",
    ),
    "the loss twice": ("", "loss = net(x).sum()\nloss.backward()\nloss.backward()"),
    "a shared sum": ("", "out = leaf + x\nout.sum().backward()\nout.mean().backward()"),
}


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.split("\n"))


ERROR = "backward through the graph a second time"

UNKNOWN = {"a bank that only keeps sums"}
"""Programs with a graph of nothing but a write, which frees it as well."""


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", IN_LOOPS)
def test_programs(name: str, loop: str, check: Check) -> None:
    before, body = IN_LOOPS[name]
    code = f"{SETUP}{before}\n{loop}{indented(body)}"
    is_known = name not in UNKNOWN
    assert [d.code for d in check(code, {"SF903"})] == ["SF903"] * (raises(code, ERROR) and is_known), code


ADVERSARIES = """\
from torch.optim import SGD

for_net, for_head = SGD(net.parameters(), 0.1), SGD(head.parameters(), 0.1)
fake = net(data)
first, second = {0}, {1}
first_loss = head(fake).mean()
first.zero_grad()
first_loss.backward()
first.step()
second_loss = 1 - head(fake).mean()
second.zero_grad()
second_loss.backward()
second.step()
changed = [not torch.equal(a, b) for a, b in zip(before, (net[0].weight, head.weight))]
assert all(changed), changed
"""


@pytest.mark.parametrize("order", [("for_net", "for_head"), ("for_head", "for_net")])
def test_the_fix_for_two_optimizers_leaves_both_trained(order: tuple[str, str], check: Check) -> None:
    code = SETUP + "before = [net[0].weight.clone(), head.weight.clone()]\n" + ADVERSARIES.format(*order)
    assert raises(code, ERROR)
    (found,) = check(code, {"SF903"})
    assert not raises(apply(code, found.fixes)[0], ERROR)


STEPPED = "has been modified by an inplace operation"
KEPT = "out.sum().backward(retain_graph=True)"
BETWEEN = {
    "a kept graph": f"out = head(net(x))\n{KEPT}\nopt.step()\nout.mean().backward()",
    "a step at the end": f"out = head(net(x))\n{KEPT}\nout.mean().backward()\nopt.step()",
    "a second forward": f"out = head(net(x))\n{KEPT}\nopt.step()\nhead(net(x)).mean().backward()",
    "each pass": f"for _ in range(3):\n    {KEPT}\n    opt.step()",
    "each pass of others": f"for _ in range(3):\n    {KEPT}\n    other.step()",
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_step_before_another_backward_of_a_kept_graph(name: str, check: Check) -> None:
    made = "opt = torch.optim.SGD(head.parameters(), lr=0.1)\nother = torch.optim.SGD(frozen.parameters())\n"
    before = "out = head(net(data))\n" if "pass" in name else "x = data\n"
    code = f"{SETUP}{made}{before}{BETWEEN[name]}\n"
    assert [d.code for d in check(code, {"SF901", "SF903"})] == ["SF901"] * raises(code, STEPPED), code


def test_a_state_that_begins_as_none_is_detached_after_its_backward(check: Check) -> None:
    body = "out, h = gru(x[None], h)\nout.mean().backward()\nprint(h.shape)"
    code = f"{SETUP}h = None\n{LOOPS[0]}{indented(body)}"
    ((fix,),) = [finding.fixes for finding in check(code, {"SF903"})]
    repaired = apply(code, [fix])[0]
    assert "h = h.detach()" in repaired
    assert not raises(repaired, ERROR)
