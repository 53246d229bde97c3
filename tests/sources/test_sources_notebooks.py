"""Cells of notebooks as Python: rows and columns stay, and what is not Python is left out and told."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from shapefix.diagnostics import cell_of, path_of
from shapefix.sources.notebooks import Cell, SkippedLines, cells, python_cell
from shapefix.sources.text import Unreadable


def notebook(*sources: str | list[str], **more: Any) -> bytes:
    made: list[dict[str, Any]] = [{"cell_type": "code", "metadata": {}, "source": each} for each in sources]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4} | more).encode()


def only(source: str) -> Cell:
    (cell,) = cells(notebook(source))
    ast.parse(cell.text)
    assert len(cell.text.splitlines()) in (0, len(source.splitlines()))
    return cell


@pytest.mark.parametrize(
    "source",
    [
        "x = (a\n     % b)\n",
        "text = '''\n%matplotlib inline\n!ls\n'''\n",
        "rest = total \\\n    % size\n",
        'print("%d!" % 3)  # !ls\n',
        "x = y != z\nassert x is not None\n",
        '""""quoted" %s"""\n% 3\n'.replace("\n%", " %"),
        "pip = 3\npip.install\n",
        'words = f"{a}" \'"\'\nx = 1 % 2\n',
        "",
    ],
)
def test_what_is_python_stays(source: str) -> None:
    assert only(source) == Cell(1, source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("%matplotlib inline\nx = 1\n", "pass\nx = 1\n"),
        ("if colab:\n    %load_ext tensorboard\n", "if colab:\n    pass\n"),
        ("%time model.fit(x)\n", "if 1 :model.fit(x)\n"),
        ("%timeit -n 10 -r 3 model(x)\n", "if 1              :model(x)\n"),
        ("y = %time model(x)\n", "y =       model(x)\n"),
        ("%%time\nmodel(x)\n", "\nmodel(x)\n"),
        ("%%check -v\nmodel(x)\n", "\nmodel(x)\n"),
        ("%%shapes\nmodel(x)\n%shapefix why\n", "\nmodel(x)\npass\n"),
        ("\n%%capture out\r\nmodel(x)", "\n\r\nmodel(x)"),
        ("model?\n?model.fit\nx = 1", "pass\npass\nx = 1"),
        ("%%html\n<b>bold</b>\n", ""),
    ],
)
def test_what_changes_nothing_is_passed_over(source: str, text: str) -> None:
    assert cells(notebook(source)) == (Cell(1, text),)


@pytest.mark.parametrize(
    ("source", "text", "left_out"),
    [
        ("!pip install -q a\nimport a\n", "pass\nimport a\n", [SkippedLines(1, "!pip install -q a")]),
        ("!pip install a \\\n   b\nx = 1\n", "pass\n\nx = 1\n", [SkippedLines(1, "!pip install a \\")]),
        ("pip install torch", "pass", [SkippedLines(1, "pip install torch")]),
        ("cd /content/drive", "pass", [SkippedLines(1, "cd /content/drive")]),
        ("ls = [1]\nls\nrm (x)", "ls = [1]\nls\nrm (x)", []),
        ("x = 1\n%run prepare.py", 'x = 1\nexec(open("prepare.py").read())', []),
        ("%run prepare.py --all", "pass", [SkippedLines(1, "%run prepare.py --all")]),
        ("files = !ls data\nprint(files)", "files = []\nprint(files)", [SkippedLines(1, "files = !ls data")]),
        ("%%check --no-run\nx = 1\n", "", [SkippedLines(1, "%%check --no-run")]),
        ("%%bash\npython train.py\n", "", [SkippedLines(1, "%%bash")]),
        ("%%writefile net.py\nimport torch\n", "", [SkippedLines(1, "%%writefile net.py")]),
        ("for n in ():\n    %cd data\n", "for n in ():\n    pass\n", [SkippedLines(2, "%cd data")]),
    ],
)  # fmt: skip
def test_what_ipython_would_hand_on_is_told(source: str, text: str, left_out: list[SkippedLines]) -> None:
    assert cells(notebook(source)) == (Cell(1, text, tuple(left_out)),)


def test_a_measured_call_keeps_its_columns() -> None:
    for source in ("%time model(x)", "    %timeit -n 3 model(x)"):
        (cell,) = cells(notebook(source))
        assert cell.text.index("model(x)") == source.index("model(x)")


def test_cells_are_numbered_among_all_cells_and_only_python_is_taken() -> None:
    made: dict[str, Any] = {
        "cells": [
            {"cell_type": "markdown", "source": "# Title"},
            {"cell_type": "code", "metadata": {}, "source": ["x = 1\n", "y = 2"]},
            {"cell_type": "raw", "source": "raw"},
            {"cell_type": "code", "metadata": {"vscode": {"languageId": "sql"}}, "source": "select 1"},
            {"cell_type": "code", "source": "z = 3"},
        ],
        "metadata": {"language_info": {"name": "python"}},
    }
    assert cells(json.dumps(made).encode()) == (Cell(2, "x = 1\ny = 2"), Cell(5, "z = 3"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b" ", "is empty, not a notebook"),
        (b"print(1)", "is not a notebook: it is not JSON"),
        (b"[" * 100_000, "is not a notebook: it is not JSON"),
        (b"[]", "is not a notebook: it has no cells"),
        (b'{"worksheets": [3]}', "is not a notebook: it has no cells"),
        (notebook("1", metadata={"kernelspec": {"language": "R"}}), "is a notebook in r, not in Python"),
    ],
)
def test_what_is_no_notebook_is_told(data: bytes, said: str) -> None:
    with pytest.raises(Unreadable) as raised:
        cells(data)
    assert raised.value.message == said


def test_a_cell_has_a_name_like_a_file() -> None:
    assert path_of("a/train.ipynb", 3) == "a/train.ipynb:cell 3"
    assert cell_of("a/train.ipynb:cell 3") == ("a/train.ipynb", 3)
    assert cell_of("a/train.py") is None


def test_a_title_may_stand_before_a_cell_magic() -> None:
    assert python_cell(1, "#@title Install\n\n%%capture\nx = 1\n").text == "#@title Install\n\n\nx = 1\n"
    assert python_cell(1, "# note\n%%bash\nls\n").text == ""
