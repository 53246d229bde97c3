"""Constructors of torch's classes with wrong keywords and missing arguments, compared with torch."""

from __future__ import annotations

import pytest
import torch
from checking import Check

from shapefix.library.constructor_arguments import constructor
from shapefix.library.removed_arguments import removed_arguments
from shapefix.library.signatures import parameters
from shapefix.library.torch_signatures import generated

NAMES = sorted(name for name in generated() if constructor(name) is not None)


def constructed(name: str) -> type:
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert isinstance(found, type)
    return found


def needed(name: str) -> list[str]:
    return [each for each, default in parameters(constructor(name) or "") if default is None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_torch_refuses_an_unknown_keyword(name: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'unheard_of'"):
        constructed(name)(*[2] * len(needed(name)), unheard_of=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if needed(name)])
def test_torch_needs_the_arguments_without_a_default(name: str) -> None:
    with pytest.raises(TypeError, match="missing"):
        constructed(name)(*[2] * (len(needed(name)) - 1))


def test_torch_has_the_replacement_of_a_printing_scheduler() -> None:
    for name, gone in removed_arguments("torch").items():
        if "verbose" in gone:
            assert hasattr(getattr(torch.optim.lr_scheduler, name), "get_last_lr")


def test_factory_keywords_and_open_arguments_are_silent(check: Check) -> None:
    assert not check(
        "import torch\n"
        "layer = torch.nn.Linear(3, 4, device='cpu', dtype=torch.float64)\n"
        "def make(**settings):\n"
        "    return torch.nn.Linear(3, **settings)\n"
        "make(out_features=4)\n"
    )


@pytest.mark.parametrize(
    "call", ["vgg16(pretrained=True)", "resnet18(weights=None, num_classes=10)", "densenet121(weights=None)"]
)
def test_keywords_of_a_model_are_not_those_of_its_layers(check: Check, call: str) -> None:
    assert not check(f"import torch\nfrom torchvision import models\nnet = models.{call}\n")


def test_the_code_after_a_refused_constructor_is_dead(check: Check) -> None:
    findings = check(
        "import torch\n"
        "criterion = torch.nn.CrossEntropyLoss(soft_label=True)\n"
        "criterion(torch.zeros(3, 4), torch.zeros(3, 5))\n"
    )
    assert [finding.code for finding in findings] == ["SF414"]
