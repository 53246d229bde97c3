"""Inlay hints and hovers of the language server."""

# ruff: noqa: F811

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, editor, project  # noqa: F401

pytestmark = pytest.mark.slow

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        q, k = x.chunk(2, dim=0)
        q[0] = 1
        h = self.fc(k.transpose(0, 1))  # noqa: SF101
        name = str(h)
        return h, name
"""
TRAIN = """\
import torch
from model import Net

net = Net()
out, _ = net(torch.zeros(6, 5, 8))
for width in (2, 3):
    grown = torch.zeros(width, 4)
"""


def hints(editor: EditorClient, uri: str, first: int = 0, last: int = 99) -> dict[int, str]:
    place = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    found = editor.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": place})
    return {each["position"]["line"] + 1: each["label"] for each in found}


def hover(editor: EditorClient, uri: str, line: int, character: int) -> str | None:
    place = {"line": line - 1, "character": character}
    found = editor.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
    text: str | None = None if found is None else found["contents"]["value"]
    return text


def test_sizes_in_a_model_come_from_its_caller(editor: EditorClient, project: Path) -> None:
    (project / "model.py").write_text(NET)
    (project / "train.py").write_text(TRAIN)
    model, train = ((project / name).as_uri() for name in ("model.py", "train.py"))
    editor.open(model, NET)
    assert hints(editor, model) == {
        10: "f32[6, 5, 8]",
        11: "q f32[3, 5, 8], k f32[3, 5, 8]",
        13: "f32[5, 3, 4]",
        15: "[0] f32[5, 3, 4]",
    }
    assert hints(editor, model, 11, 12) == {13: "f32[5, 3, 4]"}

    (lens,) = editor.request("textDocument/codeLens", {"textDocument": {"uri": model}})
    assert lens["range"]["start"] == {"line": 9, "character": 0}
    assert lens["command"]["title"] == "called with x f32[6, 5, 8] at train.py:5"
    editor.open(train, TRAIN)
    assert hints(editor, train) == {5: "f32[5, 3, 4]", 7: "f32[2, 4] / f32[3, 4]"}
    # Another batch size in the script changes the hints of the open model.
    editor.change(train, 2, {"text": TRAIN.replace("(6, 5, 8)", "(16, 5, 8)")})
    editor.diagnostics(train, 2)
    assert hints(editor, train)[5] == "f32[5, 8, 4]"
    assert hints(editor, model)[13] == "f32[5, 8, 4]"

    # Broken syntax keeps the last good hints beside the rows that are still there.
    before = hints(editor, model)
    editor.change(model, 2, {"text": NET.replace("import torch\n", "import torch\nx = (\n", 1)})
    assert hints(editor, model) == {row + 1: label for row, label in before.items()}
    editor.change(model, 3, {"text": NET.replace("self.fc(k", "self.fc((k")})
    assert hints(editor, model) == {row: label for row, label in before.items() if row != 13}
    editor.close(train)
    editor.close(model)
    assert hints(editor, model) == {}
    assert editor.request("textDocument/codeLens", {"textDocument": {"uri": model}}) == []


def test_a_double_click_inserts_a_comment(editor: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    text = "import torch\né = torch.zeros(2)\ny = é + 1  # one\n"
    editor.open(uri, text)
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    first, second = editor.request(
        "textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything}
    )
    assert first["position"] == {"line": 1, "character": 18}
    assert first["textEdits"][0]["newText"] == "  # f32[2]"
    assert "textEdits" not in second
    editor.close(uri)


def test_hovers(editor: EditorClient, project: Path) -> None:
    (project / "model.py").write_text(NET)
    (project / "train.py").write_text(TRAIN)
    uri = (project / "model.py").as_uri()
    editor.open(uri, NET)
    row = NET.splitlines()[12]
    value = hover(editor, uri, 13, row.index("h ="))
    assert value is not None
    assert value.startswith("```text\nh: f32[5, 3, 4]\n```\n- float32, on cpu")
    assert "- 60 elements" in value
    assert "- line 13: `h = self.fc(k.transpose(0, 1))" in value
    before = hover(editor, uri, 13, row.index("k."))
    assert before is not None
    assert "k: f32[3, 5, 8]" in before
    assert "line 11" in before
    layer = hover(editor, uri, 13, row.index("fc"))
    assert layer is not None
    assert "self.fc: nn.Linear" in layer
    assert "line 8: `self.fc = nn.Linear(8, 4)`" in layer
    parameter = hover(editor, uri, 10, NET.splitlines()[9].index("x"))
    assert parameter is not None
    assert "x: f32[6, 5, 8]" in parameter
    page = hover(editor, uri, 13, row.index("SF101") + 2)
    assert page is not None
    assert page.startswith("# view-across-stride-gap (SF101)")
    for line, character in ((13, row.index("noqa")), (14, 9), (1, 0), (99, 4), (3, 0)):
        assert hover(editor, uri, line, character) is None
    editor.close(uri)
    assert hover(editor, uri, 13, 8) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"inlayHintDtypes": False}, {1: "[2]"}), ({"inlayHints": False}, {}), ([3], {1: "f32[2]"})],
)
def test_options_of_hints(options: Any, expected: dict[int, str]) -> None:
    from shapefix.server.language_server import server_options

    made = server_options(options)
    assert (made.hints, made.hint_dtypes) == (expected != {}, expected != {1: "[2]"})
