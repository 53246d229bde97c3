"""Pulled diagnostics, settings of the editor, several folders, and progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, insertion

pytestmark = pytest.mark.slow

FAULTY = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
MODEL = "import torch\n\n\ndef flat(x):\n    return x.reshape(-1, 8)\n"
CALLER = "import torch\nfrom model import flat\n\nflat(torch.zeros(4, 6, 8)[:, :-1])\n"
CAPABILITIES = {
    "workspace": {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
        "workspaceFolders": True,
    },
    "textDocument": {"diagnostic": {}},
    "window": {"workDoneProgress": True},
}
NO_PATIENCE = "import shapefix.server.work_progress as shown; shown.PATIENCE = 0.0"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two projects with a module of the same name."""
    made = tuple(tmp_path_factory.mktemp(name) for name in ("first", "second"))
    for folder in made:
        (folder / "pyproject.toml").write_text("")
        (folder / "model.py").write_text(MODEL)
    (made[1] / "model.py").write_text(MODEL.replace("reshape", "view"))
    return made[0], made[1]


@pytest.fixture(scope="module")
def pulling(folders: tuple[Path, Path]) -> Iterator[EditorClient]:
    client = EditorClient(folders[0], CAPABILITIES, folders=folders, changed=NO_PATIENCE)
    yield client
    assert client.end() == 0


def pulled(client: EditorClient, uri: str, known: str | None = None) -> dict[str, Any]:
    params = {"textDocument": {"uri": uri}, "previousResultId": known}
    report: dict[str, Any] = client.request("textDocument/diagnostic", params)
    return report


def until(client: EditorClient, method: str) -> dict[str, Any]:
    """Wait for a message that has not been looked at."""
    while True:
        for place, message in enumerate(client.requests):
            if message["method"] == method:
                return client.requests.pop(place)
        client.next_message()


def test_pulled_diagnostics_and_progress(pulling: EditorClient, folders: tuple[Path, Path]) -> None:
    uri = (folders[0] / "train.py").as_uri()
    pulling.open(uri, FAULTY)
    first = pulled(pulling, uri)
    (registration,) = until(pulling, "client/registerCapability")["params"]["registrations"]
    assert registration["registerOptions"] == {"section": "shapefix"}
    assert (first["kind"], [each["code"] for each in first["items"]]) == ("full", ["SF101"])
    shown = until(pulling, "$/progress")["params"]
    assert shown["value"] == {"kind": "begin", "title": "shapefix: checking"}
    ended = until(pulling, "$/progress")["params"]
    assert (ended["token"], ended["value"]) == (shown["token"], {"kind": "end"})
    assert pulled(pulling, uri, first["resultId"]) == {"kind": "unchanged", "resultId": first["resultId"]}
    pulling.change(uri, 2, insertion(0, 0, "\n"))
    moved = pulled(pulling, uri, first["resultId"])
    assert [each["range"]["start"]["line"] for each in moved["items"]] == [3]
    # Nothing is sent twice.
    assert uri not in pulling.published
    pulling.close(uri)
    assert pulled(pulling, uri) == {"kind": "full", "items": []}


def test_a_change_elsewhere_asks_for_another_pull(pulling: EditorClient, folders: tuple[Path, Path]) -> None:
    model, caller = ((folders[0] / name).as_uri() for name in ("model.py", "caller.py"))
    pulling.open(model, MODEL)
    pulling.open(caller, CALLER)
    assert [pulled(pulling, uri)["items"] for uri in (model, caller)] == [[], []]
    pulling.requests.clear()
    pulling.change(
        caller,
        2,
        {"text": CALLER.replace(", :-1]", ", :-1].float()").replace("flat(", "(lambda x: x.view(-1, 8))(")},
    )
    assert [each["code"] for each in pulled(pulling, caller)["items"]] == ["SF101"]
    pulling.change(model, 2, {"text": MODEL.replace("reshape", "view")})
    pulled(pulling, model)
    pulling.change(caller, 3, {"text": CALLER})
    pulled(pulling, caller)
    until(pulling, "workspace/diagnostic/refresh")
    assert [each["code"] for each in pulled(pulling, model)["items"]] == ["SF101"]
    for uri in (model, caller):
        pulling.close(uri)


def test_each_folder_is_a_project(pulling: EditorClient, folders: tuple[Path, Path]) -> None:
    for folder, expected in zip(folders, ((), ("SF101",)), strict=True):
        uri, model = (folder / "train.py").as_uri(), (folder / "model.py").as_uri()
        pulling.open(uri, CALLER)
        assert pulled(pulling, uri)["items"] == []
        found = pulling.published.get(model, {"diagnostics": []})["diagnostics"]
        assert tuple(each["code"] for each in found) == expected
        pulling.close(uri)
    later = folders[0].parent / "later"
    later.mkdir()
    added = {"added": [{"uri": later.as_uri(), "name": "later"}], "removed": []}
    pulling.notify("workspace/didChangeWorkspaceFolders", {"event": added})
    pulling.open((later / "train.py").as_uri(), FAULTY)
    assert len(pulled(pulling, (later / "train.py").as_uri())["items"]) == 1
    pulling.close((later / "train.py").as_uri())


def test_settings_of_the_editor(pulling: EditorClient, folders: tuple[Path, Path]) -> None:
    uri = (folders[0] / "train.py").as_uri()
    pulling.open(uri, FAULTY)
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    params = {"textDocument": {"uri": uri}, "range": place}
    assert [each["label"] for each in pulling.request("textDocument/inlayHint", params)] == ["f32[20, 8]"]
    for settings, labels in (
        ({"inlayHintDtypes": False}, ["[20, 8]"]),
        ({"inlayHints": False, "preview": True}, []),
        (None, ["f32[20, 8]"]),
        ("nonsense", ["f32[20, 8]"]),
    ):
        pulling.answers["workspace/configuration"] = [settings]
        pulling.notify("workspace/didChangeConfiguration", {"settings": None})
        asked = until(pulling, "workspace/configuration")["params"]["items"]
        assert asked == [{"section": "shapefix"}]
        # The answer of the client and its next request cross on the way.
        for _ in range(50):
            shown = [each["label"] for each in pulling.request("textDocument/inlayHint", params)]
            if shown == labels:
                break
            time.sleep(0.1)
        assert shown == labels
        assert len(pulled(pulling, uri)["items"]) == 1
    pulling.close(uri)
