"""A client with other capabilities than the least ones: bytes as positions, versions in edits, late edits."""

# ruff: noqa: F811

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from editor_client import EditorClient, insertion, project  # noqa: F401

pytestmark = pytest.mark.slow

TEXT = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "workspace": {
        "workspaceEdit": {"documentChanges": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
    },
    "textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}},
}


@pytest.fixture(scope="module")
def capable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EditorClient]:
    client = EditorClient(tmp_path_factory.mktemp("workspace"), CAPABILITIES)
    yield client
    # An editor that vanishes: the pipe is closed when the last process with its other end has gone.
    assert client.process.stdin is not None
    client.process.stdin.close()
    while client.received.get(timeout=20) is not None:
        pass
    client.process.wait(20)


def test_columns_behind_a_tab_and_wide_characters(capable: EditorClient, project: Path) -> None:
    assert capable.capabilities["positionEncoding"] == "utf-8"
    uri = (project / "train.py").as_uri()
    capable.open(uri, "import torch\nif True:\n\n")
    assert len(capable.diagnostics(uri)) == 1
    before = "\té = '😀'; z = "
    capable.change(uri, 2, insertion(2, 0, before + "torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)"))
    (found,) = capable.diagnostics(uri, 2)
    column = len(before.encode())
    assert found["range"]["start"] == {"line": 2, "character": column}
    # A change after the wide characters lands where the editor means it.
    capable.change(uri, 3, insertion(2, column, "y = "), insertion(2, column + 4, "😀 = "))
    (broken,) = capable.diagnostics(uri, 3)
    assert broken["range"]["start"] == {"line": 2, "character": column + 4}
    capable.change(uri, 4, insertion(0, 0, "\f\u2028# rows end at newlines only\n"))
    assert [each["range"]["start"]["line"] for each in capable.diagnostics(uri, 4)] == [0]
    capable.close(uri)


def test_edits_of_a_version_resolved_when_chosen(capable: EditorClient, project: Path) -> None:
    uri = (project / "train.py").as_uri()
    capable.open(uri, TEXT)
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    context = {"diagnostics": [], "only": ["source.fixAll.shapefix"]}
    params = {"textDocument": {"uri": uri}, "range": place, "context": context}
    (every,) = capable.request("textDocument/codeAction", params)
    assert "edit" not in every
    (change,) = capable.request("codeAction/resolve", every)["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    assert [each["newText"] for each in change["edits"]] == [
        TEXT.splitlines(True)[2].replace(".view", ".reshape")
    ]
    capable.close(uri)


def test_changes_of_files_are_watched(capable: EditorClient, project: Path) -> None:
    (project / "model.py").write_text("import torch\n\n\ndef flat(x):\n    return x.reshape(-1, 8)\n")
    uri = (project / "train.py").as_uri()
    capable.open(uri, "import torch\nfrom model import flat\n\nflat(torch.zeros(4, 6, 8)[:, :-1])\n")
    assert capable.diagnostics(uri) == []
    # Sent once the session has begun, so it is here before the first findings.
    (registered,) = (each for each in capable.requests if each["method"] == "client/registerCapability")
    (registration,) = registered["params"]["registrations"]
    assert registration["method"] == "workspace/didChangeWatchedFiles"
    model = project / "model.py"
    model.write_text(model.read_text().replace("reshape", "view"))
    event = {"uri": model.as_uri(), "type": 2}
    capable.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
    assert [each["code"] for each in capable.until_published(model.as_uri())] == ["SF101"]
    capable.close(uri)
