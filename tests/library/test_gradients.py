"""Which tensors require a gradient: what the interpreter says is what torch says, whatever is done."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from differential import executed, revealed

from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library import library
from shapefix.library.registry import METHODS, TENSOR

if TYPE_CHECKING:
    import torch

assert library
ARGUMENTS = (
    "",
    "0",
    "2",
    "0, 1",
    "1, 0",
    "0, 2",
    "0, 0, 2",
    "y",
    "y, y",
    "(3, 3)",
    "0, (3, 1)",
    "torch.rand(3)",
    "y > 0.3",
    "y > 0.3, 0.5",
    "y > 0.3, torch.rand(3, 3)",
    "0, torch.tensor([0, 1, 2])",
    "0, torch.tensor([0, 1, 2]), 0.5",
    "0, torch.tensor([0, 1, 2]), torch.rand(3, 3)",
    "0, torch.zeros(3, 3, dtype=torch.long)",
    "0, torch.zeros(3, 3, dtype=torch.long), torch.rand(3, 3)",
    "torch.zeros(3, 3, dtype=torch.long), 0",
    "torch.float64",
    "torch.int64",
)
START = """
torch.manual_seed(0)
x = (torch.rand(3, 3) + 0.1).requires_grad_()
y = x * 0.9
z = torch.rand(3, 3)
"""


def tensors(ours: Value, real: object) -> Iterator[tuple[TensorValue, torch.Tensor]]:
    """Each tensor that torch shows, beside what the interpreter says of it."""
    import torch

    if isinstance(real, torch.Tensor):
        if isinstance(ours, TensorValue):
            yield ours, real
    elif isinstance(real, (tuple, list)):
        items = elements(ours)
        if items is not None and len(items) == len(real):
            for one, other in zip(items, real, strict=True):
                yield from tensors(one, other)


def told(source: str) -> list[tuple[bool | None, bool]]:
    """What is said, and what is so, of each tensor that source reveals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = executed(source)
    ours = revealed(source)
    assert len(ours) == len(real) > 0
    pairs = [pair for one, other in zip(ours, real, strict=True) for pair in tensors(one, other)]
    return [(one.graph, other.requires_grad) for one, other in pairs]


def runs(call: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            executed(f"{START}\nreveal({call})")
        except Exception:
            return False
    return True


OTHERS = (
    "is_contiguous",
    "data_ptr",
    "get_device",
    "stride",
    "size",
    "cuda",
    "xpu",
    "pin_memory",
    "backward",
)
METHOD_NAMES = [name for name in METHODS[TENSOR] if name[0] != "@" and name not in OTHERS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if number % 3 else ())
        for number, name in enumerate(METHOD_NAMES)
    ],
)
def test_methods(name: str) -> None:
    for given in ARGUMENTS:
        for subject in ("y", "z"):
            call = f"{subject}.{name}({given})"
            if runs(call):
                for said, so in told(f"{START}\nreveal({call})"):
                    assert said in (None, so), call


def test_hardly_any_method_leaves_it_open() -> None:
    pairs = [
        pair
        for name in ("exp", "mean", "argmax", "detach", "sum", "view_as", "clone", "softmax", "max")
        for given in ARGUMENTS
        if runs(f"y.{name}({given})")
        for pair in told(f"{START}\nreveal(y.{name}({given}))")
    ]
    assert len(pairs) > 15
    assert all(said is so for said, so in pairs)


SURE = {
    "a layer": "reveal(nn.Linear(3, 4)(z))",
    "the input of a layer without parameters": "reveal(nn.ReLU()(z)), reveal(nn.ReLU()(y))",
    "a norm that has no parameters": "reveal(nn.LayerNorm(3, elementwise_affine=False)(z))",
    "views without gradients": "with torch.no_grad():\n    a = y * 2\nreveal(a), reveal(a.view(9))",
    "no_grad": "with torch.no_grad():\n    reveal(nn.Linear(3, 4)(z)), reveal(y * 2)",
    "inference_mode": "with torch.inference_mode():\n    reveal(nn.Linear(3, 4)(z))",
    "a mode that is off": "with torch.inference_mode(False):\n    reveal(nn.Linear(3, 4)(z))",
    "gradients inside of no_grad": "with torch.no_grad(), torch.enable_grad():\n    reveal(y * 2)",
    "set_grad_enabled": "with torch.set_grad_enabled(False):\n    reveal(y * 2)\nreveal(y * 2)",
    "set_grad_enabled from here on": (
        "torch.set_grad_enabled(False)\nreveal(y * 2)\ntorch.set_grad_enabled(True)"
    ),
    "a decorator": "@torch.no_grad()\ndef f(a):\n    return a * 2\nreveal(f(y)), reveal(y * 2)",
    "a decorator inside of no_grad": (
        "@torch.enable_grad()\ndef f(a):\n    return a * 2\nwith torch.no_grad():\n    reveal(f(y))"
    ),
    "a sum in place": "t = torch.zeros(1)\nt += y.mean()\nreveal(t)",
    "an assignment to a part": "t = torch.zeros(3)\nt[0] = y.mean()\nreveal(t)",
    "a sum in place without gradients": "t = torch.zeros(1)\nt += z.mean()\nreveal(t)",
    "detach in place": "t = y * 2\nt.detach_()\nreveal(t)",
    "data": "reveal(y.data), reveal(y), reveal(y.detach() + z)",
    "a parameter": "reveal(nn.Parameter(z)), reveal(z), reveal(nn.Parameter(z, requires_grad=False))",
    "a tensor that is asked for one": "reveal(torch.zeros(3, requires_grad=True)), reveal(torch.zeros(3))",
    "a layer that is frozen": "f = nn.Linear(3, 4).requires_grad_(False)\nreveal(f(z)), reveal(f(y))",
    "a loss": "reveal(F.mse_loss(y, z)), reveal(nn.MSELoss()(z, z)), reveal(F.mse_loss(z, y))",
    "a loss of classes": "reveal(F.cross_entropy(y, torch.tensor([0, 1, 2])))",
    "lists": "reveal(torch.stack([z, y])), reveal(torch.cat([z, z])), reveal(sum([y.mean(), z.mean()]))",
    "what is found in it": "reveal(y.max(1)), reveal(y.topk(2)), reveal(y.sort()), reveal(y.unbind())",
    "states": "reveal(nn.LSTM(3, 4)(z[None])[0]), reveal(nn.GRU(3, 4)(z[None])[1])",
    "embeddings": "reveal(nn.Embedding(5, 3)(torch.tensor([1, 2])))",
}


