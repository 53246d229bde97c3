"""`probe --baseline`: what changed since an earlier run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from probing import run_shapefix

from shapefix.runtime.report.run_comparison import (
    RunSummary,
    UnusableRunDocument,
    comparison_lines,
    read_summary,
)

RUN = RunSummary(
    steps=1,
    sizes={"batch of loader 1, x": "f32[4, 6]", "Net.head Linear": "f32[4, 6] -> f32[4, 3]"},
    parameters={"Net": (1_200_000, 1_200_000)},
    loss=1.5,
    norm=0.3,
    step_seconds=0.1,
    memory=400 << 20,
    findings={},
)

SCRIPT = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
wide = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(6, wide), torch.nn.ReLU(), torch.nn.Linear(wide, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(TensorDataset(torch.ones(8, 6), torch.zeros(8, dtype=torch.long)), batch_size=4):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def text(before: RunSummary, now: RunSummary) -> list[str]:
    return ["".join(part for part, _ in row) for row in comparison_lines(before, now, "run.json")]


def test_small_differences_are_none() -> None:
    now = RunSummary(1, RUN.sizes, RUN.parameters, 1.5001, 0.3, 0.105, 405 << 20, {})
    (line,) = text(RUN, now)
    assert line.startswith("compared with run.json: sizes, parameters, loss")


def test_each_difference_is_a_row() -> None:
    sizes = {"batch of loader 1, x": "f32[8, 6]", "Net.tail Linear": "f32[4, 6] -> f32[4, 3]"}
    now = RunSummary(2, sizes, {"Net": (1_200_000, 1000)}, None, 0.6, 0.2, 800 << 20, {"SF501 wrong": 1})
    assert text(RUN, now) == [
        "compared with run.json",
        "  steps           1 -> 2",
        "  parameters      Net: 1.2 M -> 1.2 M (1,000 trainable)",
        "  sizes           batch of loader 1, x: f32[4, 6], now f32[8, 6]",
        "  added           Net.tail Linear",
        "  removed         Net.head Linear",
        "  loss            1.5 -> none",
        "  gradient norm   0.3 -> 0.6 (+100 %)",
        "  time of a step  100.0 ms -> 200.0 ms (+100 %)",
        "  peak memory     400 MiB -> 800 MiB (+100 %)",
        "  new finding     SF501 wrong",
    ]
    assert text(now, RUN)[-1] == "  finding gone    SF501 wrong"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a JSON document"),
        ("[]", "not a document of"),
        ('{"schema_version": 99}', "not a document of"),
        ('{"schema_version": 1, "backward": 3}', "damaged"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UnusableRunDocument, match=reason):
        read_summary(str(tmp_path / "run.json"))
    with pytest.raises(UnusableRunDocument, match="No such file"):
        read_summary(str(tmp_path / "absent.json"))


@pytest.mark.slow
def test_the_command_compares_with_an_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    first = run_shapefix("probe", "train.py", "--output-format", "json", "--", "4", folder=tmp_path)
    (tmp_path / "run.json").write_text(first.stdout)
    assert json.loads(first.stdout)["models"][0]["parameters"] == 6 * 4 + 4 + 4 * 3 + 3
    ran = run_shapefix("probe", "train.py", "--baseline", "run.json", "--", "5", folder=tmp_path)
    assert ran.returncode == 0
    assert "compared with run.json\n  parameters" in ran.stdout
    assert "Sequential: 43 -> 53\n" in ran.stdout
    assert "Sequential.0 Linear: f32[4, 6] -> f32[4, 4], now f32[4, 6] -> f32[4, 5]\n" in ran.stdout
    refused = run_shapefix("probe", "train.py", "--baseline", "train.py", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "error: --baseline train.py: not a JSON document" in refused.stderr
