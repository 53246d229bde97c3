"""Writes into saved tensors, compared with torch: a reported one makes `backward()` raise."""

from __future__ import annotations

import pytest
from checking import Check
from raised_errors import raises

from shapefix.library.ops import saved_tensors

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
source = torch.rand(2, 3, 8, 8, requires_grad=True)
other = torch.rand(2, 3, 8, 8, requires_grad=True)
x = source * 1.0
"""
OTHER_RESULTS = (
    "x + other",
    "x - 1",
    "x * other",
    "-x",
    "x.clone()",
    "x.view(2, 3, 64)",
    "x.transpose(0, 1)",
    "x.sum(dim=0)",
    "x.mean(dim=1)",
    "x.clamp(0, 1)",
    "x.abs()",
    "x.log()",
    "x.sin()",
    "x.matmul(other)",
    "torch.cat([x, other])",
    "F.gelu(x)",
    "F.silu(x)",
    "F.softplus(x)",
    "F.leaky_relu(x)",
    "F.pad(x, (1, 1))",
    "nn.Conv2d(3, 4, 3)(x)",
    "nn.BatchNorm2d(3)(x)",
    "nn.Linear(8, 4)(x)",
    "nn.LeakyReLU()(x)",
)
"""Expressions of other operations, whose result is not saved."""
WRITES = ("{0} += 1", "{0}.mul_(2)", "{0}[0] = 0", "F.relu({0}, inplace=True)", "{0}.detach().add_(1)")


def function_call(name: str, tensor: str) -> str:
    """Return a call of a listed function or method."""
    arguments = {"softmax": "dim=1", "log_softmax": "dim=1", "pow": "3"}.get(name, "")
    if name in ("gelu", "silu", "softplus", "logsigmoid"):
        return f"F.{name}({tensor})"
    if name in saved_tensors.SAVED_FACTORS:
        return (
            f"torch.{name}({tensor}.flatten(0, 1), other.flatten(0, 1))"
            if name == "bmm"
            else (
                f"torch.{name}({tensor}[0, 0], other[0, 0])"
                if name == "mm"
                else f"torch.{name}({tensor}, other)"
            )
        )
    return f"{tensor}.{name}({arguments})"


def layer_call(name: str, tensor: str) -> str:
    """Return a call of a listed layer."""
    short = name.rpartition(".")[2]
    given = {
        "Linear": "8, 8",
        "Conv1d": "3, 3, 1",
        "Conv2d": "3, 3, 3",
        "Conv3d": "3, 3, 1",
        "BatchNorm1d": "3",
        "BatchNorm2d": "3",
        "LayerNorm": "8",
        "MaxPool2d": "2",
        "Softmax": "dim=1",
        "LogSoftmax": "dim=1",
    }.get(short, "")
    sized = {"Conv1d": ".flatten(2)", "BatchNorm1d": ".flatten(2)", "Conv3d": ".unsqueeze(2)"}.get(short, "")
    return f"nn.{short}({given})({tensor}{sized})"


ERROR = "modified by an inplace operation"

RESULTS = [
    *(function_call(name, "x") for name in sorted(saved_tensors.SAVED_RESULTS)),
    *(layer_call(name, "x") for name in sorted(saved_tensors.SAVED_RESULTS_OF_LAYERS)),
]
OPERANDS = [
    *(function_call(name, "x") for name in sorted(saved_tensors.SAVED_OPERANDS)),
    *(function_call(name, "x") for name in sorted(saved_tensors.SAVED_FACTORS)),
    *(layer_call(name, "x") for name in sorted(saved_tensors.SAVED_INPUTS_OF_LAYERS)),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("result", RESULTS)
def test_torch_saves_the_result(result: str, write: str, check: Check) -> None:
    code = f"{SETUP}y = {result}\n{write.format('y')}\ny.sum().backward()\n"
    assert raises(code, ERROR)
    if ".detach()" not in write:
        assert [d.code for d in check(code, {"SF901"})] == ["SF901"], code


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("result", OPERANDS)
def test_torch_saves_the_operand(result: str, write: str, check: Check) -> None:
    code = f"{SETUP}y = {result}\n{write.format('x')}\n(x.sum() + y.sum()).backward()\n"
    assert raises(code, ERROR)
    if ".detach()" not in write:
        assert [d.code for d in check(code, {"SF901"})] == ["SF901"], code


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("result", OTHER_RESULTS)
def test_other_results_may_be_overwritten(result: str, write: str, check: Check) -> None:
    code = f"{SETUP}y = {result}\n{write.format('y')}\ny.sum().backward()\n"
    assert not raises(code, ERROR) or ".detach()" in write
    assert check(code, {"SF901"}) == [], code


SILENT: dict[str, str] = {
    "a copy of the data": "y = x.sigmoid()\ny.data.add_(1)\ny.sum().backward()",
    "a clone": "y = x.sigmoid().clone()\ny += 1\ny.sum().backward()",
    "after the backward": "y = x.sigmoid()\ny.sum().backward()\ny.detach().add_(1)",
    "without gradients": "with torch.no_grad():\n    y = x.sigmoid()\n    y += 1",
    "without a backward": "y = x.sigmoid()\ny += 1",
    "data that needs no gradient": (
        "z = torch.rand(3)\ny = z.sigmoid()\ny += 1\n(y.sum() * source.sum()).backward()"
    ),
    "a factor of a constant": "y = x * 2\ny += 1\ny.sum().backward()",
    "another branch": "y = x.sigmoid()\nloss = x.sum()\ny += 1\nloss.backward()",
}


@pytest.mark.parametrize("name", SILENT)
def test_harmless_writes_are_not_reported(name: str, check: Check) -> None:
    code = SETUP + SILENT[name]
    assert not raises(code, ERROR)
    assert check(code, {"SF901"}) == [], code
