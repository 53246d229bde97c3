"""Losses with one class, with weights, or called as a class, compared with torch."""

from __future__ import annotations

import itertools

import pytest
import torch
from checking import Check

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn

"""
WEIGHTS = [
    "torch.ones(2)",
    "torch.ones(3)",
    "torch.ones(4)",
    "torch.ones(1)",
    "torch.ones(3, dtype=torch.float64)",
    "torch.ones(3, dtype=torch.int64)",
    "torch.ones(3, dtype=torch.int64).float()",
    "torch.tensor([0.5, 1.0, 2.0])",
]
TARGETS = {
    "torch.randn(4, 3)": ["torch.tensor([0, 1, 2, 0])", "torch.rand(4, 3)"],
    "torch.randn(2, 3, 5)": ["torch.zeros(2, 5, dtype=torch.long)", "torch.rand(2, 3, 5)"],
    "torch.randn(3)": ["torch.tensor(1)", "torch.rand(3)"],
}
CALLS = [
    "F.cross_entropy({scores}, {target}, weight={weight})",
    "nn.CrossEntropyLoss({weight})({scores}, {target})",
    "nn.CrossEntropyLoss(weight={weight}, label_smoothing=0.1, reduction='sum')({scores}, {target})",
]
CASES = [
    call.format(scores=scores, target=target, weight=weight)
    for call, weight in itertools.product(CALLS, WEIGHTS)
    for scores, targets in TARGETS.items()
    for target in targets
]
CALLED = [
    "nn.{}(torch.randn(6), torch.randn(6))",
    "nn.{}(torch.randn(6, 2), torch.randn(6, 2))",
    "nn.{}()",
    "nn.{}(reduction='sum')",
]
LOSSES = [
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "HuberLoss",
    "KLDivLoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
]
SCORES = [
    ("torch.randn(8, 1)", "torch.rand(8, 1)"),
    ("torch.randn(8, 1)", "torch.zeros(8, dtype=torch.long)"),
    ("torch.randn(8, 2)", "torch.rand(8, 2)"),
    ("torch.randn(2, 1, 4, 4)", "torch.rand(2, 1, 4, 4)"),
    ("torch.randn(2, 4, 1)", "torch.rand(2, 4, 1)"),
    ("torch.randn(1, 4)", "torch.rand(1, 4)"),
]


def _raised(code: str) -> str:
    try:
        exec(HEAD + code, {})
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("call", CASES)
def test_weights_of_classes(check: Check, call: str) -> None:
    found, raised = check(HEAD + call + "\n", {"SF520"}), _raised(call)
    assert bool(found) == bool(raised), raised
    for each in found:
        assert each.error is not None
        # Of whole numbers, torch names another dtype.
        assert each.error.message in raised


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("call", CALLED)
def test_classes_of_losses_called_with_tensors(check: Check, call: str, name: str) -> None:
    code = call.format(name)
    found, raised = check(HEAD + code + "\n", {"SF519"}), _raised(code)
    assert bool(found) == bool(raised), raised
    assert all(each.error is not None and each.error.message in raised for each in found)


@pytest.mark.parametrize(("scores", "target"), SCORES)
@pytest.mark.parametrize("loss", ["F.cross_entropy", "nn.CrossEntropyLoss()"])
def test_scores_of_one_class(check: Check, scores: str, target: str, loss: str) -> None:
    code = f"{HEAD}loss = {loss}({scores}, {target})\n"
    names: dict[str, torch.Tensor] = {}
    exec(code, names)
    assert bool(check(code, {"SF518"})) == (names["loss"].item() == 0)


@pytest.mark.parametrize(
    "numbers", ["[0.0, 1, 2]", "[0, 1.0, 2]", "[0, 1, 2]", "[0.0, 1.0, 2.0]", "[True, 1, 0]"]
)
def test_dtypes_of_class_ids(check: Check, numbers: str) -> None:
    code = f"F.cross_entropy(torch.randn(3, 3), torch.tensor({numbers}))"
    assert bool(check(HEAD + code + "\n", {"SF512"})) == bool(_raised(code))
