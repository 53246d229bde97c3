"""The fixture `shapefix_probe`, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """\
import pytest
import torch
from torch import nn


def total(out, batch):
    return out.sum()


def test_good(shapefix_probe):
    report = shapefix_probe(nn.Linear(4, 2), torch.ones(3, 4), total)
    assert report.loss is not None


def test_raises(shapefix_probe):
    shapefix_probe(nn.Linear(4, 2), torch.ones(3, 5), total)


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        with torch.no_grad():
            return self.fc(x)


def test_finding(shapefix_probe):
    shapefix_probe(Frozen(), torch.ones(3, 4), total)
"""


@pytest.mark.slow
def test_the_fixture_fails_a_test_with_the_report(tmp_path: Path) -> None:
    (tmp_path / "test_model.py").write_text(TESTS)
    options = ("-p", "shapefix.pytest_plugin", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "error[SF501] in-features: `Linear` expects in_features=4 but gets f32[3, 5]" in ran.stdout
    assert "error[SF904] loss-without-gradient: RuntimeError: element 0 of tensors" in ran.stdout
    assert "2 failed, 1 passed" in ran.stdout


def test_the_plugin_is_an_entry_point_of_its_own_name() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # With another name `-p shapefix.pytest_plugin` would register it twice.
    assert project["entry-points"]["pytest11"] == {"shapefix.pytest_plugin": "shapefix.pytest_plugin"}
