"""What SF603 offers for a tensor in a plain attribute, and when it offers nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from shapefix.diagnostics import Diagnostic
from shapefix.engine.analysis import Analyst
from shapefix.repair.fixpoint import repair
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

MODULE = """\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        {before}super().__init__()
        self.fc = nn.Linear(4, 4)
        {stated}

    {other}def forward(self, x):
        return self.fc(x) * {used}
"""


def module(stated: str, used: str = "self.gate", before: str = "", other: str = "") -> str:
    """A module that keeps something in an attribute, and multiplies its input by it."""
    return MODULE.format(stated=stated, used=used, before=before, other=other)


def found(folder: Path, text: str) -> list[Diagnostic]:
    path = str(folder / "gate.py")
    analysis = Analyst(Project(str(folder)), frozenset({"SF603"})).analyse(path, SourceText(path, text))
    assert not analysis.failures
    return list(analysis.diagnostics)


PLAIN = module("self.gate = torch.ones(4)")


def made(text: str) -> nn.Module:
    """An object of the class Gate in text."""
    names: dict[str, type[nn.Module]] = {}
    exec(text, names)
    return names["Gate"]()


def test_a_buffer_moves_and_checkpoints_stay_what_they_were(tmp_path: Path) -> None:
    repaired = repair(PLAIN, lambda text: found(tmp_path, text), lambda fix, _: True).text
    before, after = made(PLAIN), made(repaired)
    after.load_state_dict(before.state_dict(), strict=True)
    assert after.state_dict().keys() == before.state_dict().keys()
    assert before.to("meta").gate.device.type == "cpu"
    assert after.to("meta").gate.device.type == "meta"


@pytest.mark.parametrize(
    "text",
    [
        module("self.gate = (torch.ones(4), torch.zeros(4))", "self.gate[0]"),
        module("self.gate = [torch.ones(4)]", "self.gate[0]"),
        module("self.gate = None\n        self.gate = torch.ones(4)"),
        module("pass", before="self.gate = torch.ones(4); "),
    ],
    ids=["tuple", "list", "assigned twice", "before the module is one"],
)
def test_what_no_buffer_can_be_made_of_has_no_fix(text: str, tmp_path: Path) -> None:
    (only,) = found(tmp_path, text)
    assert not only.fixes


@pytest.mark.parametrize(
    "text",
    [
        module("self.gate = nn.Parameter(torch.ones(4))"),
        module("self.gate = nn.Buffer(torch.ones(4))"),
        module("self.gate = torch.ones(4)", "self.gate.to(x)"),
        module("self.gate = torch.tensor(2.0)"),
        module("self.gate = 2.0"),
        module("self.gate = torch.ones(4, device='cuda')"),
        module(
            "self.gate = torch.ones(4)",
            other="def cuda(self):\n        self.gate = self.gate.cuda()\n        return self\n\n    ",
        ),
        module(
            "self.gate = torch.ones(4)",
            other="def _apply(self, fn):\n        self.gate = fn(self.gate)\n        return self\n\n    ",
        ),
        module("self.gate = torch.ones(4)", "1 if x.is_cuda else x * self.gate"),
        "import torch\ntorch.set_default_device('cuda')\n" + PLAIN,
    ],
    ids=str,
)
def test_what_goes_along_is_silent(text: str, tmp_path: Path) -> None:
    assert not found(tmp_path, text)
