"""The longer names of functions and classes, asked of the installed packages."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from checking import Check
from generate_other_names import FILE, PACKAGES, found

from shapefix.library.other_names import public_name

SHIPPED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PACKAGES)
def test_both_names_are_of_one_object(package: str) -> None:
    """A newer release may drop a name, but not give it to another object."""
    is_same_release = SHIPPED[package]["version"] == version(package).partition("+")[0]
    for other, name in SHIPPED[package]["names"].items():
        named = found(other)
        assert named is found(name) is not None or (named is None and not is_same_release), other
        assert public_name(other) == name


def test_a_loader_from_its_own_module_is_a_loader(check: Check) -> None:
    code = """
import torch
from torch.nn.modules.linear import Linear
from torch.utils.data.dataloader import DataLoader
from torch.utils.data.dataset import TensorDataset

layer = Linear(5, 1)
for (x,) in DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=2):
    layer(x)
"""
    assert [each.code for each in check(code)] == ["SF501"]
