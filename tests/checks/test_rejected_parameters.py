"""SF607: parameters that optimizers of torch reject, and those that they take."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checking import Check

from shapefix.library.optim.rejected_parameters import WEIGHTLESS

CENTER = """\
class Center(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.center = value

"""
HEAD = """\
import torch
from torch import nn

class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2)]
        self.act = nn.ReLU()

class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

class Named(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "head", nn.Linear(2, 2))

class Table(nn.Embedding):
    def __init__(self):
        super().__init__(4, 2)

class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2)]
        self.registered = nn.ModuleList(self.layers)

model, net = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())
scale = nn.Parameter(torch.ones(2))
device = "cuda" if torch.cuda.is_available() else "cpu"
"""

REJECTED = [
    "Adam([])",
    "Adam(())",
    "Adam(params=[])",
    "Adam(model.parameters)",
    "Adam(net)",
    "Adam(model)",
    "Adam(Bare())",
    "Adam(scale)",
    "Adam([model.parameters()])",
    "Adam([model.parameters(), net.parameters()])",
    "Adam([scale * 2])",
    "Adam([scale.double()])",
    "Adam([scale.clone()])",
    "Adam([scale[0]])",
    "Adam([scale.view(1, 2)])",
    "Adam([torch.randn(3, requires_grad=True) * 0.1])",
    'Adam([{"params": [scale * 2]}])',
    "Adam(nn.ReLU().parameters())",
]
TAKEN = [
    "Adam(Bare().parameters())",
    "Adam(Named().parameters())",
    "Adam(Table().parameters())",
    "Adam(Many().parameters())",
    "Adam([scale])",
    "Adam([scale.float()])",
    "Adam([scale.detach()])",
    "Adam([torch.rand(3).unsqueeze(0).clone().requires_grad_(True)])",
    "Adam([torch.rand(3).to(device).clone().requires_grad_(True)])",
    "Adam(Center(scale).parameters())",
    "Adam(Center(nn.Parameter(torch.ones(2) * 2)).parameters())",
    "Adam(Center(model.weight).parameters())",
    "Adam(Center([p for p in model.parameters()][0]).parameters())",
    "Adam([*model.parameters(), scale])",
    "Adam([p for p in model.parameters()])",
    'Adam([{"params": []}])',
    'Adam([{"params": model.parameters()}, {"params": [scale]}])',
    "Adam(model.named_parameters())",
    "Adam(nn.ParameterList([scale]))",
    "Adam(filter(lambda p: p.requires_grad, model.parameters()))",
]


@pytest.mark.parametrize(
    "value",
    ["torch.randn(3, requires_grad=True) * 0.1", "torch.zeros(3, requires_grad=True)", "scale.detach()"],
)
def test_tensors_are_no_parameters(value: str, check: Check) -> None:
    text = (
        f"import torch\nfrom torch import nn\nscale = nn.Parameter(torch.ones(2))\n{CENTER}"
        f"torch.optim.Adam(Center({value}).parameters())\n"
    )
    (found,) = check(text, {"SF607"})
    assert error_of(text).startswith(str(found.error))


def test_a_misspelled_constructor(check: Check) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def _init_(self):\n"
        "        super().__init__()\n        self.fc = nn.Linear(2, 2)\n\n\n"
        "torch.optim.SGD(Net().parameters(), lr=0.1)\n"
    )
    (found,) = check(text, {"SF607"})
    assert "`_init_` is not `__init__`" in found.message
    assert error_of(text).startswith(str(found.error))
    (fix,) = found.fixes
    assert [each.content for each in fix.edits] == ["__init__"]
    assert error_of(text.replace("_init_(self)", "__init__(self)", 1)) == ""


def error_of(code: str) -> str:
    """The error of a script, empty without one."""
    try:
        exec(code, {})
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("code", REJECTED)
def test_torch_rejects_what_is_reported(code: str, check: Check) -> None:
    text = f"{HEAD}{CENTER}torch.optim.{code}\n"
    found = check(text, {"SF607"})
    error = error_of(text)
    assert error
    if "ReLU" in code:
        # The module is not of the project: it has no name to report.
        assert found == []
        return
    assert len(found) == 1
    assert found[0].error is not None
    assert error.startswith(str(found[0].error))


@pytest.mark.parametrize("code", TAKEN)
def test_torch_takes_what_is_not_reported(code: str, check: Check) -> None:
    text = f"{HEAD}{CENTER}torch.optim.{code}\n"
    assert error_of(text) == ""
    assert check(text, {"SF607"}) == []


@pytest.mark.parametrize("name", sorted(WEIGHTLESS))
def test_layers_without_parameters(name: str) -> None:
    kind = getattr(torch.nn, name.removeprefix("torch.nn."))
    layer = kind(2) if "Pool" in name else kind()
    assert not list(layer.parameters())


USED = [
    ("print(sum(p.numel() for p in params))", True),
    ("print(len(list(params)))", True),
    ("for p in params:\n    print(p.shape)", True),
    ("shapes = [p.shape for p in params]", True),
    ("biggest = max(p.numel() for p in params)", True),
    ("first = next(params)", False),
    ("for p in params:\n    break", False),
    ("lazy = (p for p in params)", False),
    ("found = any(p.is_cuda for p in params)", None),
    ("count = lambda: sum(p.numel() for p in params)", False),
    ("if not torch.ones(1).item():\n    list(params)", False),
]


@pytest.mark.parametrize(("use", "is_used"), USED)
def test_generators_used_up(use: str, is_used: bool | None, check: Check) -> None:
    code = f"{HEAD}params = model.parameters()\n{use}\ntorch.optim.Adam(params)\n"
    found = check(code, {"SF607"})
    assert len(found) == (is_used is True)
    if is_used is not None:
        assert ("empty parameter list" in error_of(code)) == is_used
    for each in found:
        assert each.fix is not None
        assert [edit.content for edit in each.fix.edits] == ["list(", ")"]
        fixed = code.replace("params = model.parameters()", "params = list(model.parameters())")
        assert error_of(fixed) == ""


def test_a_move_to_another_device(check: Check) -> None:
    names: dict[str, Any] = {}
    exec(f"{HEAD}moved, same = scale.to('meta'), scale.to('cpu')", names)
    assert not names["moved"].is_leaf
    assert names["same"] is names["scale"]
    assert check(f"{HEAD}torch.optim.Adam([scale.to('cpu')])\n", {"SF607"}) == []
    for same in (
        "contiguous()",
        "float()",
        "type(torch.float32)",
        "to(torch.float32)",
        "cpu()",
        "type_as(scale)",
    ):
        assert eval(f"scale.{same}", names).is_leaf
        assert check(f"{HEAD}torch.optim.Adam([scale.{same}])\n", {"SF607"}) == []
