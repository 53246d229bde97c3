"""SF501 changes a number where the code writes it, if only this layer is made with it, or names the place."""

from __future__ import annotations

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Condition
from shapefix.repair.fixpoint import repair
from shapefix.report.folding import folded

HEAD = """
import argparse
from dataclasses import dataclass
from types import SimpleNamespace
import torch
from torch import nn

rows, images = torch.rand(4, 20, 400), torch.rand(4, 16, 6, 6)


class Projection(nn.Module):
    def __init__(self, n, hidden=8):
        super().__init__()
        self.linear = nn.Linear(n, hidden)

    def forward(self, x):
        return self.linear(x)


class Features(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(16, channels, 3)
        self.linear = nn.Linear(FEATURES, 8)

    def forward(self, x):
        return self.linear(self.conv(x).flatten(1))

"""

CHANGED = {
    "a literal": ("nn.Linear(271, 8)(rows)", "nn.Linear(400, 8)(rows)"),
    "a keyword": ("nn.Linear(out_features=8, in_features=271)(rows)", None),
    "a constant of the file": (
        "VOCAB = 271\nnn.Linear(VOCAB, 8)(rows)",
        "VOCAB = 400\nnn.Linear(VOCAB, 8)(rows)",
    ),
    "a constant with a type": ("VOCAB: int = 271\nnn.Linear(VOCAB, 8)(rows)", None),
    "a constant that is printed": ("VOCAB = 271\nprint(f'{VOCAB} words')\nnn.Linear(VOCAB, 8)(rows)", None),
    "a dictionary": ('c = {"vocab": 271, "hidden": 8}\nnn.Linear(c["vocab"], c["hidden"])(rows)', None),
    "a dictionary that is made by a call": ('c = dict(vocab=271)\nnn.Linear(c["vocab"], 8)(rows)', None),
    "a namespace": ("c = SimpleNamespace(vocab=271)\nnn.Linear(c.vocab, 8)(rows)", None),
    "a field of a dataclass": (
        "@dataclass\nclass C:\n    vocab: int = 271\n    hidden: int = 8\n\n"
        "c = C()\nnn.Linear(c.vocab, c.hidden)(rows)",
        None,
    ),
    "an argument of a dataclass": (
        "@dataclass\nclass C:\n    vocab: int\n    hidden: int = 8\n\n"
        "c = C(vocab=271)\nnn.Linear(c.vocab, c.hidden)(rows)",
        None,
    ),
    "an attribute of a class": ("class C:\n    vocab = 271\n\nnn.Linear(C.vocab, 8)(rows)", None),
    "an argument of the module": ("Projection(271)(rows)", "Projection(400)(rows)"),
    "a named argument of the module": ("Projection(hidden=8, n=271)(rows)", None),
    "a constant that is handed on": ("VOCAB = 271\nProjection(VOCAB)(rows)", None),
    "a field that is handed on": (
        "@dataclass\nclass C:\n    vocab: int = 271\n\nProjection(C().vocab)(rows)",
        None,
    ),
    "a product": (
        "nn.Linear(16 * 5 * 5, 8)(images.flatten(1))",
        "nn.Linear(16 * 6 * 6, 8)(images.flatten(1))",
    ),
    "a product of other factors": ("nn.Linear(16 * 25, 8)(images.flatten(1))", None),
    "a product in a constant": (
        "FLAT = 16 * 5 * 5\nnn.Linear(FLAT, 8)(images.flatten(1))",
        "FLAT = 16 * 6 * 6\nnn.Linear(FLAT, 8)(images.flatten(1))",
    ),
    "channels alone": (
        "width = 16\nconv = nn.Conv2d(16, width, 3)\nnn.Linear(width, 8)(conv(images).flatten(1))",
        "width = 16\nconv = nn.Conv2d(16, width, 3)\nnn.Linear(width * 4 * 4, 8)(conv(images).flatten(1))",
    ),
    "channels and sides": (
        "width = 16\nconv = nn.Conv2d(16, width, 3)\nnn.Linear(width * 5 * 5, 8)(conv(images).flatten(1))",
        "width = 16\nconv = nn.Conv2d(16, width, 3)\nnn.Linear(width * 4 * 4, 8)(conv(images).flatten(1))",
    ),
    "a view in front": ("nn.Linear(16 * 5 * 5, 8)(images.view(4, -1))", None),
    "nn.Flatten in front": (
        "nn.Linear(400, 8)(nn.Flatten()(images))",
        "nn.Linear(576, 8)(nn.Flatten()(images))",
    ),
    "a constant that a module reads": (
        "FEATURES = 400\nFeatures(32)(images)",
        "FEATURES = 512\nFeatures(32)(images)",
    ),
}
"""Scripts that fail, and what becomes of them; None where only 271 becomes 400, and a product 16 * 6 * 6."""

