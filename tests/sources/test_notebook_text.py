"""Notebooks as one text: every byte outside of an edited cell stays, and rows lead back to their cells."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.sources.json_spans import cell_sources
from shapefix.sources.notebook_text import read_notebook
from shapefix.sources.text import Unreadable

ROWS = st.sampled_from(
    [
        "x = 1",
        "y = 'é'",
        "",
        "# %% cell 2",
        "z = '\\n'",
        "%matplotlib inline",
        "!ls",
        "def f(:",
        '"""',
        "    a",
    ]
)
KEYS = ["cells", "source", "input", "cell_type", "metadata", "language_info", "kernelspec", "vscode", "name"]
SOURCES = st.lists(st.lists(ROWS, max_size=4).map("\n".join), max_size=4)


def written(sources: list[str], as_list: bool, **style: Any) -> bytes:
    """Return a notebook with these cells, and a text cell before each."""
    cells: list[dict[str, Any]] = []
    for source in sources:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]})
        cells.append(
            {
                "outputs": [{"output_type": "stream", "name": "stdout", "text": ['{"source": ["x"]}\n']}],
                "cell_type": "code",
                "source": source.splitlines(keepends=True) if as_list else source,
                "metadata": {"source": "x", "tags": []},
            }
        )
    return (json.dumps({"metadata": {}, "cells": cells, "nbformat": 4}, **style) + "\n").encode()


STYLES = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 1, 4]), "ensure_ascii": st.booleans(), "sort_keys": st.booleans()}
)


@given(SOURCES, st.booleans(), STYLES)
@settings(max_examples=60, deadline=None)
def test_an_edit_changes_its_cell_and_nothing_else(
    sources: list[str], as_list: bool, style: dict[str, Any]
) -> None:
    data = written(sources, as_list, **style)
    notebook = read_notebook("train.ipynb", data)
    assert notebook.encode() == data
    for cell in notebook.cells:
        row = next((row for row in cell.text.split("\n") if row.startswith(("x", "y", "z"))), None)
        if row is None:
            continue
        edited = cell.text.replace(row, "new = 'ü'", 1)
        place = notebook.text.index(f"{notebook.marker} {cell.number}\n") + len(notebook.marker) + 3
        text = notebook.text[:place] + notebook.text[place:].replace(cell.text, edited, 1)
        after = replace(notebook, text=text).encode()
        raw, kept = json.loads(data), json.loads(after)
        source = raw["cells"][cell.number - 1]["source"]
        joined = "".join(source).replace(row, "new = 'ü'", 1)
        assert "".join(kept["cells"][cell.number - 1].pop("source")) == joined
        raw["cells"][cell.number - 1].pop("source")
        assert kept == raw
        span = dict(cell_sources(data.decode()))[cell.number]
        assert after.decode().startswith(data.decode()[: span.start])
        assert after.decode().endswith(data.decode()[span.end :])


@given(SOURCES)
@settings(max_examples=30, deadline=None)
def test_rows_lead_back_to_their_cells(sources: list[str]) -> None:
    notebook = read_notebook("train.ipynb", written(sources, as_list=True))
    rows = notebook.text.split("\n")
    for cell in notebook.cells:
        for number, row in enumerate(cell.text.split("\n")[:-1], 1):
            at = cell.first_row + number - 1
            assert rows[at - 1] == row
            assert notebook.place(at) == (cell.number, number)


def test_a_cell_with_a_syntax_error_leaves_the_others() -> None:
    notebook = read_notebook("train.ipynb", written(["x = 1", "print 'x'\n", "await f()"], as_list=True))
    assert [each.text for each in notebook.cells] == ["x = 1\n", "\n", "await f()\n"]
    (broken,) = notebook.broken
    assert (broken.number, broken.row, notebook.place(notebook.row(broken))) == (4, 1, (4, 1))


def test_a_cell_may_have_the_fstrings_of_a_newer_python() -> None:
    cells = ['row = {"x": 1}\nprint(f"{row["x"]}")', 'print(f"{row[}")']
    notebook = read_notebook("train.ipynb", written(cells, as_list=True))
    assert [each.number for each in notebook.broken] == [notebook.cells[1].number]


def test_an_indented_cell_is_python_as_in_ipython() -> None:
    indented = "  %time x = 1\n  if x:\n    y = 2"
    data = written([indented, "z = 3", "  a = 1\n b = 2"], as_list=True)
    notebook = read_notebook("train.ipynb", data)
    first, second, third = notebook.cells
    assert compile(notebook.text, "train.ipynb", "exec")
    assert (first.text.split("\n")[1:3], second.text) == (["  if x:", "    y = 2"], "z = 3\n")
    assert notebook.place(first.first_row + 2) == (first.number, 3)
    assert [each.number for each in notebook.broken] == [third.number]
    edited = replace(notebook, text=notebook.text.replace("y = 2", "y = 4")).encode()
    assert edited == data.replace(b"y = 2", b"y = 4")


def test_a_row_with_a_magic_is_not_edited() -> None:
    notebook = read_notebook("train.ipynb", written(["%time x = 1\ny = 2"], as_list=True))
    assert replace(notebook, text=notebook.text.replace("y = 2", "y = 3")).encode().count(b"%time x = 1") == 1
    with pytest.raises(Unreadable, match="magic"):
        replace(notebook, text=notebook.text.replace("x = 1", "x = 2")).encode()


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.sampled_from(["code", "x = 1", "\ud800"]),
    lambda parts: st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(KEYS), parts, max_size=3),
    max_leaves=6,
)


@given(JUNK, JUNK, JUNK, JUNK)
@settings(max_examples=150, deadline=None)
def test_damaged_notebooks_are_read_or_refused(cells: Any, cell: Any, metadata: Any, source: Any) -> None:
    code = {"cell_type": "code", "metadata": metadata, "source": source}
    for content in (cells, [cell], [code, cell], [code | (cell if isinstance(cell, dict) else {})]):
        data = json.dumps({"cells": content, "metadata": metadata}).encode()
        try:
            notebook = read_notebook("train.ipynb", data)
        except Unreadable:
            continue
        replace(notebook, text=notebook.text.replace("x = 1", "x = 2")).encode()


def test_worksheets_of_nbformat_3_are_read() -> None:
    cell = {"cell_type": "code", "language": "python", "input": ["x = 1\n", "y = 2"], "outputs": []}
    data = json.dumps({"worksheets": [{"cells": [cell]}, {"cells": [cell]}], "nbformat": 3}).encode()
    notebook = read_notebook("old.ipynb", data)
    assert [(each.number, each.text) for each in notebook.cells] == [(n, "x = 1\ny = 2\n") for n in (1, 2)]
    head, tail = notebook.text.rsplit("y = 2", 1)
    assert (
        replace(notebook, text=f"{head}y = 3{tail}").encode()
        == data[::-1].replace(b"2 = y", b"3 = y", 1)[::-1]
    )
