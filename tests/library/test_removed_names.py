"""Removed names of libraries, compared with the installed versions."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

import numpy
import pytest
from checking import Check
from generate_removed_names import installed_has

from shapefix.checks.support.replaced_names import INSTEAD, NOT_THE_SAME, OF_PYTHON, RENAMED_IN_NUMPY
from shapefix.library.removed_arguments import newest_known
from shapefix.library.removed_names import libraries, removed_names

pytestmark = pytest.mark.skipif(
    importlib.metadata.version("transformers").split(".")[:2] != newest_known().split(".")[:2],
    reason="the data is of another version",
)
ARRAY = "import numpy as np\nimport torch\nx = torch.tensor(np.zeros(3, dtype=np.float_))\n"
OPTIMIZER = "from transformers import AdamW\n"


@pytest.mark.slow
@pytest.mark.parametrize("package", libraries())
def test_the_installed_version_lacks_the_names(package: str) -> None:
    assert not [name for name in removed_names(package) if installed_has(name)]


def test_numpy_has_the_new_names() -> None:
    known = removed_names("numpy")
    for old, new in RENAMED_IN_NUMPY.items():
        assert f"numpy.{old}" in known
        assert old in OF_PYTHON or hasattr(numpy, new.removeprefix("-"))


def test_the_new_names_of_numpy_are_those_of_its_own_advice() -> None:
    from numpy._expired_attrs_2_0 import __expired_attributes__

    advice: Mapping[str, object] = {**__expired_attributes__}
    for old, new in RENAMED_IN_NUMPY.items():
        if old not in OF_PYTHON | NOT_THE_SAME:
            assert f"`np.{new}`" in str(advice[old]), old


def test_the_advice_is_on_removed_names() -> None:
    for name in INSTEAD:
        package = "lightning" if name.startswith("pytorch_lightning") else name.partition(".")[0]
        assert name in removed_names(package)


@pytest.mark.parametrize(
    ("requirements", "codes"),
    [
        ("", ["SF415", "SF415"]),
        ("transformers==4.30.0", ["SF415"]),
        ("transformers>=5.0\nnumpy<2", ["SF415"]),
        ("numpy==1.26.4\ntransformers<5", []),
        ("torch==1.13.1\ntransformers==4.30.0", []),
        ("torch>=2.6\ntransformers>=4", ["SF415"]),
    ],
)
def test_every_permitted_version_lacks_the_name(tmp_path: Path, requirements: str, codes: list[str]) -> None:
    from shapefix.engine.session import CheckSession
    from shapefix.engine.settings import CheckOptions, Settings

    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / "array.py").write_text(ARRAY)
    (tmp_path / "optimizer.py").write_text(OPTIMIZER)
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    assert [finding.code for finding in session.findings()] == codes


@pytest.mark.parametrize(
    "code",
    [
        "from pytorch_lightning.metrics import Accuracy\n",
        "import pytorch_lightning as pl\npl.metrics.Accuracy()\n",
        "from lightning.pytorch.metrics import Accuracy\n",
        "import lightning.pytorch as pl\npl.metrics.Accuracy()\n",
        "from pytorch_lightning.metrics.functional import accuracy\n",
    ],
)
def test_a_removed_module_has_none_of_its_names(check: Check, code: str) -> None:
    assert [finding.code for finding in check(code)] == ["SF415"]


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    from transformers import AdamW\nexcept ImportError:\n    from torch.optim import AdamW\n",
        "try:\n    import evaluate\nexcept ImportError:\n    from datasets import load_metric\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from transformers import AdamW\n",
        # torchmetrics, which Lightning imports, sets it again: the name is never reported.
        "import torch\nfrom parts import Metric\nimport numpy as np\nlowest = np.Inf\n",
        "import torch\nimport numpy as np\nkind = np.float if hasattr(np, 'float') else float\n",
    ],
)
def test_code_for_both_versions_is_silent(check: Check, code: str) -> None:
    assert not check(code)
