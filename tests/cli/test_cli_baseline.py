"""`shapefix check --baseline`: old findings are accepted, new ones fail."""

from __future__ import annotations

import json

import pytest
from command_line import (  # noqa: F401
    CLEAN,
    SWAPPED,
    VIEW,
    Project,
    project_in_a_folder,
    shapefix,
)

BASELINE = ("--baseline", "known.json")
NEW = "\nwide = logits[:, 1:, :]\nlost = wide.view(-1, 4)\n"
OLD_LINE = "flat = shift.view(-1, 8)\n"


def _written(folder: object) -> list[dict[str, str]]:
    with open(f"{folder}/known.json", encoding="utf-8") as file:  # noqa: PTH123
        return list(json.load(file)["findings"])


def test_old_findings_pass_wherever_they_move_and_new_ones_fail(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    path = folder / "train.py"
    written = shapefix("check", *BASELINE, "--write-baseline")
    assert (written.code, written.out) == (0, "")
    assert written.err == "Wrote 2 findings to known.json.\n"
    assert [(each["path"], each["code"]) for each in _written(folder)] == [
        ("mix.py", "SF103"),
        ("train.py", "SF101"),
    ]
    ran = shapefix("check", *BASELINE, "--output-format", "concise")
    assert ran.code == 0
    assert "SF1" not in ran.out
    assert ran.err == "note: 2 findings in known.json not shown\n"
    for moved in (
        "# first\n\n" + VIEW,
        VIEW.replace("torch\n", "torch\nimport os\n"),
        VIEW.replace(OLD_LINE, "\nprint(shift)\n" + OLD_LINE + "print(flat)\n"),
        VIEW.replace(OLD_LINE, "if True:\n    flat = shift.view( -1, 8 )\n"),
    ):
        path.write_text(moved)
        ran = shapefix("check", *BASELINE)
        assert (ran.code, ran.err) == (0, "note: 2 findings in known.json not shown\n"), moved
    path.write_text(NEW.replace("logits", "torch.zeros(4, 6, 8)").join(VIEW.split("\n\n", 1)))
    ran = shapefix("check", *BASELINE, "--output-format", "concise")
    assert ran.code == 1
    assert ran.out.count("SF101") == 1
    assert "wide.view" in ran.out


def test_a_copy_of_an_accepted_line_is_new_above_it_too(project: Project) -> None:
    path = project(train=VIEW) / "train.py"
    shapefix("check", *BASELINE, "--write-baseline")
    path.write_text(VIEW.replace(OLD_LINE, OLD_LINE + "print(flat)\nprint(shift)\n" + OLD_LINE))
    ran = shapefix("check", *BASELINE, "--output-format", "concise")
    assert ran.code == 1
    assert ran.err.startswith("note: 1 finding in known.json not shown\n")


def test_stale_entries_are_reported_and_removed(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    shapefix("check", *BASELINE, "--write-baseline")
    (folder / "train.py").write_text(CLEAN)
    ran = shapefix("check", *BASELINE)
    assert ran.code == 0
    stale = "1 entry is stale (SF101 in train.py); `--write-baseline` removes what is no longer found"
    assert ran.err.splitlines()[1] == f"note: known.json: {stale}"
    # A run that could not have found it does not call it stale, and does not remove it.
    for options in (["mix.py"], ["--select", "SF103"]):
        assert "stale" not in shapefix("check", *BASELINE, *options).err
        assert shapefix("check", *BASELINE, "--write-baseline", *options).code == 0
        assert len(_written(folder)) == 2
    assert shapefix("check", *BASELINE, "--write-baseline").err == "Wrote 1 finding to known.json.\n"
    (folder / "mix.py").unlink()
    assert "stale (SF103 in mix.py)" in shapefix("check", *BASELINE).err


def test_what_is_held_back_in_a_folder_is_accepted_for_hooks_that_pass_file_names(project: Project) -> None:
    """A hook names the changed files, and in those nothing is held back."""
    project(
        train="import torch\nfrom torch import nn\n\nheads = nn.Linear(8, 2)\n\n\n"
        "def score(x: torch.Tensor):\n    if x.dim() == 3:\n        return heads(x.reshape(4, 6))\n"
    )
    written = shapefix("check", *BASELINE, "--write-baseline")
    assert written.err == "Wrote 0 findings (1 more held back) to known.json.\n"
    named = shapefix("check", *BASELINE, "train.py")
    assert (named.code, named.err) == (0, "note: 1 finding in known.json not shown\n")
    in_folder = shapefix("check", *BASELINE)
    assert in_folder.code == 0
    assert "stale" not in in_folder.err


def test_a_file_that_cannot_be_checked_fails_and_its_entries_stay(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    shapefix("check", *BASELINE, "--write-baseline")
    before = _written(folder)
    (folder / "train.py").write_text("def broken(:\n")
    ran = shapefix("check", *BASELINE)
    assert ran.code == 2
    assert "stale" not in ran.err
    assert shapefix("check", *BASELINE, "--write-baseline").code == 2
    assert _written(folder) == before


def test_cells_of_a_notebook_may_move(project: Project) -> None:
    folder = project()

    def write(*cells: str) -> None:
        listed: list[dict[str, object]] = [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
            for cell in cells
        ]
        content = {"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        (folder / "train.ipynb").write_text(json.dumps(content))

    write(VIEW)
    shapefix("check", *BASELINE, "--write-baseline")
    assert [each["path"] for each in _written(folder)] == ["train.ipynb"]
    write("x = 1\n", VIEW)
    assert shapefix("check", *BASELINE).code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: no such file or folder"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a baseline of shapefix"),
        ('{"version": 7, "findings": []}', "is a baseline of another version of shapefix"),
        ('{"version": 1, "findings": [{"path": "a.py"}]}', "entry 1 lacks one of path, code, rows, around"),
    ],
)
def test_an_unusable_baseline_is_one_line(project: Project, content: str | None, message: str) -> None:
    folder = project(train=CLEAN)
    if content is not None:
        (folder / "known.json").write_text(content)
    ran = shapefix("check", *BASELINE)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: known.json: {message}; `--write-baseline` writes a baseline\n"
    if content is not None:
        ran = shapefix("check", *BASELINE, "--write-baseline")
        assert ran.err == f"error: known.json: {message}; remove it, or name another file\n"
        assert (ran.code, (folder / "known.json").read_text()) == (2, content)


def test_a_baseline_to_write_needs_a_name(project: Project) -> None:
    project(train=CLEAN)
    ran = shapefix("check", "--write-baseline")
    assert ran.code == 2
    assert "--write-baseline needs a file: --baseline FILE --write-baseline" in ran.err
