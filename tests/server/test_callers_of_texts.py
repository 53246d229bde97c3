"""The programs that are run for the sizes in an open text: those that call its functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapefix.engine.settings import CheckOptions
from shapefix.server.messages import TextUpdate
from shapefix.server.workspace_analyzer import WorkspaceAnalyzer
from shapefix.sizes import program_values

MODEL = """\
import torch


class Outer:
    class Net:
        def double(self, x):
            y = x + x
            return y


def merge(x):
    z = x.flatten()
    return z
"""
TRAINS = """\
import torch
import model

loss = torch.zeros(3, requires_grad=True).sum()
loss.backward()
torch.optim.SGD([loss], lr=1.0).step()
"""
CALLS = "import torch\nimport model\n\nmodel.Outer.Net().double(torch.zeros(4, 8))\n"


class Workspace:
    """Open files of one folder; run has the files run for sizes, in their order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._analyzer = WorkspaceAnalyzer(CheckOptions(), lambda: False)
        self.run: list[str] = []
        watched_run = program_values._watched_run

        def noted(modules, module, program, functions):  # type: ignore[no-untyped-def]
            self.run.append(Path(program.path).name)
            return watched_run(modules, module, program, functions)

        monkeypatch.setattr(program_values, "_watched_run", noted)

    def write(self, name: str, text: str) -> None:
        path = self._folder / name
        is_new = not path.exists()
        path.write_text(text)
        self._analyzer.update(TextUpdate(changed=(str(path),), with_new_files=is_new))

    def type(self, name: str, text: str) -> None:
        path = self._folder / name
        path.write_text(text)
        self._analyzer.update(TextUpdate(texts={str(path): (1, text.encode())}))

    def values(self) -> dict[str, str]:
        """The last known value of each name in the open texts."""
        self.run.clear()
        list(self._analyzer.check())
        texts = [named for each in self._analyzer.values() for named in (each.values or {}).values()]
        found = [value for named in texts for value in named]
        return {each.name: each.values[-1].text for each in found}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace(tmp_path, monkeypatch)


def test_importers_without_calls_are_not_run(workspace: Workspace) -> None:
    for name in ("a.py", "b.py", "c.py"):
        workspace.write(name, TRAINS)
    workspace.write("d.py", CALLS)
    workspace.type("model.py", MODEL)
    assert workspace.values()["y"] == "f32[4, 8]"
    assert workspace.run == ["model.py", "d.py"]


def test_an_importer_is_not_run_for_functions_with_known_sizes(workspace: Workspace) -> None:
    workspace.write("d.py", CALLS)
    own = MODEL + "\n\nOuter.Net().double(torch.zeros(5, 8))\n"
    workspace.type("model.py", own)
    assert workspace.values()["y"] == "f32[5, 8]"
    assert workspace.run == ["model.py"]
    workspace.write("d.py", CALLS + "model.merge(torch.zeros(4, 8))\n")
    found = workspace.values()
    assert (found["y"], found["z"]) == ("f32[5, 8]", "f32[32]")
    assert workspace.run == ["model.py", "d.py"]


def test_sizes_of_a_caller_go_with_its_call(workspace: Workspace) -> None:
    workspace.write("d.py", CALLS)
    workspace.type("model.py", MODEL)
    assert workspace.values()["y"] == "f32[4, 8]"
    workspace.write("d.py", TRAINS)
    assert "y" not in workspace.values()
    assert workspace.run == ["model.py"]
    workspace.write("d.py", CALLS.replace("4, 8", "2, 8"))
    assert workspace.values()["y"] == "f32[2, 8]"
