"""A condition on the arguments of a function is tested with its calls in other files of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

MODEL = """\
import torch
from torch import nn


class Shift(nn.Module):
    def __init__(self, groups=2):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, self.groups, c // self.groups, h, w).transpose(1, 2)
        return x.view(b, -1, h, w)


def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
    return [correct[:k].view(-1).float().sum(0) for k in topk]
"""
CALLS = {
    "Shift(groups=1)(torch.zeros(2, 4, 3, 3))": True,
    "Shift(groups=2)(torch.zeros(2, 4, 3, 3))": False,
    "Shift()(torch.zeros(2, 4, 3, 3))": False,
    "accuracy(torch.rand(8, 10), torch.zeros(8))": True,
    "accuracy(torch.rand(8, 10), torch.zeros(8), topk=(1,))": True,
    "accuracy(torch.rand(8, 10), torch.zeros(8), topk=(1, 5))": False,
}
OF = {"Shift": 13, "accuracy": 19}
"""The rows of the views."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def rows(*paths: str) -> list[int]:
    findings = CheckSession(paths, Settings(CheckOptions())).run().findings()
    return [finding.span.row for finding in findings if finding.code == "SF101"]


def write(name: str, call: str) -> None:
    Path(name).write_text(f"import torch\nfrom model import Shift, accuracy\n\nprint({call})\n")


def test_without_a_caller_all_conditions_are_reported() -> None:
    assert rows("model.py") == rows(".") == [13, 19]


@pytest.mark.parametrize("call", CALLS)
def test_the_call_decides(call: str) -> None:
    namespace: dict[str, object] = {}
    exec(MODEL, namespace)
    try:
        exec(call, namespace)
    except RuntimeError:
        runs = False
    else:
        runs = True
    assert runs is CALLS[call]
    write("train.py", call)
    row = OF[call.partition("(")[0]]
    for paths in (["model.py"], ["."], ["train.py", "model.py"]):
        assert (row in rows(*paths)) is not runs, paths
        # From the cache.
        assert (row in rows(*paths)) is not runs, paths


def test_one_of_two_calls_fails() -> None:
    write("train.py", "Shift(groups=1)(torch.zeros(2, 4, 3, 3))")
    write("evaluate.py", "Shift(groups=2)(torch.zeros(2, 4, 3, 3))")
    assert 13 in rows(".")


def test_calls_of_tests_are_no_evidence() -> None:
    write("test_model.py", "Shift(groups=1)(torch.zeros(2, 4, 3, 3))")
    assert 13 in rows(".")


def test_a_caller_with_unknown_arguments_keeps_the_condition() -> None:
    caller = "from model import accuracy\n\ndef f(o, t, topk):\n    accuracy(o, t, topk)\n"
    Path("train.py").write_text(caller)
    assert 19 in rows(".")


BRANCHES = """\
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.transforms import ToTensor

class Pictures:
    def __init__(self):
        self.raw = torchvision.datasets.CIFAR10("data")
        self.ready = torchvision.datasets.CIFAR10("data", transform=ToTensor())

    def loader(self, kind=None):
        if kind == "raw":
            return DataLoader(self.raw)
        return DataLoader(self.ready)
"""


@pytest.mark.parametrize(("kind", "found"), [("'ready'", []), ("'raw'", [13]), ("kind", [13])])
def test_a_branch_that_no_caller_takes(kind: str, found: list[int]) -> None:
    Path("model.py").write_text(BRANCHES)

    def rows_of_loaders() -> list[int]:
        session = CheckSession((".",), Settings(CheckOptions(use_cache=False))).run()
        return [each.span.row for each in session.findings() if each.code == "SF410"]

    assert rows_of_loaders() == [13]
    call = f"Pictures().loader({kind})"
    Path("train.py").write_text(
        f"import torch\nfrom model import Pictures\n\ndef main(kind):\n    for x, y in {call}:\n        print(x)\n"
    )
    assert rows_of_loaders() == found
