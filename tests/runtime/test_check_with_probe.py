"""`shapefix check --with-probe`: real runs, and what they say of what was found without one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from probing import ROOT, run_shapefix

pytestmark = pytest.mark.slow


MODEL = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x):
        B, T, C = x.shape
        heads = self.project(x).view(B, T, 2, C // 2)
        y = heads.transpose(1, 2).view(B, T, C)
        return self.project(y)
"""
TRAIN = """\
import sys

import torch
from model import Attention

{patch}
model = Attention()
length = int(sys.argv[1])
loss = model(torch.randn(4, length, 8)).sum()
loss.backward()
torch.optim.SGD(model.parameters(), 0.1).step()
"""
PATCH = "exec('torch.Tensor.view = torch.Tensor.reshape')  # what no reader of the line can know"


def shapefix(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_shapefix(*arguments, folder=folder, COLUMNS="100")


def probed(folder: Path, *arguments: str, patch: str = "", model: str = MODEL) -> None:
    """Write the project, run it, and keep the document of the run beside it."""
    (folder / "model.py").write_text(model)
    (folder / "train.py").write_text(TRAIN.format(patch=patch))
    ran = shapefix("probe", "train.py", "--output-format", "json", "--", *arguments, folder=folder)
    assert ran.stdout, ran.stderr
    (folder / "run.json").write_text(ran.stdout)


def verdicts(folder: Path, *options: str) -> list[tuple[str, str, str]]:
    """The code, the verdict and its reason of each finding."""
    ran = shapefix(
        "check", "--with-probe", "run.json", "--output-format", "json", *options, "model.py", folder=folder
    )
    return [
        (each["code"], each["seen"]["verdict"], each["seen"]["reason"]) for each in json.loads(ran.stdout)
    ]


def test_what_a_run_raised_is_confirmed(tmp_path: Path) -> None:
    probed(tmp_path, "24")
    ((code, verdict, reason),) = verdicts(tmp_path)
    assert (code, verdict) == ("SF101", "confirmed")
    assert reason.startswith("RuntimeError: view size is not compatible with input tensor's size and stride")
    ran = shapefix("check", "--with-probe", "run.json", "model.py", folder=tmp_path)
    assert ran.returncode == 1
    assert "   = confirmed by the run: RuntimeError: view size is not compatible" in ran.stdout
    assert "Found 1 error, 1 confirmed by the run." in ran.stdout


def test_what_ran_under_its_condition_is_refuted_and_fails_nothing(tmp_path: Path) -> None:
    probed(tmp_path, "24", patch=PATCH)
    assert verdicts(tmp_path) == [("SF101", "refuted", "it ran with T = 24, and nothing was raised")]
    ran = shapefix("check", "--with-probe", "run.json", "model.py", folder=tmp_path)
    assert ran.returncode == 0
    assert "= refuted by the run: it ran with T = 24, and nothing was raised" in ran.stdout
    assert ran.stdout.endswith("1 finding refuted by the run.\n")
    assert shapefix("check", "model.py", folder=tmp_path).returncode == 1


def test_a_run_whose_sizes_were_others_leaves_it_open(tmp_path: Path) -> None:
    probed(tmp_path, "1")
    assert verdicts(tmp_path) == [("SF101", "open", "in this run the condition did not hold: T = 1")]
    assert shapefix("check", "--with-probe", "run.json", "model.py", folder=tmp_path).returncode == 1


def test_the_size_that_counts_is_the_one_before_its_name_was_bound_again(tmp_path: Path) -> None:
    model = MODEL.replace("view(B, T, C)\n", "view(B, T, C)\n        T = 24\n")
    probed(tmp_path, "1", model=model)
    assert verdicts(tmp_path) == [("SF101", "open", "in this run the condition did not hold: T = 1")]


@pytest.mark.long
@pytest.mark.slow
def test_a_file_that_was_edited_since_is_open_and_from_the_cache_too(tmp_path: Path) -> None:
    probed(tmp_path, "24")
    assert [verdict for _, verdict, _ in verdicts(tmp_path)] == ["confirmed"]
    assert [verdict for _, verdict, _ in verdicts(tmp_path)] == ["confirmed"]
    (tmp_path / "model.py").write_text(MODEL + "# edited\n")
    edited = [("SF101", "open", "model.py was edited since the run")]
    assert verdicts(tmp_path) == verdicts(tmp_path) == verdicts(tmp_path, "--no-cache") == edited
    (tmp_path / "model.py").write_text(MODEL)
    assert [verdict for _, verdict, _ in verdicts(tmp_path)] == ["confirmed"]


def test_a_file_that_was_not_run_is_open(tmp_path: Path) -> None:
    probed(tmp_path, "24")
    (tmp_path / "other.py").write_text(MODEL)
    ran = shapefix("check", "--with-probe", "run.json", "--output-format", "concise", ".", folder=tmp_path)
    assert [line.split(" ", 2)[:2] for line in ran.stdout.splitlines()] == [
        ["model.py:13:13:", "SF101"],
        ["other.py:13:13:", "SF101"],
    ]
    assert " SF101 [*] [confirmed] " in ran.stdout.splitlines()[0]
    assert " SF101 [*] [open] " in ran.stdout.splitlines()[1]


def test_a_line_behind_an_exit_is_open(tmp_path: Path) -> None:
    model = MODEL.replace("        y = ", "        if T > 1:\n            return x\n        y = ")
    probed(tmp_path, "24", model=model)
    assert verdicts(tmp_path) == [("SF101", "open", "the run is not known to have come past this place")]


@pytest.mark.parametrize(
    ("project", "script", "confirmed"),
    [
        pytest.param("instruction-tuning", "train_optimized.py", [("SF301", 59)], marks=pytest.mark.long),
        pytest.param(
            "emotion-classifier", "trainer.py", [("SF401", 51), ("SF801", 57)], marks=pytest.mark.long
        ),
        ("custom-collator", "train.py", [("SF303", 21)]),
    ],
)
def test_the_faults_of_the_fixtures(
    tmp_path: Path, project: str, script: str, confirmed: list[tuple[str, int]]
) -> None:
    folder = ROOT / "fixtures" / project / "before"
    run = tmp_path / "run.json"
    run.write_text(shapefix("probe", script, "--output-format", "json", folder=folder).stdout)
    ran = shapefix(
        "check", "--no-cache", "--with-probe", str(run), "--output-format", "json", ".", folder=folder
    )
    found = [
        (each["code"], each["location"]["row"], each["seen"]["verdict"]) for each in json.loads(ran.stdout)
    ]
    assert [(code, row) for code, row, verdict in found if verdict == "confirmed"] == confirmed
    assert not [each for each in found if each[2] == "refuted"]


SILENT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8), torch.randn(64))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(data, batch_size=32):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_run_that_raises_nothing_does_not_refute_wrong_numbers(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SILENT)
    ran = shapefix("probe", "train.py", "--output-format", "json", folder=tmp_path)
    (tmp_path / "run.json").write_text(ran.stdout)
    ran = shapefix(
        "check", "--with-probe", "run.json", "--output-format", "json", "train.py", folder=tmp_path
    )
    found = {each["code"]: each["seen"]["verdict"] for each in json.loads(ran.stdout)}
    assert found.get("SF509") in ("open", "confirmed")


def test_github_gets_a_notice_for_what_is_refuted(tmp_path: Path) -> None:
    probed(tmp_path, "24", patch=PATCH)
    ran = shapefix("check", "--with-probe", "run.json", "--output-format", "github", ".", folder=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.startswith("::notice title=shapefix (SF101),")
    assert ran.stdout.rstrip().endswith("%0Arefuted: it ran with T = 24, and nothing was raised")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "run.json: cannot be read: no such file or folder"),
        ("{", "run.json: is not JSON; `shapefix probe --output-format json` writes it"),
        ("[" * 100_000, "run.json: is not JSON; `shapefix probe --output-format json` writes it"),
        ("[]", "run.json: is not of the probe; `shapefix probe --output-format json` writes such a file"),
        (
            '{"schema_version": 9}',
            "run.json: has schema_version 9, and this shapefix reads 1; run the probe again",
        ),
        ('{"schema_version": 1, "executed": 3}', "run.json: is damaged; run the probe again"),
    ],
    ids=["missing", "cut off", "deep", "list", "newer", "damaged"],
)
def test_what_is_no_document_of_a_run(tmp_path: Path, text: str | None, said: str) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    ran = shapefix("check", "--with-probe", "run.json", "model.py", folder=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"error: {said}\n")
