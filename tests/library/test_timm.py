"""timm's models by name: their features, their classifiers, and their scores.

timm is no dependency: where it is installed, a sample of the table is compared with it.
"""

from __future__ import annotations

import random

import pytest
from checking import Check
from differential import revealed
from generate_timm_heads import heads as heads_of_timm

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Value
from shapefix.library.timm import heads

IMPORTS = "import timm\nimages = torch.zeros(2, 3, 224, 224)\n"


def _text(value: Value) -> str:
    if isinstance(value, TensorValue):
        return "?" if value.layout is None else str(tuple(map(str, value.layout.sizes)))
    return str(value.value) if isinstance(value, Constant) else "?"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('timm.create_model("resnet50")(images)', "('2', '1000')"),
        ('timm.create_model("resnet50", pretrained=True, num_classes=7)(images)', "('2', '7')"),
        ('timm.create_model("resnet18.a1_in1k", num_classes=0)(images)', "('2', '512')"),
        ('timm.create_model("resnet18", num_classes=0).num_features', "512"),
        ('timm.create_model("resnet50").fc.in_features', "2048"),
        ('timm.create_model("efficientnet_b3").classifier.in_features', "1536"),
        ('timm.create_model("vit_base_patch16_224").head.in_features', "768"),
        ('timm.create_model("convnext_tiny").head.fc.in_features', "768"),
        ('timm.create_model("swin_tiny_patch4_window7_224", num_classes=3)(images)', "('2', '3')"),
        ('timm.create_model("resnet50").get_classifier().in_features', "2048"),
        ('timm.create_model("resnet50", features_only=True)(images)', "?"),
        ('timm.create_model("resnet50", global_pool="")(images)', "?"),
        ('timm.create_model("some_other_model")(images)', "?"),
        ('timm.create_model("resnet50.tag_of_other_weights")(images)', "('2', 'num_classes')"),
    ],
)
def test_scores_and_features(code: str, expected: str) -> None:
    (value,) = revealed(f"{IMPORTS}reveal({code})")
    assert _text(value) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("model.reset_classifier(4)", "('2', '4')"),
        ("model.reset_classifier(num_classes=0)", "('2', '2048')"),
        ("model.fc = nn.Identity()", "('2', '2048')"),
        ("model.fc = nn.Sequential(nn.Linear(2048, 9), nn.ReLU())", "('2', '9')"),
        ("model.fc = nn.Linear(model.fc.in_features, 6)", "('2', '6')"),
    ],
)
def test_a_replaced_classifier_gives_the_scores(change: str, expected: str) -> None:
    (value,) = revealed(f'{IMPORTS}model = timm.create_model("resnet50")\n{change}\nreveal(model(images))')
    assert _text(value) == expected


def test_another_head_than_a_linear_layer_gives_unknown_scores() -> None:
    code = 'model = timm.create_model("convnext_tiny")\nmodel.head = nn.Flatten()\nreveal(model(images))'
    (value,) = revealed(IMPORTS + code)
    assert _text(value) == "?"


@pytest.mark.parametrize(("features", "codes"), [(1280, []), (2048, ["SF501"])])
def test_a_classifier_of_other_features_is_found(features: int, codes: list[str], check: Check) -> None:
    text = f"""
import timm
import torch
from torch import nn

model = timm.create_model("efficientnet_b0", pretrained=True)
model.classifier = nn.Linear({features}, 5)
model(torch.zeros(2, 3, 224, 224))
"""
    found = check(text)
    assert [each.code for each in found] == codes


def test_the_table_is_that_of_timm() -> None:
    pytest.importorskip("timm")
    names = random.Random(0).sample(sorted(heads()), 10)
    assert {name: tuple(heads()[name]) for name in names} == heads_of_timm(names)
