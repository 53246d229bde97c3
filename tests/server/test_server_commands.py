"""The page of a rule, a probe of a script, and guards of a function, from an editor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient

pytestmark = pytest.mark.slow

SCRIPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(x)


if __name__ == "__main__":
    print(torch.zeros(4, 6, 8)[:, :-1].view(-1, 8))
"""
CAPABILITIES = {
    "window": {"showDocument": {"support": True}, "workDoneProgress": True},
    "textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}},
}


@pytest.fixture(scope="module")
def showing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EditorClient]:
    client = EditorClient(tmp_path_factory.mktemp("workspace"), CAPABILITIES)
    yield client
    assert client.end() == 0


@pytest.fixture
def script(showing: EditorClient, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    showing.open(path.as_uri(), SCRIPT)
    yield path
    showing.close(path.as_uri())


def actions(client: EditorClient, path: Path, row: int, only: str) -> list[dict[str, Any]]:
    context = {"diagnostics": [], "only": [only]}
    params = {
        "textDocument": {"uri": path.as_uri()},
        "range": {
            "start": {"line": row - 1, "character": 0},
            "end": {"line": row - 1, "character": 99},
        },
        "context": context,
    }
    found: list[dict[str, Any]] = client.request("textDocument/codeAction", params)
    return found


def shown_text(client: EditorClient, command: dict[str, Any]) -> tuple[Any, str]:
    """Execute a command; return its result and the text of the shown document."""
    client.requests.clear()
    result = client.request("workspace/executeCommand", command)
    (shown,) = (each for each in client.requests if each["method"] == "window/showDocument")
    return result, Path(shown["params"]["uri"].removeprefix("file://")).read_text()


def test_a_rule_is_explained(showing: EditorClient, script: Path) -> None:
    row = SCRIPT[: SCRIPT.index("    print")].count("\n") + 1
    *_, explain = actions(showing, script, row, "quickfix")
    assert explain["title"] == "Explain SF101 (view-across-stride-gap)"
    _, text = shown_text(showing, explain["command"])
    assert text.startswith("# view-across-stride-gap")
    with pytest.raises(RuntimeError, match="Expected 1 argument"):
        showing.request("workspace/executeCommand", {"command": "shapefix.explain", "arguments": []})


def test_guards_of_a_function(showing: EditorClient, script: Path) -> None:
    rows = dict(enumerate(SCRIPT.splitlines(), 1))
    titles = {
        row: [each["title"] for each in actions(showing, script, number, "refactor.rewrite")]
        for number, row in rows.items()
    }
    assert {row.strip(): found for row, found in titles.items() if found} == {
        "class Net(nn.Module):": ["Assert the sizes that Net() needs"],
        "def __init__(self):": ["Assert the sizes that Net.__init__() needs"],
        "def forward(self, x):": ["Assert the sizes that Net.forward() needs"],
    }
    number = next(number for number, row in rows.items() if "def forward" in row)
    (guard,) = actions(showing, script, number, "refactor")
    ((edits,),) = [showing.request("codeAction/resolve", guard)["edit"]["changes"].values()]
    assert "assert x.shape[-1] == self.head.in_features" in edits[0]["newText"]
    number = next(number for number, row in rows.items() if "__init__(self)" in row)
    (guard,) = actions(showing, script, number, "refactor")
    assert "edit" not in showing.request("codeAction/resolve", guard)
    showing.change(script.as_uri(), 2, {"text": SCRIPT + "("})
    assert actions(showing, script, number, "refactor") == []


def test_a_script_is_probed(showing: EditorClient, script: Path) -> None:
    (probe,) = actions(showing, script, 1, "source.probe")
    assert probe["title"] == "Probe this script: run one training step"
    script.unlink()
    assert actions(showing, script, 1, "source.probe") == []
    # A probe that ends at once.
    code, text = shown_text(showing, probe["command"])
    assert code == 2
    assert "train.py" in text
    begun, ended = (each["params"] for each in showing.requests if each["method"] == "$/progress")
    assert begun["value"]["title"] == "shapefix probe train.py"
    assert (ended["token"], ended["value"]["kind"]) == (begun["token"], "end")


def test_a_probe_is_cancelled(showing: EditorClient, script: Path) -> None:
    script.write_text("import time  # torch __main__\ntime.sleep(600)\n")
    (probe,) = actions(showing, script, 1, "source.probe")
    showing.requests.clear()
    number = showing.send_request("workspace/executeCommand", probe["command"])
    while not any(each["method"] == "$/progress" for each in showing.requests):
        showing.next_message()
    (begun,) = (each["params"] for each in showing.requests if each["method"] == "$/progress")
    showing.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    assert showing.result(number) is None
    assert all(each["method"] != "window/showDocument" for each in showing.requests)
