"""One of several models or classes, chosen by a condition: each is followed on a path of its own."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from revealed import holds

from shapefix.api import check

MODELS = """
import sys
import torch
import torch.nn as nn


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.conv(x).mean((2, 3)))


class Flat(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.head = nn.Linear(features, 5)

    def forward(self, x):
        return self.head(x.flatten(1))


"""


def _codes(tmp_path: Path, code: str) -> list[tuple[str, int]]:
    script = tmp_path / "script.py"
    script.write_text(MODELS + dedent(code).lstrip())
    return [(each.code, each.span.row) for each in check([script])]


CHOSEN = """
if sys.argv[1] == "conv":
    model = Conv()
else:
    model = Flat({features})
model = model.{move}
print(model(torch.randn(4, 3, 8, 8)).shape)
"""


@pytest.mark.parametrize("move", ["cpu()", "train()", "to('cpu')", "eval()"])
@pytest.mark.parametrize("features", [192, 100])
@pytest.mark.parametrize("name", ["conv", "flat"])
def test_torch_and_the_finding_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, features: int, move: str, name: str
) -> None:
    code = CHOSEN.format(features=features, move=move)
    found = _codes(tmp_path, code)
    monkeypatch.setattr(sys, "argv", ["script.py", name])
    fails = name == "flat" and features == 100
    if fails:
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            runpy.run_path(str(tmp_path / "script.py"))
    else:
        runpy.run_path(str(tmp_path / "script.py"))
    assert [code for code, _ in found] == (["SF501"] if features == 100 else [])


def test_models_of_a_function_or_of_classes(tmp_path: Path) -> None:
    code = """
    def build(name):
        if name == "conv":
            return Conv()
        return Flat(100)


    if sys.argv[1] == "conv":
        Net = Conv
    else:
        Net = Flat
    build(sys.argv[1])(torch.randn(4, 3, 8, 8))
    Net(7)(torch.randn(4, 3, 8, 8))
    """
    # Conv takes no argument: only Flat is meant by the last line. Both calls fail at the same place.
    assert [code for code, _ in _codes(tmp_path, code)] == ["SF501"]
    assert [code for code, _ in _codes(tmp_path, code.replace("Flat(100)", "Flat(192)"))] == ["SF501"]
    assert _codes(tmp_path, code.replace("Flat(100)", "Flat(192)").replace("Net(7)", "Net(192)")) == []


def test_results_are_joined(tmp_path: Path) -> None:
    holds(
        MODELS
        + """
model = Conv() if len(sys.argv) > 1 else Flat(192)
reveal(model(torch.zeros(4, 3, 8, 8)))  # f32[4, 5]
""",
        tmp_path,
    )


RIGHT = {
    "a condition around the call leaves out the other": """
        if sys.argv[1] == "conv":
            model = Conv()
        else:
            model = Flat(3)
        x = torch.randn(4, 3, 8, 8)
        if sys.argv[1] == "conv":
            print(model(x))
        else:
            print(model(x.mean((2, 3))))
        """,
    "the same option under another name": """
        def build(kind):
            if kind == "conv":
                return Conv()
            return Flat(3)


        name = sys.argv[1]
        model = build(name)
        x = torch.randn(4, 3, 8, 8)
        if name == "conv":
            print(model(x))
        """,
    "layers of a loop, one after the other": """
        class Stack(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.layers = nn.ModuleList()
                for i in range(depth):
                    if i == 0:
                        layer = Flat(192)
                    else:
                        layer = Flat(5)
                    self.layers.append(layer)

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x


        Stack(int(sys.argv[1]))(torch.randn(4, 3, 8, 8))
        """,
    "items of a list": """
        class Pair(nn.Module):
            def __init__(self, names):
                super().__init__()
                self.layers = nn.ModuleList([Flat(192), Flat(5)])

            def forward(self, x, n):
                for i in range(n):
                    x = self.layers[i](x)
                return x


        Pair(sys.argv)(torch.randn(4, 3, 8, 8), int(sys.argv[1]))
        """,
    "other arguments": """
        class Two(nn.Module):
            def forward(self, x, y):
                return x + y


        if sys.argv[1] == "two":
            model = Two()
        else:
            model = Flat(192)
        model(torch.randn(4, 3, 8, 8))
        """,
    "moved as a part of another model": """
        class Wrapper(nn.Module):
            def __init__(self, name):
                super().__init__()
                if name == "conv":
                    self.body = Conv()
                else:
                    self.body = Flat(192)

            def forward(self, x):
                return self.body(x)


        model = Wrapper(sys.argv[1]).to("cuda")
        model(torch.randn(4, 3, 8, 8, device="cuda"))
        """,
    "gradients cleared by the model": """
        if sys.argv[1] == "conv":
            model = Conv()
        else:
            model = Flat(192)
        optimizer = torch.optim.Adam(model.parameters())
        for x in torch.randn(100, 4, 3, 8, 8):
            model.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        """,
    "written into by one, saved by the other": """
        class Saving(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))

            def forward(self, x):
                return x * self.weight


        class Writing(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))

            def forward(self, x):
                return x.relu_() + self.weight


        if sys.argv[1] == "saving":
            model = Saving()
        else:
            model = Writing()
        model(torch.randn(4, 8)).sum().backward()
        """,
}


@pytest.mark.parametrize("code", RIGHT.values(), ids=RIGHT)
def test_nothing_is_reported(tmp_path: Path, code: str) -> None:
    assert _codes(tmp_path, code) == []


@pytest.mark.parametrize("name", ["saving", "writing"])
def test_torch_runs_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _codes(tmp_path, RIGHT["written into by one, saved by the other"])
    monkeypatch.setattr(sys, "argv", ["script.py", name])
    runpy.run_path(str(tmp_path / "script.py"))


def test_moved_to_one_device_but_not_its_input(tmp_path: Path) -> None:
    code = """
    if sys.argv[1] == "conv":
        model = Conv()
    else:
        model = Flat(192)
    model.to("cuda")
    model(torch.randn(4, 3, 8, 8))
    """
    assert {code for code, _ in _codes(tmp_path, code)} == {"SF602"}


def test_a_class_of_a_dictionary_by_an_unknown_name(tmp_path: Path) -> None:
    code = """
        class Thin(Conv):
            pass

        net = {"conv": Conv, "thin": Thin}[sys.argv[1]]()
        net(torch.zeros(2, 3, 8, 8)).view(11, 1)
    """
    assert _codes(tmp_path, code) == [("SF507", 30)]
    shown = """
        class Thin(Conv):
            pass

        net = {"conv": Conv, "thin": Thin}[sys.argv[1]]()
        reveal(net(torch.zeros(2, 3, 8, 8)))  # f32[2, 5]
        mixed = {"conv": Conv, "size": 3}[sys.argv[1]]
        reveal(mixed)  # unknown
    """
    holds(MODELS + dedent(shown), tmp_path)
