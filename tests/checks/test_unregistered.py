"""SF606, compared with torch: reported attributes have parameters missing in `parameters()`."""

from __future__ import annotations

import textwrap

import pytest
import torch
from checking import Check

CODE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        {built}
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        {used}
        return self.head(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = model(torch.rand(3, 4)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOOP = "for layer in self.layers: x = layer(x)"
BUILT = {
    "self.layers = [nn.Linear(4, 4) for _ in range(depth)]": LOOP,
    "self.layers = [nn.Linear(4, 4)] * 2": LOOP,
    "self.layers = list(nn.Linear(4, 4) for _ in range(2))": LOOP,
    "self.layers = tuple([nn.Linear(4, 4)])": LOOP,
    "self.layers = []; self.layers += [nn.Linear(4, 4)]": LOOP,
    "self.layers = []; self.layers.extend([nn.Linear(4, 4)])": LOOP,
    "self.layers = [[nn.Linear(4, 4)], [nn.Linear(4, 4)]]": "x = self.layers[1][0](x)",
    "self.layers = dict(a=nn.Linear(4, 4))": "x = self.layers['a'](x)",
    "self.layers = [nn.LSTM(4, 4)]": "x = self.layers[0](x)[0]",
    "self.scale = torch.ones(4).requires_grad_()": "x = x * self.scale",
    "self.scale = torch.tensor(2.0, requires_grad=True)": "x = x * self.scale",
    "self.scale = nn.Parameter(torch.ones(4)).to('cpu')": "x = x * self.scale",
    "self.scale = nn.Parameter(torch.ones(4)).float()": "x = x * self.scale",
    "self.a = nn.Parameter(torch.ones(4)); self.scale = nn.Parameter(self.a * 0.1)": "x = x * self.scale",
    "self.layers = nn.ModuleList([nn.Linear(4, 4)])": LOOP,
    "self.layers = nn.ModuleList(); self.layers.append(nn.Linear(4, 4))": LOOP,
    "self.layers = [nn.Linear(4, 4)]; self.all = nn.Sequential(*self.layers)": LOOP,
    "self.layers = [nn.Linear(4, 4)]; self.all = nn.Sequential(*[each for each in self.layers])": LOOP,
    "self.layers = [nn.Linear(4, 4)]; setattr(self, 'first', self.layers[0])": LOOP,
    "self.layers = [nn.Linear(4, 4)]; self.first = self.layers[0]": LOOP,
    "self.layers = [nn.Linear(4, 4)]; self.layers = nn.ModuleList(self.layers)": LOOP,
    "self.layers = [nn.Linear(4, 4)]; self.register_module('first', self.layers[0])": LOOP,
    "self.layers = [nn.ReLU(), nn.Flatten()]": LOOP,
    "self.scale = nn.Parameter(torch.ones(4))": "x = x * self.scale",
    "self.scale = torch.ones(4)": "x = x * self.scale",
    "self.scale = torch.ones(4); self.register_parameter('a', nn.Parameter(self.scale))": "x = x * self.a",
}


@pytest.mark.parametrize("built", BUILT)
def test_reported_attributes_have_parameters_that_the_model_omits(check: Check, built: str) -> None:
    code = CODE.format(built=built, used=textwrap.dedent(BUILT[built]))
    names: dict[str, object] = {}
    exec(code, names)
    model = names["model"]
    assert isinstance(model, torch.nn.Module)
    trained = {id(parameter) for parameter in model.parameters()}
    omitted = [each for each in _parameters(list(vars(model).values())) if id(each) not in trained]
    assert bool(check(code, {"SF606"})) == bool(omitted)


def _parameters(values: list[object]) -> list[torch.Tensor]:
    """Return all trained tensors in plain attributes."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.nn.Module):
            found += value.parameters()
        elif isinstance(value, torch.Tensor):
            found += [value] if value.requires_grad else []
        elif isinstance(value, (list, tuple)):
            found += _parameters(list(value))
        elif isinstance(value, dict):
            found += _parameters(list(value.values()))
    return found


@pytest.mark.parametrize(
    "optimizer",
    [
        "torch.optim.SGD(model.head.parameters(), lr=0.1)",
        "torch.optim.SGD([*model.parameters(), *model.layers[0].parameters()], lr=0.1)",
        "torch.optim.SGD(unknown(model), lr=0.1)",
    ],
)
def test_other_optimizers(check: Check, optimizer: str) -> None:
    code = CODE.format(built="self.layers = [nn.Linear(4, 4)]", used=LOOP)
    code = code.replace("torch.optim.SGD(model.parameters(), lr=0.1)", optimizer)
    is_partial = "head" in optimizer
    assert bool(check(code, {"SF606"})) == is_partial


@pytest.mark.parametrize("lines", ["for p in model.layers[0].parameters(): p.grad = None", ""])
def test_gradients_by_hand(check: Check, lines: str) -> None:
    code = CODE.format(built="self.layers = [nn.Linear(4, 4)]", used=LOOP)
    assert bool(check(code + lines, {"SF606"})) == (not lines)


def test_layers_of_a_model_evaluated_only(check: Check) -> None:
    code = CODE.format(built="self.layers = [nn.Linear(4, 4)]", used=LOOP)
    code = code.replace("    loss.backward()\n", "")
    assert not check(code, {"SF606"})


@pytest.mark.parametrize(
    ("built", "is_found"),
    [
        ("nn.Parameter(torch.ones(4)) * 0.1", True),
        ("0.1 * nn.Parameter(torch.ones(4)).unsqueeze(0)", True),
        ("nn.Parameter(torch.ones(4)).cuda()", True),
        ("nn.Parameter(torch.ones(4)).to('cuda')", True),
        ("nn.Parameter(torch.ones(4)).to(DEVICE)", True),
        ("nn.Parameter(torch.ones(4).cuda()).cuda()", False),
        ("nn.Parameter(torch.ones(4, device=DEVICE)).to(DEVICE)", False),
        ("nn.Parameter(torch.ones(4).to(DEVICE))", False),
    ],
)
def test_a_parameter_computed_from_or_moved_to_a_gpu_is_another_tensor(
    check: Check, built: str, is_found: bool
) -> None:
    code = CODE.format(built=f"self.scale = {built}", used="x = x * self.scale")
    chosen = "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'"
    assert bool(check(code.replace("class Net", f"{chosen}\nclass Net"), {"SF606"})) == is_found
