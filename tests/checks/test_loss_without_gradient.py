"""SF904: losses without a graph, and the operations that end it, compared with torch."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch
from checking import Check

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))
"""

CUTS = [
    ("loss = model(x).argmax(1).float().mean()", "model(x).argmax(1)"),
    ("loss = model(x).argmin(1).float().mean()", "model(x).argmin(1)"),
    ("loss = model(x).max(1)[1].float().mean()", "model(x).max(1)"),
    ("loss = model(x).max(1).indices.float().mean()", "model(x).max(1)"),
    ("loss = model(x).topk(1)[1].float().mean()", "model(x).topk(1)"),
    ("loss = torch.argsort(model(x)).float().mean()", "torch.argsort(model(x))"),
    ("loss = (model(x) > 0).float().mean()", "model(x) > 0"),
    ("loss = model(x).gt(0).float().mean()", "model(x).gt(0)"),
    ("loss = torch.where(model(x) > 0, 1.0, 0.0).mean()", "model(x) > 0"),
    ("loss = model(x).long().float().mean()", "model(x).long()"),
    ("loss = model(x).to(torch.int64).float().mean()", "model(x).to(torch.int64)"),
    ("loss = F.one_hot(model(x).argmax(1), 2).float().mean()", "model(x).argmax(1)"),
    ("loss = model(x).detach().mean()", "model(x).detach()"),
    ("loss = model(x).data.mean()", "model(x).data"),
    ("loss = model(x).mean().detach_()", "model(x).mean().detach_()"),
    ("loss = torch.tensor(model(x).mean())", "torch.tensor(model(x).mean())"),
    ("loss = torch.tensor(model(x).mean().item())", "torch.tensor(model(x).mean().item())"),
    ("loss = torch.tensor([model(x).mean(), model(x).sum()]).mean()", "torch.tensor([model(x).mean()"),
    ("loss = torch.FloatTensor([model(x).mean()]).mean()", "torch.FloatTensor([model(x).mean()])"),
    ("loss = torch.from_numpy(model(x).detach().numpy()).mean()", "torch.from_numpy("),
    ("loss = torch.tensor(float(model(x).mean()))", "torch.tensor(float(model(x).mean()))"),
    ("loss = Variable(model(x).data).mean()", "model(x).data"),
    ("with torch.no_grad():\n    out = model(x)\nloss = out.mean()", "runs under `torch.no_grad()`"),
    ("with torch.inference_mode():\n    out = model(x)\nloss = out.mean()", "`torch.inference_mode()`"),
    ("with torch.set_grad_enabled(False):\n    out = model(x)\nloss = out.mean()", "runs under"),
    ("@torch.no_grad()\ndef f():\n    return model(x)\nloss = f().mean()", "runs under `@torch.no_grad()`"),
    ("model.requires_grad_(False)\nloss = model(x).mean()", "the parameters of `model(x)`"),
    ("for p in model.parameters():\n    p.requires_grad = False\nloss = model(x).mean()", "are frozen"),
    ("for p in model.parameters():\n    p.requires_grad_(False)\nloss = model(x).mean()", "are frozen"),
    ("for _, p in model.named_parameters():\n    p.requires_grad = False\nloss = model(x).mean()", "frozen"),
    ("loss = x.pow(2).mean()", "none of its inputs requires a gradient"),
]


def ran(code: str) -> dict[str, Any]:
    """The names after running code."""
    names: dict[str, Any] = {}
    exec(HEAD + code, names)
    return names


@pytest.mark.parametrize(("code", "named"), CUTS, ids=[code for code, _ in CUTS])
def test_the_operation_that_ends_the_graph_is_named(code: str, named: str, check: Check) -> None:
    loss = ran(code)["loss"]
    assert not loss.requires_grad
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        loss.backward()
    (finding,) = check(f"{HEAD}{code}\nloss.backward()\n", {"SF904"})
    assert named in finding.message
    assert finding.error is not None


FIXED = [
    ("model(x).detach().mean()", "model(x).mean()"),
    ("model(x).data.mean()", "model(x).mean()"),
    ("torch.tensor(model(x).mean())", "model(x).mean()"),
    ("torch.tensor(model(x).mean() * 2)", "(model(x).mean() * 2)"),
    ("torch.tensor(float(model(x).mean()))", "model(x).mean()"),
    ("torch.tensor(model(x).mean().item(), requires_grad=True)", "model(x).mean()"),
    (
        "torch.tensor([model(x).mean(), model(x).sum()]).sum()",
        "torch.stack([model(x).mean(), model(x).sum()]).sum()",
    ),
]


@pytest.mark.parametrize(("wrong", "right"), FIXED, ids=[wrong for wrong, _ in FIXED])
def test_the_fix_keeps_the_graph(wrong: str, right: str, check: Check) -> None:
    code = f"{HEAD}loss = {wrong}\nloss.backward()\noptimizer.step()\n"
    (finding,) = check(code, {"SF904"})
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    lines = code.split("\n")
    line = lines[edit.span.row - 1]
    lines[edit.span.row - 1] = line[: edit.span.column - 1] + edit.content + line[edit.span.end_column - 1 :]
    assert f"loss = {right}" in lines
    assert ran(f"loss = {right}\nloss.backward()")["model"].weight.grad is not None


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(loss.item(), requires_grad=True)",
        "Variable(loss.data, requires_grad=True)",
        "loss.detach().requires_grad_()",
    ],
)
def test_the_gradient_ends_in_a_new_leaf(made: str, check: Check) -> None:
    model = torch.nn.Linear(8, 2)
    loss = model(torch.rand(4, 8)).sum()
    new = eval(made, {"torch": torch, "Variable": torch.autograd.Variable, "loss": loss})
    new.backward()
    assert model.weight.grad is None
    assert new.is_leaf
    code = f"""
    for step in range(3):
        optimizer.zero_grad()
        loss = model(x).mean()
        loss = {made}
        loss.backward()
        optimizer.step()
    """
    (finding,) = check(HEAD + textwrap.dedent(code), {"SF904"})
    assert "no weight gets a gradient" in finding.message
    assert finding.error is None


