"""Code actions of the language server: fixes, all safe repairs, and comments."""

# ruff: noqa: F811

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, editor, project  # noqa: F401
from lsprotocol import types

from shapefix.server.open_texts import PositionedText

pytestmark = pytest.mark.slow

TWO = """\
import torch

é = "😀"; x = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)
y = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)  # noqa: E501
x.unsqueeze(0)
print(x + y)"""
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}


def actions(
    editor: EditorClient, uri: str, place: dict[str, Any], only: list[str] | None = None
) -> list[dict[str, Any]]:
    context: dict[str, Any] = {"diagnostics": []}
    if only is not None:
        context["only"] = only
    params = {"textDocument": {"uri": uri}, "range": place, "context": context}
    found: list[dict[str, Any]] = editor.request("textDocument/codeAction", params)
    return found


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """A text after edits, as an editor applies them: the last one first."""
    made = PositionedText(text)
    for edit in sorted(edits, key=lambda each: tuple(each["range"]["start"].values()), reverse=True):
        places = (types.Position(**edit["range"][key]) for key in ("start", "end"))
        change = types.TextDocumentContentChangePartial(types.Range(*places), edit["newText"])
        made = made.changed([change])
    return made.text


def test_actions_of_a_file(editor: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    editor.open(uri, TWO)
    shown = editor.diagnostics(uri)
    assert [each["code"] for each in shown] == ["SF101", "SF101", "SF105"]
    # Without waiting for the diagnostics of the new text.
    editor.change(uri, 2, {"text": TWO.replace("import torch\n\n", "import torch\n")})
    text = TWO.replace("import torch\n\n", "import torch\n")
    place = {"line": 1, "character": 40}
    fix, suppress, *rest = actions(editor, uri, {"start": place, "end": place}, ["quickfix"])
    assert rest == []
    assert fix["isPreferred"] is True
    assert fix["diagnostics"][0]["code"] == "SF101"
    repaired = applied(text, fix["edit"]["changes"][uri])
    assert repaired == text.replace(".view", ".reshape", 1)
    silenced = applied(text, suppress["edit"]["changes"][uri])
    assert silenced.splitlines()[1].endswith(".view(-1, 8)  # noqa: SF101")
    assert suppress["title"] == "Suppress SF101 in this line with a comment"

    place = {"line": 2, "character": 4}
    *_, suppress = actions(editor, uri, {"start": place, "end": place}, ["quickfix"])
    silenced = applied(text, suppress["edit"]["changes"][uri])
    assert silenced.splitlines()[2].endswith("# noqa: E501, SF101")

    unsafe = [each for each in actions(editor, uri, WHOLE) if each["title"].endswith("(unsafe)")]
    assert [each["isPreferred"] for each in unsafe] == [False]
    assert applied(text, unsafe[0]["edit"]["changes"][uri]).endswith("\nx = x.unsqueeze(0)\nprint(x + y)")

    (every,) = actions(editor, uri, WHOLE, ["source.fixAll"])
    assert every["kind"] == "source.fixAll.shapefix"
    fixed = applied(text, every["edit"]["changes"][uri])
    assert fixed == text.replace(".view", ".reshape")
    editor.change(uri, 3, {"text": fixed})
    assert [each["code"] for each in editor.diagnostics(uri, 3)] == ["SF105"]
    assert actions(editor, uri, WHOLE, ["source.fixAll.shapefix"]) == []
    assert actions(editor, uri, WHOLE, ["refactor"]) == []
    editor.close(uri)
    assert actions(editor, uri, WHOLE) == []
