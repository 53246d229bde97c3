"""Tracebacks of notebooks lead to the present cells, whatever front end has printed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from notebook_runs import FORMS, run_cells, store_error, write_notebook

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log, diagnose_notebook
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnosis.repaired_causes import repaired_cause
from shapefix.diagnostics import path_of
from shapefix.engine.repairs import FileRepair
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)
IMPORTS = "import torch\nfrom torch import nn"
MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(271, 256)

    def forward(self, x):
        return self.fc(x)"""
RUN = "net = Net()\nnet(torch.zeros(8, 4000))"
CELLS = (IMPORTS, MODEL, RUN)
VIEW = "x = torch.zeros(4, 6, 8).transpose(1, 2)\ny = x.view(4, 48)"


def _diagnosed(folder: Path, lines: list[str]) -> Diagnosis:
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    with (folder / "run.log").open("rb") as stream:
        found = diagnose_log(log_lines(stream), str(folder), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("form", FORMS)
def test_frames_are_those_of_cells(form: str, tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    write_notebook(notebook, CELLS, (1, 2, 3))
    write_notebook(tmp_path / "other.ipynb", (IMPORTS, VIEW), (1, 2))
    _, _, lines = run_cells(CELLS, form)
    found = _diagnosed(tmp_path, lines)
    places = [(frame.span.path, frame.span.row, frame.is_changed) for frame in found.frames]
    # The text cell is the first one.
    assert places == [(path_of(str(notebook), 4), 2, False), (path_of(str(notebook), 3), 7, False)]
    (cause,) = found.causes
    assert (cause.finding.code, cause.confidence) == ("SF501", Confidence.PROVED)
    assert cause.finding.span.path == path_of(str(notebook), 3)


def test_a_cell_that_ran_again_is_found_by_its_text(tmp_path: Path) -> None:
    _, _, lines = run_cells(CELLS, "IPython 9")
    write_notebook(tmp_path / "train.ipynb", CELLS, (11, 3, None))
    found = _diagnosed(tmp_path, lines)
    assert [frame.span.path[-6:] for frame in found.frames] == ["cell 4", "cell 3"]
    assert found.causes[0].confidence is Confidence.PROVED


def test_an_edited_cell_is_noticed(tmp_path: Path) -> None:
    _, _, lines = run_cells(CELLS, "IPython 9")
    moved = (IMPORTS, MODEL.replace("        return", "        # later\n        return"), RUN)
    write_notebook(tmp_path / "train.ipynb", moved, (1, 2, 3))
    found = _diagnosed(tmp_path, lines)
    assert [(frame.span.row, frame.is_changed) for frame in found.frames] == [(2, False), (8, True)]
    assert found.causes[0].confidence is Confidence.ONLY
    write_notebook(tmp_path / "train.ipynb", (IMPORTS, VIEW, "print(x)"), (1, 2, 3))
    found = _diagnosed(tmp_path, lines)
    assert found.causes == ()
    assert all(frame.is_missing for frame in found.frames)


def test_two_notebooks_with_the_same_cells_are_no_answer(tmp_path: Path) -> None:
    _, _, lines = run_cells(CELLS, "IPython 7")
    for name in ("one.ipynb", "two.ipynb"):
        write_notebook(tmp_path / name, CELLS, (1, 2, 3))
    found = _diagnosed(tmp_path, lines)
    assert (found.causes, [frame.is_missing for frame in found.frames]) == ((), [True, True])


@pytest.mark.parametrize("form", ["IPython 9", "ipykernel", "VS Code"])
def test_a_stored_error_is_repaired_in_its_cell(form: str, tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    store_error(notebook, (IMPORTS, VIEW), form)
    before = notebook.read_bytes()
    found = diagnose_notebook(str(notebook), str(tmp_path), OPTIONS)
    assert found is not None
    assert (found.holder, found.causes[0].confidence) == (3, Confidence.PROVED)
    repaired = repaired_cause(found)
    assert isinstance(repaired, FileRepair)
    ((path, old, new),) = repaired.changes
    assert (path, new) == (path_of(str(notebook), 3), old.replace("view", "reshape"))
    source = json.dumps("y = x.view(4, 48)").encode()
    assert repaired.new.encode() == before.replace(source, source.replace(b"view", b"reshape"))


def test_a_notebook_without_errors_has_no_diagnosis(tmp_path: Path) -> None:
    write_notebook(tmp_path / "train.ipynb", CELLS)
    assert diagnose_notebook(str(tmp_path / "train.ipynb"), str(tmp_path), OPTIONS) is None


def test_a_magic_in_the_words_of_ipython_is_no_change(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "train.ipynb", (IMPORTS, MODEL, "%time net = Net()\nnet(torch.zeros(8, 4000))"), (1, 2, 3)
    )
    _, _, lines = run_cells((IMPORTS, MODEL, "net = Net()\nnet(torch.zeros(8, 4000))"), "IPython 9")
    shown = [
        line.replace("net = Net()", "get_ipython().run_line_magic('time', 'net = Net()')") for line in lines
    ]
    found = _diagnosed(tmp_path, shown)
    assert [frame.is_changed for frame in found.frames] == [False, False]
    assert found.causes[0].confidence is Confidence.PROVED


TIMED = "\n%%time\n\nx = torch.zeros(4, 6, 8).transpose(1, 2)\ny = x.view(4, 48)"
HEAD = "RuntimeError                              Traceback (most recent call last)"
ERROR = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension"
    " spans across two contiguous subspaces). Use .reshape(...) instead."
)
NO_SOURCE = "      1 'Could not get source, probably due dynamically evaluated source code.'"
CALL = "get_ipython().run_cell_magic('{}', '{}', 'x = torch.zeros(4, 6, 8).mT\\ny = x.view(4, 48)')"
COMPILED = {
    "IPython 9, %%time": (
        TIMED,
        ["Cell In[2], line 1", f"----> 1 {CALL.format('time', '')}", "", "File <timed exec>:2", NO_SOURCE],
        (3, 5),
    ),
    "IPython 8.0, %%time": (TIMED, ["File <timed exec>:2, in <module>"], (3, 5)),
    "IPython 9, %%timeit": (
        TIMED.replace("%%time", "%%timeit -n1"),
        [
            "Cell In[2], line 1",
            f"----> 1 {CALL.format('timeit', '-n1')}",
            "",
            "File ~/lib/python3.11/timeit.py:208, in Timer.repeat(self, repeat, number)",
            "--> 208     t = self.timeit(number)",
            "",
            "File <magic-timeit>:2, in inner(_it, _timer)",
            NO_SOURCE,
        ],
        (3, 5),
    ),
    "IPython 9, %%prun": (
        TIMED.replace("%%time", "%%prun"),
        [
            "Cell In[2], line 1",
            f"----> 1 {CALL.format('prun', '')}",
            "",
            "File ~/lib/python3.11/cProfile.py:101, in Profile.runctx(self, cmd, globals, locals)",
            "--> 101     exec(cmd, globals, locals)",
            "",
            "File <string>:2",
            NO_SOURCE,
        ],
        (3, 5),
    ),
    "IPython 9, %%capture": (
        TIMED.replace("%%time", "%%capture"),
        [
            "Cell In[3], line 2",
            "      1 x = torch.zeros(4, 6, 8).transpose(1, 2)",
            "----> 2 y = x.view(4, 48)",
        ],
        (3, 5),
    ),
    "IPython 9, %time": (
        "x = torch.zeros(4, 6, 8).transpose(1, 2)\n%time x.view(4, 48)",
        [
            "Cell In[2], line 2",
            "      1 x = torch.zeros(4, 6, 8).transpose(1, 2)",
            "----> 2 get_ipython().run_line_magic('time', 'x.view(4, 48)')",
            "",
            "File <timed eval>:1",
            NO_SOURCE,
        ],
        (3, 2),
    ),
    "IPython 7, %time": (
        "x = torch.zeros(4, 6, 8).transpose(1, 2)\n%time x.view(4, 48)",
        ["<timed eval> in <module>"],
        (3, 2),
    ),
    "empty rows": (
        "\n\nx = torch.zeros(4, 6, 8).transpose(1, 2)\ny = x.view(4, 48)",
        [
            "Cell In[2], line 2",
            "      1 x = torch.zeros(4, 6, 8).transpose(1, 2)",
            "----> 2 y = x.view(4, 48)",
        ],
        (3, 4),
    ),
}


@pytest.mark.parametrize("form", COMPILED)
def test_code_compiled_by_a_magic_is_that_of_the_cell(form: str, tmp_path: Path) -> None:
    source, frames, (cell, row) = COMPILED[form]
    content = write_notebook(tmp_path / "train.ipynb", (IMPORTS, source), (1, 2))
    lines = ["-" * 75, HEAD, *frames, "", ERROR]
    output = {"output_type": "error", "ename": "RuntimeError", "evalue": ERROR[14:], "traceback": lines}
    content["cells"][2]["outputs"] = [output]
    (tmp_path / "train.ipynb").write_text(json.dumps(content))
    found = diagnose_notebook(str(tmp_path / "train.ipynb"), str(tmp_path), OPTIONS)
    assert found is not None
    (frame,) = found.frames
    assert (frame.span.path[-6:], frame.span.row, frame.is_changed) == (f"cell {cell}", row, False)
    (cause,) = found.causes
    assert (cause.finding.code, cause.confidence) == ("SF101", Confidence.PROVED)


def test_a_file_run_by_exec_has_its_own_rows(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("import torch\nx = torch.zeros(4, 6, 8).mT\ny = x.view(4, 48)\n")
    content = write_notebook(tmp_path / "train.ipynb", ("exec(open('part.py').read())",), (1,))
    frames = ["Cell In[1], line 1", "----> 1 exec(open('part.py').read())", "", "File <string>:3", NO_SOURCE]
    lines = ["-" * 75, HEAD, *frames, "", ERROR]
    output = {"output_type": "error", "ename": "RuntimeError", "evalue": ERROR[14:], "traceback": lines}
    content["cells"][1]["outputs"] = [output]
    (tmp_path / "train.ipynb").write_text(json.dumps(content))
    found = diagnose_notebook(str(tmp_path / "train.ipynb"), str(tmp_path), OPTIONS)
    assert found is not None
    assert (found.frames[-1].span.path, found.frames[-1].span.row) == (str(tmp_path / "part.py"), 3)
    assert found.causes[0].finding.code == "SF101"


def test_an_aborted_cell_is_not_an_error(tmp_path: Path) -> None:
    content = write_notebook(tmp_path / "train.ipynb", (IMPORTS,), (1,))
    output = {"output_type": "error", "ename": "", "evalue": "", "traceback": []}
    content["cells"][1]["outputs"] = [output]
    (tmp_path / "train.ipynb").write_text(json.dumps(content))
    assert diagnose_notebook(str(tmp_path / "train.ipynb"), str(tmp_path), OPTIONS) is None
