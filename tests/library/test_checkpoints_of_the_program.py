"""States saved and loaded by one program: what is reported raises in torch, and the rest does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checking import Check

HEAD = """\
import argparse
import numpy as np
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
wrapped = nn.DataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5))
"""
OBJECTS = [
    "net",
    "wrapped",
    "{'model': net}",
    "{'state': net.state_dict(), 'mean': np.zeros(3)}",
    "np.zeros(3)",
    "[1, 2, torch.zeros(3)]",
    "net.state_dict()",
    "{'epoch': 1, 'name': 'net', 'loss': 0.5}",
    "(torch.zeros(2), None, True)",
    "{'a': {'b': net}}",
]
SETTINGS = ["", ", weights_only=False", ", weights_only=True", ", map_location='cpu'"]
LOADS = [
    ("net", "net.state_dict()", ""),
    ("net", "wrapped.state_dict()", ""),
    ("net", "wrapped.module.state_dict()", ""),
    ("wrapped", "net.state_dict()", ""),
    ("wrapped", "wrapped.state_dict()", ""),
    ("wrapped.module", "net.state_dict()", ""),
    ("other", "net.state_dict()", ""),
    ("other", "net.state_dict()", ", strict=False"),
    ("other[0]", "net[0].state_dict()", ""),
    ("other[1]", "net[1].state_dict()", ""),
    ("nn.Embedding(4, 3)", "nn.Embedding(5, 3).state_dict()", ""),
    ("nn.Conv2d(3, 4, 1)", "nn.Conv2d(3, 8, 1).state_dict()", ""),
    ("nn.Conv2d(3, 4, 1)", "nn.Conv2d(3, 4, 1).state_dict()", ""),
]


def _raises(code: str, folder: Path) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(code, {"__name__": "script"})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        os.chdir(before)
    return ""


@pytest.mark.parametrize("saved", OBJECTS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_files_that_torch_does_not_load(check: Check, tmp_path: Path, saved: str, settings: str) -> None:
    code = f"{HEAD}torch.save({saved}, 'file.pt')\nloaded = torch.load('file.pt'{settings})\n"
    raised = _raises(code, tmp_path)
    found = check(code, {"SF611"})
    if "weights_only=True" in settings or "'b'" in saved:
        # Who asks for it knows it; a dictionary in a dictionary is not followed.
        assert not found or raised
    else:
        assert bool(found) == bool(raised), raised


@pytest.mark.parametrize(("module", "state", "settings"), LOADS)
@pytest.mark.parametrize("is_saved", [True, False])
def test_states_of_other_models(
    check: Check, tmp_path: Path, module: str, state: str, settings: str, is_saved: bool
) -> None:
    given = "torch.load('state.pt')" if is_saved else state
    code = f"{HEAD}torch.save({state}, 'state.pt')\n{module}.load_state_dict({given}{settings})\n"
    raised = _raises(code, tmp_path)
    found = check(code, {"SF610"})
    assert bool(found) == bool(raised), raised
    for each in found:
        assert each.error is not None
        assert each.error.message in raised


@pytest.mark.parametrize("saved", ["net", "net.state_dict()", "{'model': net, 'state': net.state_dict()}"])
@pytest.mark.parametrize(
    "use",
    [
        "{}.eval()",
        "{}['model'].state_dict()",
        "{}['state']",
        "net.load_state_dict({})",
        "(lambda each: each.train() if isinstance(each, nn.Module) else None)({})",
        "{}.keys()",
    ],
)
def test_contents_used_as_objects(check: Check, tmp_path: Path, saved: str, use: str) -> None:
    code = f"{HEAD}import io\nfile = io.BytesIO()\ntorch.save({saved}, file)\nfile.seek(0)\n"
    code += use.format("torch.load(file)") + "\n"
    raised = _raises(code, tmp_path)
    assert raised or not check(code, {"SF611"}), code
    if saved != "net.state_dict()" and (use.startswith("{}.eval") or "['model']" in use):
        assert [each.code for each in check(code, {"SF611"})] == ["SF611"]


@pytest.mark.parametrize(
    ("torch", "codes"), [("torch<2.6", []), ("torch==2.7.1+cu126", ["SF611"]), ("", ["SF611"])]
)
def test_the_required_version_of_torch_decides(tmp_path: Path, torch: str, codes: list[str]) -> None:
    from shapefix.engine.session import CheckSession
    from shapefix.engine.settings import CheckOptions, Settings

    (tmp_path / "requirements.txt").write_text(torch)
    (tmp_path / "use.py").write_text("import torch\n\n\ndef use(path):\n    return torch.load(path).eval()\n")
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    assert [each.code for each in session.findings()] == codes
