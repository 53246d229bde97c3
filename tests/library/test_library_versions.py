"""Code for other versions of a library: comparisons of its version, decided by the project's requirements."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest
import torch
from packaging.version import Version

from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

LAYERS = """\
import importlib.metadata
import torch
import torch.nn as nn
import transformers
from distutils.version import LooseVersion
from packaging import version

if {test}:
    layer = nn.Linear(3, 4)
else:
    layer = nn.Linear(5, 4)
layer(torch.randn(2, 3))
layer(torch.randn(2, 5))
"""
TRUE, FALSE = [13], [12]
OPEN: list[int] = []
"""Lines of the calls refused by the layer of a test that holds, fails, or may do both."""
OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def refused(test: str, folder: Path) -> list[int]:
    (folder / "layers.py").write_text(LAYERS.format(test=test), "utf-8")
    options = CheckOptions(use_cache=False, select=("SF501",))
    session = CheckSession((str(folder),), Settings(options)).run()
    return [each.span.row for each in session.findings()]


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ('torch.__version__ >= "1.7"', TRUE),
        ('torch.__version__ < "1.7"', FALSE),
        ('version.parse(torch.__version__) >= version.parse("1.10.0")', TRUE),
        ('LooseVersion(torch.__version__) < LooseVersion("1.10")', FALSE),
        ('version.Version("2.0") <= version.Version(torch.__version__)', TRUE),
        ('version.parse(importlib.metadata.version("transformers")) > version.parse("4.30")', TRUE),
        ('version.parse("4.30") > version.parse(transformers.__version__)', FALSE),
        ('torch.__version__ >= "9.0"', OPEN),
        ('torch.__version__ == "1.7"', OPEN),
        ("torch.__version__ >= VERSION", OPEN),
    ],
)
def test_the_newest_versions_decide_a_comparison(test: str, lines: list[int], tmp_path: Path) -> None:
    assert refused(test, tmp_path) == lines


@pytest.mark.parametrize("requirement", ["torch==1.4", "torch>=1.4", "torch==1.13.1", "torch>=2.1"])
@pytest.mark.parametrize("stated", ["1.7", "1.13.1", "2.1"])
@pytest.mark.parametrize("sign", OPERATORS)
def test_requirements_leave_open_what_differs(
    requirement: str, stated: str, sign: str, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(requirement, "utf-8")
    permitted = [requirement.split("=")[-1], *([torch.__version__.partition("+")[0]] * (">" in requirement))]
    outcomes = {OPERATORS[sign](Version(each), Version(stated)) for each in permitted}
    lines = refused(f'torch.__version__ {sign} "{stated}"', tmp_path)
    assert lines in (OPEN, TRUE if outcomes == {True} else FALSE if outcomes == {False} else OPEN)
    if requirement == "torch>=2.1" and stated == "1.7":
        assert lines, "each permitted version is newer"


def test_a_package_gives_the_name_of_the_permitted_versions(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "layers.py").write_text(
        "from torch import nn\n\ndef new():\n    return nn.Linear(3, 4)\n\n"
        "def old():\n    return nn.Linear(5, 4)\n"
    )
    (tmp_path / "parts" / "__init__.py").write_text(
        "import torch\nfrom packaging import version\n\n"
        'if version.parse(torch.__version__) >= version.parse("1.7.0"):\n'
        "    from .layers import new as make\n"
        "else:\n"
        "    from .layers import old as make\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nimport parts\n\nparts.make()(torch.randn(2, 3))\nparts.make()(torch.randn(2, 5))\n"
    )
    options = CheckOptions(use_cache=False, select=("SF501",))
    session = CheckSession((str(tmp_path),), Settings(options)).run()
    assert [(each.span.row, each.message.split("expects ")[1][0]) for each in session.findings()] == [
        (5, "3")
    ]
