"""State and events that other packages attach to a run, and the imports that keep the interpreter apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import shapefix
from shapefix.domains.gradients import Gradients
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event, OperationCalled
from shapefix.interpreter.modules import Module
from shapefix.interpreter.program import parsed, run_program
from shapefix.interpreter.values import TRUE, Constant, LibraryObject
from shapefix.library.library import TorchLibrary

PACKAGE = Path(shapefix.__file__).parent
CODE = """
import torch
from torch import nn
layer = nn.Linear(3, 4)
x = torch.zeros(2, 3)
y = torch.relu(layer(x), inplace=False).view(-1)
"""


class NoFiles:
    """A project of one file."""

    def locate(self, importing: Module, module: str, level: int) -> str | None:
        return None

    def module(self, path: str) -> Module | None:
        return None

    def allow(self, size: int) -> None:
        pass

    def text(self, script: Module, path: str) -> str | None:
        return None


def run(code: str, *listening: type[Event]) -> Evaluator:
    ev = Evaluator(TorchLibrary(), NoFiles(), 10_000, listening=frozenset(listening))
    run_program(ev, parsed("script.py", "script", code), 1_000)
    return ev


def test_calls_of_a_library_are_events_for_a_listener() -> None:
    called = [event for event in run(CODE, OperationCalled).events if isinstance(event, OperationCalled)]
    assert [event.function for event in called] == [
        "torch.nn.Linear",
        "torch.zeros",
        "torch.nn.Linear.__call__",
        "torch.relu",
        "torch.Tensor.view",
    ]
    made, zeros, layer, relu, view = called
    assert layer.receiver is made.result
    assert isinstance(made.result, LibraryObject)
    assert layer.positional == (zeros.result,)
    assert isinstance(relu.keywords["inplace"], Constant)
    assert view.receiver is relu.result
    assert view.place.code == "torch.relu(layer(x), inplace=False).view(-1)"


def test_without_a_listener_they_are_not() -> None:
    assert not any(isinstance(event, OperationCalled) for event in run(CODE).events)


@dataclass
class _Counts:
    seen: dict[str, object] = field(default_factory=dict)


def test_state_is_created_once_for_each_run() -> None:
    first, second = run(""), run("")
    assert first.state[_Counts] is first.state[_Counts]
    assert first.state[_Counts] is not second.state[_Counts]


def test_what_is_journaled_is_undone_with_its_branch() -> None:
    ev = run("")
    counts = ev.state[_Counts].seen
    ev.journal.begin()
    ev.journal.write(counts, "key", TRUE)
    assert counts == {"key": TRUE}
    ev.journal.undo()
    assert counts == {}


@pytest.mark.parametrize(
    ("code", "recorded"),
    [
        ("torch.set_grad_enabled(False)", False),
        ("with torch.set_grad_enabled(False):\n    pass", True),
        ("with torch.no_grad():\n    pass", True),
        ("with torch.no_grad():\n    torch.set_grad_enabled(True)", True),
        ("@torch.no_grad()\ndef f():\n    torch.set_grad_enabled(False)\nf()", True),
        ("def f():\n    torch.set_grad_enabled(False)\nf()", False),
    ],
)
def test_contexts_restore_the_recording_of_gradients_as_torch_does(code: str, recorded: bool) -> None:
    assert run(f"import torch\n{code}").state[Gradients].recording is recorded
    torch = pytest.importorskip("torch")
    before = torch.is_grad_enabled()
    try:
        exec(f"import torch\n{code}", {})
        assert torch.is_grad_enabled() is recorded
    finally:
        torch.set_grad_enabled(before)


def _modules(package: str) -> dict[str, ast.Module]:
    return {
        f"shapefix.{package}.{path.stem}": ast.parse(path.read_text("utf-8"))
        for path in (PACKAGE / package).glob("*.py")
        if path.stem != "__init__"
    }


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports anywhere, for types alone as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("package", ["interpreter", "domains"])
def test_no_two_files_import_each_other(package: str) -> None:
    modules = _modules(package)
    graph = {name: modules.keys() & set(_imported(tree)) for name, tree in modules.items()}
    # Raises CycleError for a circle.
    assert set(TopologicalSorter(graph).static_order()) == modules.keys()
