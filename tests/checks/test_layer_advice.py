"""Advice on a layer: not against its other uses, with the call of a helper, with the author's variable."""

from __future__ import annotations

import pytest
import torch
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = {conv}
        self.norm = nn.BatchNorm2d(1)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.norm(self.conv(x))

    def score(self, x):
        return self.head({score})

    def embed(self, x):
        return self.head({embed})


def conv1x1(inside, outside, stride):
    return nn.Conv2d(inside, outside, kernel_size=1, stride=stride)


Net(2)(torch.zeros(4, 3, 8, 8))
"""
FITS, FAILS = "torch.zeros(4, 8)", "torch.zeros(4, 6)"


def found(check: Check, code: str, conv: str, score: str = FITS, embed: str = FITS) -> list[Diagnostic]:
    return check(NET.format(conv=conv, score=score, embed=embed), {code})


@pytest.mark.parametrize(
    ("conv", "change"),
    [
        (
            "conv1x1(3, classes, 1)",
            "create the layer with num_features=classes, or `conv1x1(3, classes, 1)` so that its "
            "out_channels is 1",
        ),
        (
            "conv1x1(3, stride=1, outside=classes)",
            "create the layer with num_features=classes, or `conv1x1(3, stride=1, outside=classes)` so that "
            "its out_channels is 1",
        ),
        (
            "nn.Conv2d(3, classes, 1)",
            "create the layer with num_features=classes, or `nn.Conv2d(3, classes, 1)` with out_channels=1",
        ),
        (
            "nn.Conv2d(3, 2, 1)",
            "create the layer with num_features=2, or `nn.Conv2d(3, 2, 1)` with out_channels=1",
        ),
    ],
)
def test_the_call_and_the_variable_of_the_author_are_named(conv: str, change: str, check: Check) -> None:
    (finding,) = found(check, "SF511", conv)
    (fix,) = finding.fixes
    assert fix.message == change
    (edit,) = fix.edits
    rows = NET.format(conv=conv, score=FITS, embed=FITS).splitlines()
    row = rows[edit.span.row - 1]
    text = row[: edit.span.column - 1] + edit.content + row[edit.span.end_column - 1 :]
    names: dict[str, type[torch.nn.Module]] = {}
    fixed = "\n".join([*rows[: edit.span.row - 1], text, *rows[edit.span.row :]])
    exec(fixed, names)
    assert names["Net"](2)(torch.zeros(4, 3, 8, 8)).shape == (4, 2, 8, 8)


def test_a_layer_with_another_use_is_not_changed(check: Check) -> None:
    (finding,) = found(check, "SF501", "nn.ReLU()", score=FAILS)
    (fix,) = finding.fixes
    assert fix.applicability is Applicability.DISPLAY
    assert fix.message == "change the input: the layer gets the expected 8 from line 19"
    assert not fix.edits


def test_a_layer_that_fits_nowhere_is_changed(check: Check) -> None:
    for finding in found(check, "SF501", "nn.ReLU()", score=FAILS, embed=FAILS):
        assert finding.fixes[0].message == "create the layer with in_features=6"


@pytest.mark.parametrize(
    ("before", "advice"),
    [
        ("nn.Identity()", "permute(0, 3, 1, 2)"),
        ("nn.Conv2d(16, 16, 3, padding=1)", "in_channels=16"),
        ("nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())", "in_channels=16"),
    ],
)
def test_channels_are_where_a_convolution_puts_them(before: str, advice: str, check: Check) -> None:
    code = f"""
import torch
from torch import nn

x = {before}(torch.randn(4, 16, 32, 32))
layer = nn.Conv2d(32, 8, 1)
layer(x)
"""
    (finding,) = check(code, {"SF506"})
    (fix,) = finding.fixes
    assert advice in fix.message + "".join(edit.content for edit in fix.edits)


def test_a_best_model_without_data_to_evaluate_on_is_not_asked_for(check: Check) -> None:
    code = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

settings = TrainingArguments(output_dir="out", save_steps=100, load_best_model_at_end=True)
trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=settings, DATA)
"""
    for data, written in (
        ("train_dataset=[]", "load_best_model_at_end=False"),
        ("train_dataset=[], eval_dataset=[]", 'eval_strategy="steps"'),
    ):
        (finding,) = check(code.replace("DATA", data), {"SF408"})
        assert [edit.content.strip(", ") for fix in finding.fixes for edit in fix.edits] == [written]


@pytest.mark.parametrize(("version", "raises"), [("4.18.0", False), ("4.45.2", False), ("4.46.0", True)])
def test_older_trainers_need_no_data_to_be_made(version: str, raises: bool, check: Check) -> None:
    code = """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

settings = TrainingArguments(output_dir="out", evaluation_strategy="epoch")
trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=settings)
"""
    found = check(code, {"SF408"}, transformers_version=version)
    assert [each.code for each in found] == ["SF408"] * raises


def test_a_called_method_is_named_with_its_brackets(check: Check) -> None:
    code = """
import torch

loss = torch.nn.functional.mse_loss(torch.randn(4), torch.randn(4))
loss.data.cpu()[0]
a, b = torch.randn(2, 3, 4).size()
"""
    first, second = sorted(check(code, {"SF507"}), key=lambda each: each.span)
    assert "`loss.data.cpu()` is a 0-dim tensor" in first.message
    assert "`torch.randn(2, 3, 4)` is f32[2, 3, 4]" in second.message


FORGOTTEN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)

    def forward(self, x):
        return USED

Net()(torch.randn(4, 3, 32, 32))
"""


@pytest.mark.parametrize(
    ("used", "is_named"), [("self.conv2(x)", True), ("self.conv2(x) + self.conv1(x)", False)]
)
def test_a_forgotten_layer_is_named(used: str, is_named: bool, check: Check) -> None:
    found = check(FORGOTTEN.replace("USED", used), {"SF506"})
    assert ("call `self.conv1` first" in found[0].fixes[0].message) == is_named
