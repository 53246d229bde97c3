"""Declared sizes of functions are facts for their callers, and are compared with calls and bodies."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import shapefix
from shapefix.api import Findings
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.declarations import InvalidDeclaration, declaration

SIGNATURES = """\
[tool.shapefix.signatures]
"mylib.FlashBlock.forward" = "x: f[B, T, D] -> f[B, T, D]"
"mylib.FlashBlock.split" = "x: f[B, D] -> (f32[B, D // 2], _)"
"mylib.patchify" = "x: f[B, C, H, W], size: _ -> f32[B, H * W // 64, 192]"
"model.Wrong.forward" = "x: f[B, 8] -> f[B, 5]"
"model.Right.forward" = "x: f[B, 8] -> f[B, 4]"
"model.opaque" = "x: f32[B, D] -> f32[B, 2 * D]"
"""
MODEL = """\
import torch.nn as nn
import ext


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = self.fc(x)
        return x


class Right(Wrong):
    def forward(self, x):
        return self.fc(x)


def opaque(x):
    return ext.go(x)
"""
IMPORTS = "import torch\nimport torch.nn as nn\nfrom mylib import FlashBlock, patchify\n"
IMPORTS += "from model import Right, Wrong, opaque\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(SIGNATURES)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def checked(folder: Path, code: str) -> Findings:
    return shapefix.check_source(IMPORTS + dedent(code), folder / "train.py")


def revealed(folder: Path, code: str) -> list[str]:
    return [answer.message.removesuffix(" strides unknown") for answer in checked(folder, code).answers]


def test_an_unknown_layer_has_its_declared_sizes(folder: Path) -> None:
    code = """
    block = FlashBlock(64, heads=8).to("cpu").train()
    y = block(torch.zeros(4, 7, 64))
    reveal(y)
    reveal(block.forward(x=y))
    left, right = block.split(torch.zeros(3, 10))
    reveal(left)
    reveal(right)
    """
    assert revealed(folder, code) == ["?[4, 7, 64]", "?[4, 7, 64]", "f32[3, 5]", "unknown"]
    (finding,) = checked(folder, "y = FlashBlock()(torch.zeros(4, 7, 64))\nnn.Linear(32, 2)(y)\n")
    assert (finding.code, finding.error is not None) == ("SF501", True)
    assert not checked(folder, "y = FlashBlock()(torch.zeros(4, 7, 64))\nnn.Linear(64, 2)(y)\n")


def test_a_declared_layer_is_a_module_among_others(folder: Path) -> None:
    code = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(FlashBlock(8), nn.Linear(8, 3))

        def forward(self, x):
            return self.blocks(x)

    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    reveal(net(torch.zeros(1, 2, 8)))
    """
    assert revealed(folder, code) == ["f32[1, 2, 3]"]
    assert not checked(folder, code)


def test_functions_and_arithmetic(folder: Path) -> None:
    assert revealed(folder, "reveal(patchify(torch.zeros(2, 3, 32, 16), 8))") == ["f32[2, 8, 192]"]
    assert revealed(folder, "reveal(opaque(torch.zeros(3, 5)))") == ["f32[3, 10]"]
    code = "def f(x: torch.Tensor):\n    reveal(opaque(x))\n"
    assert revealed(folder, code) == ["f32[B, 2*D]"]


def test_listings_have_the_declared_sizes(folder: Path) -> None:
    code = "class Net(nn.Module):\n    def forward(self, x):\n        y = opaque(x)\n        return y\n"
    (folder / "train.py").write_text(IMPORTS + code)
    (listing,) = shapefix.shapes(f"{folder / 'train.py'}:Net", "x: f32[B, 5]")
    assert "y       f32[B, 10]" in str(listing)


def test_a_body_that_differs_is_said_and_wins(folder: Path) -> None:
    found = checked(folder, "y = Wrong()(torch.zeros(2, 8))\nreveal(y)\nRight()(torch.zeros(2, 8))\n")
    (note,) = found.unchecked
    assert note.message == (
        "the signature of `model.Wrong.forward` declares the result as f[B, 5], but it is f32[2, 4] here"
    )
    assert note.row == 5
    assert [answer.message for answer in found.answers] == ["f32[2, 4]"]


