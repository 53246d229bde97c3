"""`shapefix diagnose`: the text, JSON, exit codes and repairs of a diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Project, program, project_in_a_folder, shapefix  # noqa: F401

CODE = """\
import torch

x = torch.zeros(4, 6, 8).transpose(1, 2)
y = x.view(4, 48)
"""
LOG = """\
step 0
Traceback (most recent call last):
  File "/home/ana/work/train.py", line 4, in <module>
    y = x.view(4, 48)
RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans \
across two contiguous subspaces). Use .reshape(...) instead.
"""
KNOWN = """\
Traceback (most recent call last):
  File "gone.py", line 4, in f
IndexError: index out of range in self
"""
UNKNOWN = KNOWN.replace("index out of range in self", "the shelf is empty")


def _log(folder: Path, text: str) -> Path:
    path = folder / "train.log"
    path.write_text(text)
    return path


def test_the_cause_and_its_repair_are_shown(project: Project) -> None:
    folder = project(train=CODE)
    ran = shapefix("diagnose", _log(folder, LOG))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("RuntimeError: view size is not compatible")
    assert "  train.py:4  y = x.view(4, 48)" in lines
    assert "Cause: proved" in lines
    assert any(line.startswith("error[SF101] view-across-stride-gap") for line in lines)
    assert {"--- train.py", "-y = x.view(4, 48)", "+y = x.reshape(4, 48)"} <= set(lines)
    assert (folder / "train.py").read_text() == CODE


def test_apply_writes_the_fix_of_the_cause(project: Project) -> None:
    folder = project(train=CODE)
    ran = shapefix("diagnose", "--apply", _log(folder, LOG))
    assert (ran.code, ran.err) == (0, "train.py:4: repaired SF101\n")
    assert "To write this repair" not in ran.out
    assert (folder / "train.py").read_text() == CODE.replace("view(4", "reshape(4")
    again = shapefix("diagnose", "--apply", _log(folder, LOG))
    assert again.code == 1
    assert "sources have changed" in again.out


def test_unsafe_fixes_need_an_option(project: Project) -> None:
    code = "import torch\nfc = torch.nn.Linear(3, 2)\nfc(torch.zeros(4, 5))\n"
    log = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    fc(torch.zeros(4, 5))
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)
"""
    folder = project(train=code)
    ran = shapefix("diagnose", "--apply", _log(folder, log))
    assert (ran.code, ran.err) == (
        0,
        "not repaired: train.py:3: SF501: the fix is unsafe; add --unsafe-fixes\n",
    )
    assert "To write this repair: add --apply --unsafe-fixes\n" in ran.out
    assert (folder / "train.py").read_text() == code
    ran = shapefix("diagnose", "--apply", "--unsafe-fixes", _log(folder, log))
    assert ran.err == "train.py:3: repaired SF501\n"
    assert (folder / "train.py").read_text() == code.replace("Linear(3", "Linear(5")


def test_a_diagnosis_in_json(project: Project) -> None:
    folder = project(train=CODE)
    ran = shapefix("diagnose", "--output-format", "json", _log(folder, LOG))
    document = json.loads(ran.out)
    assert document["error"]["type"] == "RuntimeError"
    assert document["explanation"]["name"] == "view-strides"
    assert document["confidence"] == "proved"
    (cause,) = document["causes"]
    assert (cause["code"], cause["location"]["row"], cause["fix"]["applicability"]) == ("SF101", 4, "safe")
    (frame,) = document["frames"]
    assert frame == {
        "filename": str(folder / "train.py"),
        "row": 4,
        "function": "<module>",
        "text": "y = x.view(4, 48)",
        "exists": True,
        "changed": False,
    }


def test_a_cause_is_a_finding_in_the_formats_of_check(project: Project) -> None:
    folder = project(train=CODE)
    log = _log(folder, LOG)
    ran = shapefix("diagnose", "--output-format", "agent", log)
    assert ran.code == 0
    first, *_ = ran.out.splitlines()
    assert first.startswith("train.py:4:5 SF101 error `x.view(4, 48)` fails")
    assert "-y = x.view(4, 48)\n+y = x.reshape(4, 48)\n" in ran.out
    (result,) = json.loads(shapefix("diagnose", "--output-format", "sarif", log).out)["runs"][0]["results"]
    assert (result["ruleId"], len(result["fixes"])) == ("SF101", 1)


def test_an_error_without_a_cause_is_a_failure_in_the_formats_of_check(project: Project) -> None:
    folder = project(gone="def f(x):\n    pass\n\n    x[0]\n")
    known = _log(folder, KNOWN)
    ran = shapefix("diagnose", "--output-format", "pylint", known)
    assert (ran.code, ran.out[:54]) == (1, "gone.py:4: [error] IndexError: index out of range in s")
    assert "An id is negative or not smaller" in ran.out
    ran = shapefix("diagnose", "--output-format", "concise", _log(folder, UNKNOWN.replace("gone", "no")))
    assert (ran.code, ran.out) == (1, "error: <log>: IndexError: the shelf is empty\n")
    ran = shapefix("diagnose", "--output-format", "gitlab", _log(folder, "loss 0.5\n"))
    assert (ran.code, json.loads(ran.out), ran.err) == (2, [], "no error found in the input\n")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(("log", "code"), [(KNOWN, 1), (UNKNOWN, 1), ("loss 0.5\n", 2), ("", 2)])
