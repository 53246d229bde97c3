"""Statements with the name of a method and no call: the methods are torch's own."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import pytest
from checking import Check

import shapefix
from shapefix.library.uncalled_methods import FUNCTIONS, METHODS

_OWNED = sorted((base, name) for base, names in METHODS.items() for name in names)


def _resolve(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("base", "name"), _OWNED)
def test_torch_has_the_method_and_no_property_of_this_name(base: str, name: str) -> None:
    method = inspect.getattr_static(_resolve(base), name)
    assert callable(method)
    assert not isinstance(method, property)


@pytest.mark.parametrize("path", sorted(FUNCTIONS))
def test_torch_has_the_function(path: str) -> None:
    assert callable(_resolve(path))


@pytest.mark.parametrize(("base", "name"), _OWNED)
def test_the_method_is_found_for_an_object_of_its_class(base: str, name: str, check: Check) -> None:
    made = {
        "torch.optim.Optimizer": "torch.optim.Adam(nn.Linear(2, 1).parameters())",
        "torch.optim.lr_scheduler.LRScheduler": (
            "torch.optim.lr_scheduler.StepLR(torch.optim.Adam(nn.Linear(2, 1).parameters()), 3)"
        ),
        "torch.nn.Module": "nn.Linear(2, 1)",
        "torch.Tensor": "nn.Linear(2, 1)(torch.ones(3, 2)).mean()",
        "torch.amp.GradScaler": "torch.amp.GradScaler('cpu')",
    }[base]
    code = f"import torch\nfrom torch import nn\n\nthing = {made}\nthing.{name}\n"
    (found,) = check(code, {"SF618"})
    assert found.span.row == 5
    assert not check(code.replace(f"thing.{name}", f"kept = thing.{name}"), {"SF618"})


@pytest.mark.parametrize("path", sorted(FUNCTIONS))
def test_a_function_is_found(path: str, check: Check) -> None:
    (found,) = check(f"import torch\n\n{path}\n", {"SF618"})
    assert f"`{path}` without parentheses" in found.message


def test_a_scheduler_that_needs_a_metric_has_no_edit(check: Check) -> None:
    code = """
import torch
from torch import nn

optimizer = torch.optim.Adam(nn.Linear(2, 1).parameters())
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scheduler.step
"""
    (found,) = check(code, {"SF618"})
    assert not found.fixes[0].edits


def test_the_last_line_of_a_cell_shows_its_value(tmp_path: Path) -> None:
    lines = ["import torch\n", "from torch import nn\n", "model = nn.Linear(2, 1)\n", "model.train"]
    cell: dict[str, object] = {
        "cell_type": "code",
        "source": lines,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    path = tmp_path / "shown.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert "SF618" not in {found.code for found in shapefix.check(path)}


def test_one_cause_is_one_finding(check: Check) -> None:
    code = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(30):
    for x in torch.ones(30, 4, 2):
        optimizer.zero_grad
        model(x).mean().backward()
        optimizer.step()
"""
    assert [found.code for found in check(code)] == ["SF618"]
    assert [found.code for found in check(code.replace("        optimizer.zero_grad\n", ""))] == ["SF803"]