PAIR = """\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.inner(x) * self.scale

def freeze(m):
    for p in m.parameters():
        p.requires_grad = False

net, scaled = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), Scaled()
freeze(net)
freeze(scaled)
x = torch.ones(3)
"""

THAWED = [
    "net[1] = nn.Linear(3, 3)",
    "net.append(nn.Linear(3, 3))",
    "net.add_module('head', nn.Linear(3, 3))",
    "net[1].requires_grad_(True)",
    "for p in net[1].parameters():\n    p.requires_grad = True",
    "for n, p in net.named_parameters():\n    if 'bias' in n:\n        p.requires_grad_(True)",
    "net[1].weight.requires_grad = True",
    "net[1].weight.requires_grad_()",
    "net[1].weight = nn.Parameter(torch.ones(3, 3))",
    "net = scaled\nnet.inner = nn.Linear(3, 3)",
    "net = scaled\nnet.scale = nn.Parameter(torch.ones(3))",
    "net = scaled\nnet.scale.requires_grad = True",
    "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))\nfreeze(net[0])",
    "x.requires_grad = True",
]


@pytest.mark.parametrize("code", THAWED)
def test_a_part_that_is_trained_again(code: str, check: Check) -> None:
    text = f"{PAIR}{code}\nloss = net(x).sum()\nloss.backward()\n"
    names: dict[str, Any] = {}
    exec(text, names)
    assert check(text, {"SF904"}) == []


PARTLY = [
    "for n, p in net.named_parameters():\n    if not n.startswith('1'):\n        p.requires_grad = False",
    "for n, p in net.named_parameters():\n    if n[0] == '1':\n        continue\n    p.requires_grad = False",
    "for n, p in net.named_parameters():\n    p.requires_grad = False\n    if n == '1.bias':\n"
    "        p.requires_grad = True",
    "for p in list(net.parameters())[:2]:\n    p.requires_grad = False",
    "import os\nif os.environ.get('FREEZE'):\n    freeze(net)",
]


@pytest.mark.parametrize("code", PARTLY)
def test_a_part_that_is_not_frozen(code: str, check: Check) -> None:
    text = f"{PAIR}net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))\n{code}\nnet(x).sum().backward()\n"
    names: dict[str, Any] = {}
    exec(text, names)
    assert check(text, {"SF904"}) == []


UNSEEN = [
    "get_peft_model(model, LoraConfig())",
    "model = get_peft_model(model, LoraConfig())",
    "model.add_adapter(LoraConfig())",
    "model.lm_head = nn.Linear(768, 100)",
    "model.get_input_embeddings().requires_grad_(True)",
    "model.get_input_embeddings().weight.requires_grad = True",
    "model.resize_token_embeddings(60000)",
    "for p in model.lm_head.parameters():\n    p.requires_grad = True",
]


@pytest.mark.parametrize("code", UNSEEN)
def test_adapters_and_parts_of_a_frozen_library_model(code: str, check: Check) -> None:
    text = """\
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import AutoModelForCausalLM

ids = torch.ones(2, 8, dtype=torch.long)
model = AutoModelForCausalLM.from_pretrained("gpt2")
model.requires_grad_(False)
{}
model(input_ids=ids, labels=ids).loss.backward()
"""
    assert len(check(text.format(""), {"SF904"})) == 1
    assert check(text.format(code), {"SF904"}) == []


def test_a_copy_of_the_target_does_not_explain_an_output_without_a_graph(check: Check) -> None:
    code = f"""{HEAD}
from elsewhere import rows
net = nn.Sequential(nn.ReLU())
target = torch.tensor(rows)
loss = F.mse_loss(net(x), target)
loss.backward()
"""
    assert check(code, {"SF904"}) == []
    assert len(check(code.replace("net(x)", "model(x).detach()"), {"SF904"})) == 1


FLAGGED = {
    "out = model(x).detach().requires_grad_()": False,
    "out = model(x).detach()\nout.requires_grad = True": False,
    "out = model(x).argmax(1).float().requires_grad_()": False,
    "with torch.no_grad():\n    out = model(x).requires_grad_()": False,
    "out = model(x)": True,
    "out = model(x.requires_grad_())": True,
    "out = model(model(x).detach().requires_grad_().repeat(1, 4))": True,
    "out = model(x).detach().requires_grad_() * model.bias": True,
}


@pytest.mark.parametrize("made", FLAGGED)
def test_values_flagged_after_a_cut_train_no_weight(made: str, check: Check) -> None:
    code = f"{HEAD}{made}\nloss = out.square().mean()\nloss.backward()\noptimizer.step()\n"
    names = ran(code)
    assert (names["model"].bias.grad is not None) == FLAGGED[made]
    assert (not check(code, {"SF904"})) == FLAGGED[made]


def test_gradients_of_a_cut_value_may_be_passed_on(check: Check) -> None:
    code = f"{HEAD}out = model(x)\ncopy = out.detach().requires_grad_()\nloss = copy.square().mean()\n"
    code += "loss.backward()\nout.backward(copy.grad)\noptimizer.step()\n"
    assert ran(code)["model"].bias.grad is not None
    assert not check(code, {"SF904"})
