"""Configurations read from files of the project decide about sizes, as they do when the script runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import shapefix

SCRIPT = """
import json
import yaml
import torch
from torch import nn

{read}
net = nn.Linear(config["model"]["hidden"], 4)
net(torch.zeros(2, 16))
"""
CONFIG = "model:\n  hidden: 32\n  layers: [64, 32]\n  name: bert\ntrain:\n  fast: true\n"
READS = {
    "inline": 'config = yaml.safe_load(open("config.yaml"))',
    "with": """
with open("config.yaml", "r", encoding="utf-8") as f:
    config = yaml.load(f, Loader=yaml.FullLoader)
""",
    "function": """
def load(path="config.yaml"):
    with open(path) as f:
        return yaml.safe_load(f)
config = load()
""",
    "json": 'config = json.load(open("config.json"))',
    "option": """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--config", default="config.yaml")
args = parser.parse_args()
config = yaml.safe_load(open(args.config))
""",
}


def _codes(folder: Path, *names: str) -> list[str]:
    return [
        str(each.code)
        for each in shapefix.check([folder / name for name in names], isolated=True, use_cache=False)
    ]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "config.json").write_text('{"model": {"hidden": 32}}')
    return tmp_path


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_number_of_a_configuration_is_a_size(read: str, project: Path) -> None:
    (project / "train.py").write_text(SCRIPT.format(read=read))
    assert _codes(project, "train.py") == ["SF501"]
    for name in ("config.yaml", "config.json"):
        (project / name).write_text((project / name).read_text().replace("32", "16"))
    assert _codes(project, "train.py") == []


def test_a_changed_configuration_is_read_again(project: Path) -> None:
    (project / "train.py").write_text(SCRIPT.format(read=READS["inline"]))
    for number, expected in ((32, ["SF501"]), (16, []), (64, ["SF501"])):
        (project / "config.yaml").write_text(f"model: {{hidden: {number}}}")
        found = shapefix.check(project / "train.py", isolated=True)
        assert [each.code for each in found] == expected


@pytest.mark.parametrize(
    "read",
    [
        'config = json.load(open("class_names.json"))',
        'config = yaml.safe_load(open("../config.yaml"))',
        'config = yaml.safe_load(open("missing.yaml"))',
        'config = yaml.safe_load(open("/config.yaml"))',
        'config = yaml.safe_load(open("config.yaml", "w"))',
        "config = yaml.safe_load(open(input()))",
    ],
)
def test_other_files_are_not_read(read: str, project: Path) -> None:
    (project / "class_names.json").write_text('{"model": {"hidden": 32}}')
    inner = project / "inner"
    inner.mkdir()
    (inner / ".git").mkdir()
    (inner / "train.py").write_text(SCRIPT.format(read=read))
    (inner / "class_names.json").write_text('{"model": {"hidden": 32}}')
    assert _codes(inner, "train.py") == []


def test_two_files_of_one_name_are_neither(project: Path) -> None:
    (project / "scripts").mkdir()
    (project / "scripts" / "config.yaml").write_text("model: {hidden: 16}")
    (project / "scripts" / "train.py").write_text(SCRIPT.format(read=READS["inline"]))
    assert _codes(project, "scripts/train.py") == []


@pytest.mark.parametrize("text", ["model: [", "a: &a [x, x, x]\nb: &b [*a, *a]\n", "- 1\n" * 20_000, "\0"])
def test_odd_files_are_unknown(text: str, project: Path) -> None:
    (project / "config.yaml").write_text(text)
    (project / "train.py").write_text(SCRIPT.format(read=READS["inline"]))
    assert _codes(project, "train.py") == []


def test_aliases_that_multiply_are_not_followed(project: Path) -> None:
    lines = ["a0: &a0 {hidden: 32}"]
    lines += [f"a{i}: &a{i} {{x: *a{i - 1}, y: *a{i - 1}, z: *a{i - 1}}}" for i in range(1, 30)]
    (project / "config.yaml").write_text("\n".join(lines))
    (project / "train.py").write_text(SCRIPT.format(read=READS["inline"]))
    assert _codes(project, "train.py") == []


def test_a_truth_of_a_configuration_leaves_both_branches(project: Path) -> None:
    code = """
import torch, yaml
from torch import nn
config = yaml.safe_load(open("config.yaml"))
if not config["train"]["fast"]:
    nn.Linear(3, 4)(torch.zeros(2, 5))
"""
    (project / "train.py").write_text(code)
    assert _codes(project, "train.py") == ["SF501"]


def test_a_pipe_in_the_place_of_a_configuration_is_not_waited_for(project: Path) -> None:
    (project / "config.yaml").unlink()
    os.mkfifo(project / "config.yaml")
    (project / "train.py").write_text(SCRIPT.format(read=READS["inline"]))
    assert _codes(project, "train.py") == []
