"""Suppression comments that suppress nothing or name no rule: when they are reported, and when not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import SWAPPED, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.engine.live_session import LiveSession
from shapefix.engine.settings import CheckOptions

UNUSED = "import torch\n\nx = torch.zeros(2, 3)  # noqa: SF101\n"
INVALID = "import torch\n\nx = torch.zeros(2, 3)  # noqa: SF999\n"
MODEL = "import torch\n\n\ndef flatten(x):\n    return torch.relu(x.view(-1, x.size(-1)))  # noqa: SF101\n"
CALLER = "import torch\nfrom model import flatten\n\nflatten(torch.zeros(4, 6, 8)[:, :-1])\n"


def reported(*arguments: str) -> list[str]:
    """The places and codes of the findings of a run."""
    ran = shapefix("check", "--no-cache", "--output-format", "concise", *arguments)
    rows = [row.split(": ", 2) for row in ran.out.splitlines() if ":" in row]
    return [f"{place} {rest[0].split()[0]}" for place, *rest in rows if rest and rest[0].startswith("SF")]


def test_unused_comments_are_certain_in_a_whole_project_only(project: Project) -> None:
    folder = project(src__train=UNUSED)
    assert reported() == ["src/train.py:3:24 SF001"]
    assert reported("src") == ["src/train.py:3:24 SF001"]
    assert reported("src/train.py") == []
    assert reported(".", "--exclude", "old") == []
    (folder / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    assert reported("src") == []
    assert reported() == ["src/train.py:3:24 SF001"]
    (folder / "src" / "broken.py").write_text("import torch\nx = (\n")
    assert reported() == []


def test_a_comment_about_a_finding_from_another_file_is_used(project: Project) -> None:
    folder = project(model=MODEL, train=CALLER)
    assert reported() == []
    (folder / "train.py").write_text(CALLER.replace("[:, :-1]", ""))
    assert reported() == ["model.py:5:48 SF001"]
    assert reported("model.py", "train.py") == []


def test_a_comment_about_a_finding_in_unused_code_is_used(project: Project) -> None:
    project(mix=SWAPPED.replace("T)\n", "T)  # noqa: SF103\n"), train=CALLER.replace("model", "other"))
    assert reported() == []


@pytest.mark.parametrize(
    "options",
    [
        ("--ignore", "SF101"),
        ("--select", "SF001"),
        ("--per-file-ignores", "train.py:SF101"),
        ("--ignore", "SF001"),
        ("--per-file-ignores", "train.py:unused-suppression"),
    ],
)
def test_a_rule_that_is_off_has_no_unused_comments(project: Project, options: tuple[str, ...]) -> None:
    project(train=UNUSED)
    assert reported(*options) == []


def test_unknown_codes_are_reported_in_any_run(project: Project) -> None:
    project(train=INVALID)
    assert reported("train.py") == reported() == ["train.py:3:24 SF002"]
    assert reported("--ignore", "SF002") == []
    assert reported("--select", "SF0") == ["train.py:3:24 SF002"]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: E501",
        "# noqa: SFS101",
        "# noqa: SF101, SF001",
        "# noqa: SF0",
        "# noqa: unused-suppression, SF101",
        "# shapefix: skip-file",
        "# shapefix: ignore[SF001, SF999, SF002]",
        "# shapefix: ignore[]",
        "# ruff: noqa: SF101",
        "# type: ignore[SF101]",
    ],
)
def test_other_comments_are_left_alone(project: Project, comment: str) -> None:
    project(train=UNUSED.replace("# noqa: SF101", comment))
    assert reported() == []


def test_files_that_are_not_checked_are_left_alone(project: Project) -> None:
    project(train="import os  # noqa: SF101, SF999\n")
    assert reported() == []


def test_results_from_the_cache_are_the_same(project: Project) -> None:
    project(one=UNUSED, two=INVALID, three=VIEW.replace("(-1, 8)", "(-1, 8)  # noqa: SF101"))
    first, second = (shapefix("check", "--cache-dir", "results") for _ in range(2))
    assert first == second
    assert (first.out.count("SF001] unused"), first.out.count("SF002] invalid")) == (1, 1)


REMOVED = {
    "x = 1  # noqa: SF101\n": "x = 1\n",
    "x = 1  # noqa: SF101 in the paper\n": "x = 1\n",
    "x = 1  # noqa: SF101 as in the paper  # noqa: E501\n": "x = 1  # noqa: E501\n",
    "x = 1  # noqa: SF101 see #12\n": "x = 1\n",
    "x = 1  # noqa: SF101, SF999\n": "x = 1\n",
    "x = 1  # noqa:E501,SF101  W1 # é\n": "x = 1  # noqa: E501, W1 # é\n",
    "x = 1  # why  # noqa: SF101\n": "x = 1  # why\n",
    "x = 1  # noqa: SF101  # why\n": "x = 1  # why\n",
    "x = 1  # noqa: SF101  # noqa: E501\n": "x = 1  # noqa: E501\n",
    "x = 1  # shapefix: ignore\n": "x = 1\n",
    "x = 1  # shapefix:ignore[SF101,ACME101]\n": "x = 1  # shapefix:ignore[ACME101]\n",
    "x = (\n    # noqa: SF101\n    1\n)\n": "x = (\n    1\n)\n",
    "x = 1\n# noqa: SF101": "x = 1\n",
    "x = 1\r\n# noqa: SF101\r\ny = 2\r\n": "x = 1\r\ny = 2\r\n",
    "x = 1  # shapefix: ignore[ragged-lables]\n": "x = 1  # shapefix: ignore[ragged-lables]\n",
}


@pytest.mark.parametrize("before", REMOVED)
def test_what_a_fix_leaves(project: Project, before: str) -> None:
    path = project(train=f"import torch\n{before}".encode()) / "train.py"
    ran = shapefix("check", "--fix")
    assert path.read_bytes().decode() == f"import torch\n{REMOVED[before]}"
    assert ran.code == (REMOVED[before] == before)
    assert shapefix("check", "--fix", "--quiet").code == ran.code


def test_no_comment_is_added_about_a_comment(project: Project) -> None:
    path = project(train=UNUSED + VIEW + "y = 1  # noqa: SF998\n") / "train.py"
    ran = shapefix("check", "--add-noqa")
    assert (ran.code, ran.err) == (0, "Suppressed 1 finding in 1 file.\n")
    assert (
        path.read_text()
        == UNUSED + VIEW.replace("(-1, 8)", "(-1, 8)  # noqa: SF101") + "y = 1  # noqa: SF998\n"
    )


def test_a_notebook(project: Project) -> None:
    path = project() / "train.ipynb"
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "id": "a",
    }
    sources = ["import torch", "x = torch.zeros(2, 3)  # noqa: SF101, E501"]
    cells = [cell | {"id": str(number), "source": source} for number, source in enumerate(sources)]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert reported() == ["train.ipynb:cell 2:1:24 SF001"]
    shapefix("check", "--fix")
    assert json.loads(path.read_text())["cells"][1]["source"] == "x = torch.zeros(2, 3)  # noqa: E501"


def test_an_editor_reports_unknown_codes_only(project: Project) -> None:
    folder = project()
    session = LiveSession(CheckOptions(jobs=1, use_cache=False))
    text = UNUSED + INVALID.replace("x =", "y =")
    session.set_text(str(folder / "train.py"), text.encode())
    session.refresh()
    assert [finding.code for finding in session.findings()] == ["SF002"]
