"""`reveal(x)`: the user asks what is known of a value, and is told at the line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import ROOT, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

SCRIPT = """\
import torch
from shapefix import reveal


def swap(x):
    reveal(x)
    return x.t()


y = swap(torch.zeros(3, 4))
swap(torch.zeros(5, 6))
reveal({"rows": y, "more": [y, y.shape]})
"""
"""What is revealed at 6:5 and 12:1."""


def test_a_line_for_each_place_with_all_that_it_holds(project: Project) -> None:
    project(train=SCRIPT)
    for _ in range(2):  # the second time from the cache
        ran = shapefix("check", "--output-format", "concise")
        assert ran.out.splitlines() == [
            "train.py:6:5: reveal f32[3, 4]; f32[5, 6]",
            "train.py:12:1: reveal ['rows'] f32[4, 3] strides (1, 4); "
            "['more'][0] f32[4, 3] strides (1, 4); ['more'][1] (4, 3)",
        ]
        assert ran.code == 0


def test_it_is_no_finding(project: Project) -> None:
    project(train=SCRIPT, view=VIEW)
    ran = shapefix("check", "--no-cache")
    assert ran.code == 1
    assert ran.out.endswith("Found 1 error. 2 values revealed. 1 fixable with `shapefix fix`.\n")
    assert "no automatic fix" not in ran.out
    assert shapefix("check", "train.py").out.endswith("\n\nAll checks passed. 2 values revealed.\n")
    assert shapefix("check", "train.py", "--statistics").out == ""
    assert shapefix("check", "train.py", "--select", "SF101", "-q").out.count("info[reveal]") == 2
    assert shapefix("fix", "--apply", "train.py").code == 0


def test_other_programs_are_told_too(project: Project) -> None:
    folder = project(train=SCRIPT)
    entry, _ = json.loads(shapefix("check", "--output-format", "json").out)
    assert (entry["code"], entry["severity"], entry["location"]["row"]) == ("reveal", "info", 6)
    assert shapefix("check", "--output-format", "github").out.startswith(
        f"::notice title=shapefix (reveal),file={folder}/train.py,line=6,"
    )


@pytest.mark.parametrize("line", ["reveal(x)  # noqa", "reveal(x)  # shapefix: ignore"])
def test_comments_silence_it(project: Project, line: str) -> None:
    project(train=f"import torch\nx = torch.zeros(3)\n{line}\n")
    assert shapefix("check").out == "All checks passed.\n"


def test_what_is_imported_from_shapefix_gives_its_argument_back_in_a_run() -> None:
    script = "from shapefix import reveal; print(reveal(7), reveal([]))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "7 []\n"
