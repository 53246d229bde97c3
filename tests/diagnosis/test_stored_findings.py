"""Errors in the outputs of a notebook are evidence for `check`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from notebook_runs import store_error

from shapefix.cli.main import run

IMPORTS = "import torch\nfrom torch import nn"
MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(271, 256)

    def forward(self, x):
        return self.fc(x)"""
KNOWN = "net = Net()\nnet(torch.zeros(8, 4000))"
UNKNOWN = "exec('x = torch.zeros(8, 4000)')\nnet = Net()\nnet(x)"


Checked: TypeAlias = Callable[..., tuple[int, str]]
"""Runs `check` in the folder of the test, and returns the exit code and the output."""


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checked:
    monkeypatch.chdir(tmp_path)

    def check(form: str = "concise") -> tuple[int, str]:
        code = run(["check", "--isolated", "--no-cache", "--output-format", form])
        return code, capsys.readouterr().out

    return check


def test_a_predicted_error_is_confirmed_by_the_outputs(checked: Checked, tmp_path: Path) -> None:
    store_error(tmp_path / "train.ipynb", (IMPORTS, MODEL, KNOWN), "IPython 7")
    code, out = checked()
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith("train.ipynb:cell 3:7:16: SF501 [confirmed] `self.fc` expects 271 features")
    _, text = checked("full")
    assert "confirmed by the run: cell 4 raised this error when it last ran" in text
    assert "Found 1 error, 1 confirmed by the run." in text


def test_another_error_is_shown_with_its_cell_and_is_not_a_finding(checked: Checked, tmp_path: Path) -> None:
    store_error(tmp_path / "train.ipynb", (IMPORTS, MODEL, UNKNOWN))
    code, out = checked()
    assert (code, out) == (
        0,
        "train.ipynb:cell 3:7:9: stored-error this raised `RuntimeError: mat1 and mat2 shapes cannot be "
        "multiplied (8x4000 and 271x256)` when it last ran\n",
    )
    code, text = checked("full")
    assert "reached from net(x) at train.ipynb:cell 4:3" in text
    assert text.endswith("\nAll checks passed. 1 error of an earlier run.\n")
    _, document = checked("json")
    assert [(each["code"], each["cell"], each["severity"]) for each in json.loads(document)] == [
        ("stored-error", 3, "info")
    ]


PRODUCT = "scores = torch.zeros(8, 4000) @ torch.zeros(271, 256)"


@pytest.mark.parametrize(("ran_on", "shown"), [(False, "SF503"), (True, "stored-error")])
def test_an_error_that_the_author_left_behind_is_no_finding(
    checked: Checked, tmp_path: Path, ran_on: bool, shown: str
) -> None:
    path = tmp_path / "tutorial.ipynb"
    store_error(path, ("import torch", PRODUCT, "torch.zeros(1)"))
    if not ran_on:
        content = json.loads(path.read_text())
        content["cells"][-1]["execution_count"] = None
        path.write_text(json.dumps(content))
    code, out = checked()
    assert (code, out.split()[2]) == (int(not ran_on), shown)


@pytest.mark.parametrize(
    ("old", "new"),
    [("return self.fc(x)", "return self.fc(x[:, :271])"), ("net = Net()", "net = Net().eval()")],
)
def test_an_error_of_changed_lines_is_left_out(checked: Checked, tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "train.ipynb"
    store_error(path, (IMPORTS, MODEL, UNKNOWN))
    document = json.loads(path.read_text())
    for cell in document["cells"]:
        cell["source"] = [row.replace(old, new) for row in cell["source"]]
    path.write_text(json.dumps(document))
    assert checked() == (0, "")


def test_unknown_and_foreign_errors_are_left_out(checked: Checked, tmp_path: Path) -> None:
    store_error(tmp_path / "train.ipynb", (IMPORTS, "raise LookupError('shelf 7 is empty')"))
    store_error(tmp_path / "plain.ipynb", ("values = None", "values[0]"))
    assert checked() == (0, "")


def test_an_error_of_any_python_program_is_left_to_the_notebook(checked: Checked, tmp_path: Path) -> None:
    store_error(tmp_path / "train.ipynb", (IMPORTS, MODEL, "net = Net()\nnet(torch.zeros(8, sise))"))
    assert checked() == (0, "")