def test_exit_codes_without_a_cause(project: Project, log: str, code: int, form: str) -> None:
    ran = shapefix("diagnose", "--output-format", form, _log(project(), log))
    assert ran.code == code
    if form == "json":
        document = json.loads(ran.out)
        assert (document["error"] is None, document["causes"]) == (code == 2, [])
    elif code == 2:
        assert ran.err == "no error found in the input\n"
    elif log is KNOWN:
        assert "An id is negative or not smaller" in ran.out
        assert "Usual causes:\n  - Tokens were added" in ran.out
    else:
        assert "shapefix does not know this message" in ran.out


@pytest.mark.slow
def test_standard_input_is_read(project: Project) -> None:
    project(train=CODE)
    for arguments in ([], ["-"]):
        ran = program("diagnose", *arguments, stdin=LOG.encode())
        assert ran.returncode == 0
        assert b"Cause: proved" in ran.stdout


def test_a_missing_log_is_an_error(project: Project) -> None:
    project()
    ran = shapefix("diagnose", "none.log")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: none.log: cannot be read: ")


def test_files_outside_of_the_project_are_never_written(project: Project) -> None:
    """A traceback may name any file; the fix is for the user's own ones."""
    folder = project(train=CODE)
    outside = folder / "lib" / "python3.12" / "site-packages" / "pkg.py"
    outside.parent.mkdir(parents=True)
    outside.write_text(CODE)
    ran = shapefix("diagnose", "--apply", _log(folder, LOG.replace("/home/ana/work/train.py", str(outside))))
    assert ran.code == 1
    assert outside.read_text() == CODE


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4000 and 271x256)",
            "RuntimeError: mat1",
        ),
        (
            "Warning: Eval batch 0 failed: view size is not compatible with input tensor's size and stride "
            "(at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
            "Warning: Eval batch 0 failed: view size",
        ),
    ],
)
def test_a_message_without_a_traceback_is_explained(project: Project, line: str, first: str) -> None:
    ran = shapefix("diagnose", _log(project(), f"Epoch 1\n{line}\nEpoch 2\nError: it goes on\n"))
    assert ran.code == 1
    assert ran.out.startswith(first)
    assert "The log has no traceback" in ran.out
    assert "Usual causes:" in ran.out


HANDLING = """\
import torch

def evaluate(batches):
    for i, batch in enumerate(batches):
        try:
            y = batch.transpose(1, 2)
            print(y.view(4, 48).sum())
        except Exception as error:
            print(f"Warning: Eval batch {i} failed: {error}")

evaluate([torch.zeros(4, 6, 8)])
"""


def test_a_printed_message_is_traced_to_its_handler(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(
        train=HANDLING, other="try:\n    pass\nexcept Exception as e:\n    print(f'failed {e}')\n"
    )
    exec(compile(HANDLING, "train.py", "exec"), {})
    ran = shapefix("diagnose", _log(folder, capsys.readouterr().out))
    assert ran.code == 0
    assert "The message was printed by the `except` after lines 6 to 7 of train.py." in ran.out
    assert "error[SF101] view-across-stride-gap" in ran.out
    assert "Cause: the only explanation found" in ran.out


def test_a_notebook_is_diagnosed_and_repaired(project: Project) -> None:
    """The error in the outputs of a cell is read; the repair is that of `shapefix fix`."""
    folder = project()
    frame = (
        "Cell In[2], line 2\n      1 x = torch.zeros(4, 6, 8).transpose(1, 2)\n----> 2 y = x.view(4, 48)\n"
    )
    head = f"{'-' * 75}\nRuntimeError{'Traceback (most recent call last)':>63}\n"
    message = LOG.splitlines()[-1].removeprefix("RuntimeError: ")
    lines = f"{head}{frame}\nRuntimeError: {message}".split("\n")
    stored = {"output_type": "error", "ename": "RuntimeError", "evalue": message, "traceback": lines}
    sources = ["import torch\n", "x = torch.zeros(4, 6, 8).transpose(1, 2)\ny = x.view(4, 48)"]
    code = {"cell_type": "code", "metadata": {}}
    cells = [
        {**code, "execution_count": n, "source": source, "outputs": [stored] if n == 2 else []}
        for n, source in enumerate(sources, 1)
    ]
    notebook = folder / "train.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    ran = shapefix("diagnose", "train.ipynb")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert {"Cell 2 has raised it when it last ran.", "--- train.ipynb:cell 2"} <= set(lines)
    assert "  train.ipynb:cell 2:2  y = x.view(4, 48)" in lines
    before = notebook.read_text()
    ran = shapefix("diagnose", "--apply", "train.ipynb")
    assert (ran.code, ran.err) == (0, "train.ipynb:cell 2:2: repaired SF101\n")
    assert notebook.read_text() == before.replace(
        'y = x.view(4, 48)", "outputs', 'y = x.reshape(4, 48)", "outputs'
    )
