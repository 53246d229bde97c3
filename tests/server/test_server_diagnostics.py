"""Diagnostics of the language server: where, when and of which text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, editor, insertion, project  # noqa: F401

# ruff: noqa: F811
pytestmark = pytest.mark.slow

VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
MODEL = "import torch\n\n\ndef flatten(x):\n    return torch.relu(x.view(-1, x.size(-1)))\n"
TRAIN = "import torch\nfrom model import flatten\n\nflatten(torch.zeros(4, 6, 8)[:, :-1])\n"


def codes(diagnostics: list[dict[str, Any]]) -> list[tuple[str | None, int]]:
    return [(each.get("code"), each["range"]["start"]["line"]) for each in diagnostics]


def test_a_file_from_its_opening_to_its_closing(editor: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    editor.open(uri, VIEW)
    (found,) = editor.diagnostics(uri)
    assert found["code"] == "SF101"
    assert found["source"] == "shapefix"
    assert found["severity"] == 1
    assert found["range"] == {"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 44}}
    page = found["codeDescription"]["href"]
    assert page.startswith("file://")
    assert page.endswith("/SF101-view-across-stride-gap.md")
    assert "RuntimeError: view size is not compatible" in found["message"]
    related = found["relatedInformation"]
    assert {each["location"]["uri"] for each in related} == {uri}
    assert any("sliced" in each["message"] for each in related)

    editor.change(uri, 2, insertion(0, 0, "# a new first row\n"))
    assert codes(editor.diagnostics(uri, 2)) == [("SF101", 3)]

    editor.change(uri, 3, insertion(4, 0, "y = (1,\n"))
    (broken,) = editor.diagnostics(uri, 3)
    assert broken["message"] == "cannot be parsed: '(' was never closed"
    assert broken["range"]["start"] == {"line": 4, "character": 4}

    editor.change(uri, 4, {"text": VIEW.replace(".view", ".reshape")})
    assert editor.diagnostics(uri, 4) == []
    editor.close(uri)
    assert editor.until_published(uri) == []


def test_only_the_newest_version_is_published(editor: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    editor.open(uri, VIEW)
    editor.diagnostics(uri)
    for version in range(2, 30):
        editor.change(uri, version, insertion(0, 0, "#\n"))
    assert codes(editor.diagnostics(uri, 29)) == [("SF101", 30)]
    editor.change(uri, 30, {"text": VIEW})
    editor.change(uri, 31, insertion(0, 0, "#\n"))
    published: list[dict[str, Any]] = []
    while not published or published[-1]["version"] != 31:
        editor.until_published(uri)
        published.append(editor.published[uri])
    assert [each["version"] for each in published] == [31]
    editor.close(uri)


def test_findings_of_an_importer_and_in_an_imported_file(editor: EditorClient, project: Path) -> None:
    (project / "model.py").write_text(MODEL)
    (project / "train.py").write_text(TRAIN)
    model, train = ((project / name).as_uri() for name in ("model.py", "train.py"))
    editor.open(model, MODEL)
    (found,) = editor.diagnostics(model)
    assert {each["location"]["uri"] for each in found["relatedInformation"]} == {model, train}
    editor.open(train, TRAIN.replace("[:, :-1]", ""))
    editor.diagnostics(train)
    assert editor.diagnostics(model) == []
    # A file that is not open has diagnostics, too, as long as an open one leads to them.
    editor.close(model)
    editor.change(train, 2, {"text": TRAIN})
    editor.diagnostics(train, 2)
    assert codes(editor.until_published(model)) == [("SF101", 4)]
    editor.close(train)
    while editor.published[model]["diagnostics"]:
        editor.until_published(model)


def test_settings_of_the_folder_and_files_outside(editor: EditorClient, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.shapefix]\nextend-exclude = ["old.py"]\n')
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("scratch.py\n")
    for name in ("old.py", "scratch.py"):
        uri = (project / name).as_uri()
        editor.open(uri, VIEW)
        assert editor.diagnostics(uri) == []
        editor.close(uri)
    for uri in ("untitled:Untitled-1", Path("/nowhere/at/all/train.py").as_uri()):
        editor.open(uri, VIEW)
        assert codes(editor.diagnostics(uri)) == [("SF101", 2)]
        editor.close(uri)
    uri = (project / "train.py").as_uri()
    editor.open(uri, VIEW)
    assert codes(editor.diagnostics(uri)) == [("SF101", 2)]
    (project / "pyproject.toml").write_text('[tool.shapefix]\nignore = ["SF1"]\n')
    settings: dict[str, Any] = {"uri": (project / "pyproject.toml").as_uri(), "type": 2}
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [settings]})
    assert editor.until_published(uri) == []
    (project / "pyproject.toml").write_text("[tool.shapefix]\nignored = 1\n")
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [settings]})
    (invalid,) = editor.until_published(settings["uri"])
    assert "unknown key 'ignored'" in invalid["message"]
    editor.close(uri)


def test_malformed_messages_do_not_end_the_server(editor: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    for body in (b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b'{"id": {}, "method": 3}'):
        editor.send_bytes(body or b" ")
    editor.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 7}, "contentChanges": []}
    )
    editor.notify("textDocument/didOpen", {"textDocument": 3})
    editor.notify("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened.py"}})
    editor.notify("no/suchNotification", {})
    with pytest.raises(RuntimeError):
        editor.request("no/suchRequest", {})
    editor.open("git:/train.py?HEAD", VIEW)
    editor.open(uri, VIEW)
    assert codes(editor.diagnostics(uri)) == [("SF101", 2)]
    far = {"start": {"line": 900, "character": 5}, "end": {"line": 2, "character": 9000}}
    editor.change(uri, 2, {"range": far, "text": "\n"})
    assert codes(editor.diagnostics(uri, 2)) == [("SF101", 2)]
    editor.close(uri)