def test_an_argument_of_another_rank_or_size_is_said(folder: Path) -> None:
    found = checked(folder, "FlashBlock(64)(torch.zeros(4, 7))\nRight()(torch.zeros(2, 9))\n")
    assert [note.message.partition(" declares ")[2] for note in found.unchecked] == [
        "`x` as f[B, T, D], but it is f32[4, 7] here",
        "`x` as f[B, 8], but it is f32[2, 9] here",
    ]


def test_without_a_declaration_nothing_is_known(folder: Path) -> None:
    (folder / "pyproject.toml").unlink()
    assert revealed(folder, "reveal(FlashBlock(64)(torch.zeros(4, 7, 64)))") == ["unknown"]


def test_an_annotated_result_is_a_fact_where_the_body_is_unknown(folder: Path) -> None:
    code = """
    from jaxtyping import Float
    from torch import Tensor
    import ext

    def widen(x: Float[Tensor, "B D"], y: Float[Tensor, "B E"]) -> Float[Tensor, "B D+1 E"]:
        x = x.t()
        return ext.go(x, y)

    def known(x: Float[Tensor, "B D"]) -> Float[Tensor, "B 7"]:
        return torch.zeros(3, 5)

    def bare(x) -> Tensor:
        return ext.go(x)

    reveal(widen(torch.zeros(3, 5), torch.zeros(3, 2)))
    reveal(known(torch.zeros(3, 5)))
    reveal(bare(torch.zeros(3, 5)))
    """
    assert revealed(folder, code) == ["?[3, 6, 2]", "f32[3, 5]", "unknown"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x: f[B]", "cannot be read; write it like"),
        ("x: q[B] -> f[B]", "unknown dtype 'q'; known are f, i, bool"),
        ("x: f[B] -> f[B/2]", "has the size 'B / 2'"),
        ("x: f[-1] -> f[B]", "has the size '-1'"),
        ("x: f[B] -> Tensor", "has 'Tensor', which is not a tensor like"),
        ("x: f[B] = 3 -> f[B]", "has a default or a star"),
        ("*x: f[B] -> f[B]", "has a default or a star"),
        ("x: f[B] -> f[B]: pass\ndef g()", "cannot be read"),
        ("x: f[" + "B, " * 400 + "] -> f[B]", "cannot be read"),
    ],
)
def test_a_wrong_declaration_is_explained(text: str, part: str) -> None:
    with pytest.raises(InvalidDeclaration, match=part.replace("[", r"\[").replace("(", r"\(")):
        declaration(text)


def test_a_wrong_configuration_names_the_function(folder: Path) -> None:
    for line, part in (
        ('"mylib.f" = "x -> q[B]"', r"signatures.'mylib.f' has the unknown dtype 'q'"),
        ('"f" = "x: f[B] -> f[B]"', r"signatures.'f' must be a full name"),
        ('"mylib.f" = 3', r"signatures.'mylib.f' must be a string, not an integer"),
    ):
        (folder / "pyproject.toml").write_text(f"[tool.shapefix.signatures]\n{line}\n")
        with pytest.raises(ConfigurationError, match=part):
            checked(folder, "")


def test_results_in_the_cache_depend_on_the_signatures(folder: Path) -> None:
    (folder / "train.py").write_text(f"{IMPORTS}nn.Linear(32, 2)(FlashBlock()(torch.zeros(4, 7, 64)))\n")
    for result, findings in (("f[B, T, D]", 1), ("f[B, T, 32]", 0), ("f[B, T, D]", 1)):
        signature = f'"mylib.FlashBlock.forward" = "x: f[B, T, D] -> {result}"'
        text = f'[tool.shapefix]\ncache-dir = ".cache"\n[tool.shapefix.signatures]\n{signature}\n'
        (folder / "pyproject.toml").write_text(text)
        assert len(shapefix.check(folder)) == findings
