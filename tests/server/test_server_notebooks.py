"""Notebooks in the language server: all cells are one program, each with its own places."""

# ruff: noqa: F811

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, editor, project  # noqa: F401

pytestmark = pytest.mark.slow

CELLS = {
    "a": ("markdown", "# Title"),
    "b": ("python", "%matplotlib inline\nimport torch\nx = torch.zeros(4, 6, 8)"),
    "c": ("python", "é = '😀'; y = x[:, :-1]\ny.view(-1, 8)"),
}


def cell(name: str, kind: int = 2) -> dict[str, Any]:
    return {"kind": kind, "document": f"vscode-notebook-cell:/{name}"}


def document(name: str, language: str, text: str) -> dict[str, Any]:
    return {"uri": f"vscode-notebook-cell:/{name}", "languageId": language, "version": 1, "text": text}


def test_a_notebook_from_its_opening_to_its_closing(editor: EditorClient, project: Path) -> None:
    notebook = {"uri": (project / "train.ipynb").as_uri(), "notebookType": "jupyter-notebook", "version": 1}
    kinds = [cell(name, 1 if language == "markdown" else 2) for name, (language, _) in CELLS.items()]
    documents = [document(name, *content) for name, content in CELLS.items()]
    opened = {"notebookDocument": {**notebook, "cells": kinds}, "cellTextDocuments": documents}
    editor.notify("notebookDocument/didOpen", opened)
    uri = cell("c")["document"]
    (found,) = editor.diagnostics(uri)
    assert (found["code"], found["range"]["start"]) == ("SF101", {"line": 1, "character": 0})
    related = {each["location"]["uri"] for each in found["relatedInformation"]}
    assert related <= {cell("b")["document"], uri}
    assert editor.diagnostics(cell("b")["document"]) == []

    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    wanted = {"textDocument": {"uri": uri}, "range": everything}
    (hint,) = editor.request("textDocument/inlayHint", wanted)
    assert hint["position"] == {"line": 0, "character": 23}
    assert hint["label"] == "f32[4, 5, 8] strides (48, 8, 1)"
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 14}}
    assert "x: f32[4, 6, 8]" in editor.request("textDocument/hover", place)["contents"]["value"]

    actions = editor.request("textDocument/codeAction", {**wanted, "context": {"diagnostics": []}})
    fix = next(each for each in actions if each.get("isPreferred"))
    assert [edit["newText"] for edit in fix["edit"]["changes"][uri]] == ["reshape"]
    every = next(each for each in actions if each["kind"] == "source.fixAll.shapefix")
    assert every["edit"]["changes"].keys() == {uri}

    # A cell goes before the others, and one is edited.
    start = {"line": 0, "character": 0}
    changes = {
        "structure": {
            "array": {"start": 0, "deleteCount": 0, "cells": [cell("d")]},
            "didOpen": [document("d", "python", "z = (")],
        },
        "textContent": [
            {
                "document": {"uri": uri, "version": 2},
                "changes": [{"range": {"start": start, "end": start}, "text": "# é\n"}],
            }
        ],
    }
    editor.notify(
        "notebookDocument/didChange",
        {"notebookDocument": {**notebook, "version": 2}, "change": {"cells": changes}},
    )
    (found,) = editor.diagnostics(uri, 2)
    assert found["range"]["start"] == {"line": 2, "character": 0}
    (broken,) = editor.diagnostics(cell("d")["document"])
    assert broken["message"] == "cannot be parsed: '(' was never closed"

    removed = {"structure": {"array": {"start": 3, "deleteCount": 1}, "didClose": [{"uri": uri}]}}
    editor.notify(
        "notebookDocument/didChange",
        {"notebookDocument": {**notebook, "version": 3}, "change": {"cells": removed}},
    )
    assert editor.until_published(uri) == []
    closed = {"notebookDocument": {"uri": notebook["uri"]}, "cellTextDocuments": []}
    editor.notify("notebookDocument/didClose", closed)
    assert editor.until_published(cell("d")["document"]) == []