@pytest.mark.parametrize("name", SURE)
def test_is_known_for_certain(name: str) -> None:
    pairs = told(f"{START}\n{SURE[name]}")
    assert pairs
    assert all(said is so for said, so in pairs), pairs


OPEN = {
    "parameters that are frozen one by one": (
        "f = nn.Linear(3, 4)\nfor p in f.parameters():\n    p.requires_grad = False\nreveal(f(z))"
    ),
    "views of what has gradients, made without": (
        "with torch.no_grad():\n    reveal(y.view(9)), reveal(y.reshape(9)), reveal(y[0]), reveal(y.float())"
    ),
    "by a method": "f = nn.Linear(3, 4)\nfor p in f.parameters():\n    p.requires_grad_(False)\nreveal(f(z))",
    "a view of what is written into": "t = torch.zeros(3)\nv = t[:2]\nt += y.mean()\nreveal(v)",
    "a view that is written into": "t = torch.zeros(3)\nv = t[:2]\nv += y.mean()\nreveal(t)",
    "a parameter in a list": "w = torch.zeros(3)\nreveal(nn.ParameterList([w])[0])",
    "a conversion to who knows what": "kind = sorted([torch.int64], key=str)[0]\nreveal(y.to(kind))",
}


@pytest.mark.parametrize("name", OPEN)
def test_is_never_wrong_where_it_is_open(name: str) -> None:
    assert all(said in (None, so) for said, so in told(f"{START}\n{OPEN[name]}"))


def test_is_open_in_a_function_that_nobody_calls() -> None:
    (value,) = revealed(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 4)

            def forward(self, x):
                reveal(self.layer(x))
        """
    )
    assert isinstance(value, TensorValue)
    assert value.graph is None


STEPS = (
    "{n} = {a} * {b}",
    "{n} = {a} + 1",
    "{n} = {a}.detach()",
    "{n} = {a}.data",
    "{n} = torch.where({a} > 0.5, {a}, {b})",
    "{n} = {a}.clone()",
    "{n} = layer({a})",
    "{n} = frozen({a})",
    "{n} = F.relu({a})",
    "{n} = torch.zeros_like({a})",
    "{n} = torch.stack([{a}, {b}]).mean(0)",
    "{n} = ({a} > {b}).float()",
    "{n} = {a}.max(1, keepdim=True)[0].expand(3, 3)",
    "{n} = {a}.argmax(1, keepdim=True).float().expand(3, 3)",
    "{n} = {a}.t()",
    "{n} = {a}.reshape(-1).view(3, 3)",
    "{n} = {a}.to(torch.float64).float()",
    "{n} = {a}.contiguous()",
    "{n} = F.dropout({a}, 0.1)",
    "{n} = torch.tensor({a}.tolist())",
    "{n} = twice({a})",
    "{n} = without({a})",
    "{n} = {a}.clone()\n{n} += {b}",
    "{n} = {a}.clone()\n{n}[0] = {b}[1]",
    "{n} = torch.zeros(3, 3)\nfor _ in range(2):\n    {n} = {n} + {b}",
    "with torch.no_grad():\n    {n} = {a} * {b}",
    "with torch.no_grad():\n    {n} = {a}.reshape(9)\n    {n} = {n}.float().view(3, 3)",
    "with torch.set_grad_enabled(bool({a}.sum() > 3)):\n    {n} = {a} * 2",
    "if {a}.sum() > 4:\n    {n} = {a}\nelse:\n    {n} = {b}",
    "{n} = nn.Parameter({a}.detach())",
    "{n} = {a}.mean() + {b}",
    "{n} = {a}.softmax(-1).log()",
    "{n} = {a}[[0, 1, 2]]",
    "{n} = {a}.masked_fill({b} > 1, 0.0)",
)
CHAINS = """
layer = nn.Linear(3, 3)
frozen = nn.Linear(3, 3).requires_grad_(False)

def twice(a):
    return a * 2

@torch.no_grad()
def without(a):
    return a + 1
"""


def chain(seed: int) -> str:
    drawn = random.Random(seed)
    names = ["y", "z"]
    lines = [START, CHAINS]
    for number in range(12):
        name = f"t{number}"
        lines.append(drawn.choice(STEPS).format(n=name, a=drawn.choice(names), b=drawn.choice(names)))
        names.append(name)
        lines.append(f"reveal({name})")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_random_chains(block: int) -> None:
    open_, all_ = 0, 0
    for seed in range(block * 60, (block + 1) * 60):
        source = chain(seed)
        for said, so in told(source):
            assert said in (None, so), source
            open_ += said is None
            all_ += 1
    print(f"{open_} of {all_} are left open")
    assert open_ < all_ / 4