LEFT = {
    "a width that other layers have, too": (
        "width = 271\nfirst = nn.Linear(400, width)\nsecond = nn.Linear(width, 8)\nsecond(rows)",
        "`width` is 271 from line",
    ),
    "a field that is read elsewhere": (
        "@dataclass\nclass C:\n    vocab: int = 271\n\nc = C()\n"
        "embed = nn.Embedding(c.vocab, 400)\nlinear = nn.Linear(c.vocab, 8)\nlinear(rows)",
        "`vocab` is 271 from line",
    ),
    "a module that is made twice": (
        "n = 271\nProjection(n)(torch.rand(2, 271))\nProjection(n)(rows)",
        "`n` is 271 from line",
    ),
    "a sum": ("VOCAB = 270\nnn.Linear(VOCAB + 1, 8)(rows)", "create the layer with in_features=400"),
}
"""Scripts whose repair is somebody's choice, and part of what is said of it."""


def run(text: str) -> None:
    import torch

    torch.manual_seed(0)
    exec(compile(text, "script.py", "exec", dont_inherit=True), {"__name__": "script"})


@pytest.mark.parametrize(("code", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_the_number_is_changed_where_it_is_written(code: str, expected: str | None, check: Check) -> None:
    if expected is None:
        products = code.replace("16 * 5 * 5", "16 * 6 * 6").replace("16 * 25", "16 * 6 * 6")
        expected = products.replace("271", "400")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        run(HEAD + code)
    repaired = repair(
        HEAD + code,
        check,
        lambda fix, _: fix.applicability is not Applicability.DISPLAY,
    )
    assert repaired.text == HEAD + expected
    run(repaired.text)


@pytest.mark.parametrize(("code", "told"), LEFT.values(), ids=LEFT.keys())
def test_a_number_that_others_need_is_only_named(code: str, told: str, check: Check) -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        run(HEAD + code)
    (found,) = check(HEAD + code)
    assert found.code == "SF501"
    (fix,) = found.fixes
    assert fix.applicability is Applicability.DISPLAY
    assert not fix.edits
    assert told in fix.message


def test_a_number_in_another_file_is_named_with_its_file(check: Check) -> None:
    (check.folder / "config.py").write_text("VOCAB = 271\n")
    script = (
        "import torch\nfrom torch import nn\nimport config\nnn.Linear(config.VOCAB, 8)(torch.rand(4, 400))\n"
    )
    (check.folder / "script.py").write_text(script)
    (found,) = check(script)
    (fix,) = found.fixes
    assert fix.applicability is Applicability.DISPLAY
    assert fix.message == "set `VOCAB` (config.py:1) to 400"


def test_an_option_of_the_command_line_is_named(check: Check) -> None:
    script = f"""{HEAD}
parser = argparse.ArgumentParser()
parser.add_argument("--vocab-size", type=int, default=271)
args, _ = parser.parse_known_args([])
nn.Linear(args.vocab_size, 8)(rows)
"""
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        run(script)
    parsed = script.replace("args, _ = parser.parse_known_args([])", "args = parser.parse_args()")
    (found,) = check(parsed)
    (fix,) = found.fixes
    assert fix.applicability is Applicability.DISPLAY
    assert "`--vocab-size 400`" in fix.message
    assert found.condition == Condition("`--vocab-size` is 271, its default", constant=True)


HEADS = """
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x, y):
        mean = self.mean(x)

        return mean, self.spread({given})


scores = Heads()(torch.rand(3, 6), torch.rand(3, 6))
"""


@pytest.mark.parametrize(("given", "entries"), [("x", 1), ("y", 2)])
def test_a_tensor_given_to_two_layers_is_one_cause(given: str, entries: int, check: Check) -> None:
    found = check(HEADS.format(given=given), {"SF501"})
    assert len(found) == 2
    assert len(folded(found)) == entries


AFTER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 5, 3), nn.Conv2d(8, 4, 3)

    def forward(self, x):
        x = self.second(self.first(x))
        return self.third(x)


Net()(torch.rand(2, {channels}, 16, 16))
"""


@pytest.mark.parametrize(("channels", "findings"), [(1, 2), (3, 1)])
def test_sizes_after_the_first_error_of_a_model_are_guesses(
    channels: int, findings: int, check: Check
) -> None:
    found = check(AFTER.format(channels=channels), {"SF506"})
    assert len(found) == findings
    assert len(folded(found)) == 1


@pytest.mark.parametrize(
    ("layer", "good", "bad"),
    [
        ("nn.Conv2d(3, 8, 3)", (2, 3, 8, 8), (2, 1, 8, 8)),
        ("nn.Linear(8, 3)", (2, 8), (2, 11)),
        ("nn.BatchNorm1d(8)", (2, 8), (2, 11)),
    ],
)
def test_a_layer_that_fits_other_inputs_is_not_changed(
    check: Check, layer: str, good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    model = f"import torch\nfrom torch import nn\n\nnet = {layer}\n\n\ndef step(x):\n    return net(x)\n\n\n"
    code = {"SF501", "SF506", "SF511"}
    (alone,) = check(f"{model}step(torch.rand{bad})\n", code)
    (both,) = check(f"{model}step(torch.rand{bad})\nstep(torch.rand{good})\n", code)
    assert both.fixes != alone.fixes
    assert [each.applicability for each in both.fixes] == [Applicability.DISPLAY]
    assert "the layer gets the expected" in both.fixes[0].message
    assert both.fixes[0].message.endswith("from line 12")
