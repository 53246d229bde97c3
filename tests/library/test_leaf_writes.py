"""Writes into leaves, compared with torch: reported where torch raises, and nowhere else."""

from __future__ import annotations

import pytest
from checking import Check
from raised_errors import raises

from shapefix.library.ops.leaf_writes import PARAMETER_WRITES

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Unit(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3, 3) + 1)
        self.fc = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(3, 3))

    def forward(self, x):
        return self.fc(x) * self.scale


layer, unit, conv = nn.Linear(3, 3), Unit(), nn.Conv2d(3, 3, 3)
frozen = nn.Linear(3, 3).requires_grad_(False)
frozen_unit = Unit()
frozen_unit.requires_grad_(False)
leaf = torch.rand(3, 3, requires_grad=True)
plain = torch.rand(3, 3)
late = torch.rand(3, 3).requires_grad_()
turned_off = torch.rand(3, 3, requires_grad=True)
turned_off.requires_grad_(False)
computed = leaf * 2
"""
TENSORS = (
    "layer.weight",
    "unit.fc.weight",
    "unit.scale",
    "unit.steps",
    "conv.weight[0, 0]",
    "frozen.weight",
    "frozen_unit.scale",
    "frozen_unit.fc.weight",
    "leaf",
    "plain",
    "late",
    "turned_off",
    "computed",
    "leaf.data",
    "leaf.detach()",
    "leaf.clone()",
    "leaf.view(9).view(3, 3)",
    "leaf.t()",
    "leaf[:2].t()[:2, :2]",
    "plain.t()",
    "computed.t()",
    "nn.Parameter(plain)",
    "nn.Parameter(plain, requires_grad=False)",
)
WRITES = (
    "{0} += 1",
    "{0} -= 0.1 * {0}.detach()",
    "{0}[0] = 0",
    "{0}.mul_(2)",
    "{0}.zero_()",
    "torch.relu_({0})",
)
AROUND = {
    "plainly": "{0}",
    "no_grad": "with torch.no_grad():\n    {0}",
    "inference_mode": "with torch.no_grad(), torch.enable_grad():\n    {0}",
    "a function": "def write():\n    {0}\n\n\nwrite()",
    "a decorated function": "@torch.no_grad()\ndef write():\n    {0}\n\n\nwrite()",
    "recording off": "torch.set_grad_enabled(False)\n{0}",
}


ERROR = "leaf Variable that requires grad is being used"


def statement(tensor: str, write: str) -> str:
    """Return a write into a tensor, that of an expression through a variable."""
    if tensor.endswith(")") and ("+=" in write or "-=" in write):
        return f"value = {tensor}; {write.format('value')}"
    return write.format(tensor)


@pytest.mark.parametrize("tensor", TENSORS)
def test_writes_are_reported_where_torch_raises(tensor: str, check: Check) -> None:
    for write in WRITES:
        for around in AROUND.values():
            written = statement(tensor, write)
            if "def write" in around and "=" in written:
                around = around.replace(
                    "():", "(leaf=leaf, plain=plain, late=late, computed=computed):"
                ).replace("computed):", "computed, turned_off=turned_off):")
            code = SETUP + around.format(written) + "\n"
            assert [d.code for d in check(code, {"SF902"})] == ["SF902"] * raises(code, ERROR), code


@pytest.mark.parametrize("method", sorted(PARAMETER_WRITES))
def test_methods_of_parameters_in_a_loop(method: str, check: Check) -> None:
    given = {
        "addcdiv_": "p.detach(), p.detach()",
        "addcmul_": "p.detach(), p.detach()",
        "clamp_": "-1, 1",
        "lerp_": "p.detach(), 0.5",
        "copy_": "p.detach()",
        **dict.fromkeys(("normal_", "random_", "uniform_", "zero_"), ""),
    }.get(method, "0.5")
    for model in (
        "layer",
        "unit",
        "conv",
        "frozen",
        "frozen_unit",
        "nn.Sequential(frozen, layer)",
        "nn.ReLU()",
    ):
        for around in AROUND.values():
            loop = f"for p in {model}.parameters(): p.{method}({given})"
            code = SETUP + around.format(loop) + "\n"
            assert [d.code for d in check(code, {"SF902"})] == ["SF902"] * raises(code, ERROR), code


PROGRAMS = {
    "named": "for name, p in unit.named_parameters():\n    p -= 0.1 * p.detach()",
    "pairs": "for a, b in zip(layer.parameters(), frozen.parameters()):\n    a.copy_(b)",
    "frozen ones of pairs": "for a, b in zip(frozen.parameters(), layer.parameters()):\n    a.data.copy_(b)",
    "data": "for p in unit.parameters():\n    p.data.mul_(2)\n    p.data += 1",
    "gradients": (
        "unit(plain).sum().backward()\nfor p in unit.parameters():\n    p.grad.zero_()\n    p.grad += 1"
    ),
    "a gradient of a tensor": "computed.sum().backward()\nleaf.grad.zero_()\nleaf.grad[0] = 1",
    "init": "nn.init.zeros_(layer.weight)\nnn.init.normal_(unit.scale)",
    "frozen in a loop": (
        "for p in unit.parameters():\n    p.requires_grad = False\nfor p in unit.parameters():\n    p.zero_()"
    ),
    "a condition": "for p in nn.Sequential(frozen).parameters():\n    if p.requires_grad:\n        p.zero_()",
    "another condition": "if not torch.is_grad_enabled():\n    leaf.zero_()",
    "in a forward": (
        "class Other(nn.Linear):\n    def forward(self, x):\n        self.weight.clamp_(0, 1)\n"
        "        return super().forward(x)\n\n\nwith torch.no_grad():\n    Other(3, 3)(plain)"
    ),
    "the tensor below a parameter": "nn.Parameter(plain)\nplain += 1",
    "a leaf without gradients gets some": "plain[0] = leaf[0]\nplain *= 2\nplain.sum().backward()",
    "detached in place": "computed.detach_()\ncomputed += 1",
    "frozen by a function": (
        "def freeze(model):\n    for p in model.parameters():\n        p.requires_grad_(False)\n\n\n"
        "freeze(unit)\nunit.scale.zero_()\nunit.fc.weight.zero_()"
    ),
    "out": "torch.add(plain, 1, out=plain)",
    "swapped": "layer.weight = nn.Parameter(torch.zeros(3, 3), requires_grad=False)\nlayer.weight += 1",
    "dropout in evaluation": "F.dropout(leaf, 0.5, False, True)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, check: Check) -> None:
    code = SETUP + PROGRAMS[name] + "\n"
    assert [d.code for d in check(code, {"SF902"})] == ["SF902"] * raises(code, ERROR), code
