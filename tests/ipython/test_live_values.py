"""Descriptions of live values, compared with real tensors and modules, and the cells of a session."""

from __future__ import annotations

import ast
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from shapefix.ipython.live_errors import live_error
from shapefix.ipython.live_values import described, failed_layer, values_of
from shapefix.ipython.session_cells import SessionCells, before_row
from shapefix.ipython.session_view import as_html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(2, 3), "Tensor [2, 3] float32 cpu"),
        (torch.zeros(2, 3).T, "Tensor [3, 2] float32 cpu strides (1, 3)"),
        (torch.tensor([3, 5]), "Tensor [2] int64 cpu, values 3 to 5"),
        (torch.zeros(0, dtype=torch.long), "Tensor [0] int64 cpu"),
        (torch.zeros(2, 3, device="meta"), "Tensor [2, 3] float32 meta"),
        (torch.eye(2).to_sparse(), "Tensor [2, 2] float32 cpu"),
        (nn.Parameter(torch.zeros(4)), "Parameter [4] float32 cpu"),
        (np.zeros((2, 3)), "ndarray [2, 3] float64"),
        (nn.Linear(2, 3), "Linear(in_features=2, out_features=3, bias=True) on cpu"),
        (nn.Linear(2, 3, device="meta"), "Linear(in_features=2, out_features=3, bias=True) on meta"),
        (nn.Sequential(nn.ReLU(), nn.ReLU()), "Sequential with 2 layers"),
        (7, "7"),
        (None, "None"),
        ("cuda", "'cuda'"),
        ("a" * 100, "text of 100 characters"),
        ([1, 2, 3], "[1, 2, 3]"),
        (torch.Size((2, 3)), "Size torch.Size([2, 3])"),
        ((torch.zeros(2), torch.zeros(3)), "tuple of 2, the first: Tensor [2] float32 cpu"),
        ({"ids": torch.zeros(2), "n": 3}, "dict with ids: Tensor [2] float32 cpu; n: 3"),
        ({}, "empty dict"),
    ],
)
def test_values_are_described(value: object, text: str) -> None:
    shown = described("x", value)
    assert shown is not None
    assert (shown.name, shown.text) == ("x", text)


def test_objects_without_sizes_are_left_out() -> None:
    assert described("x", object()) is None


class Counted:
    """An object with a property that must not be read."""

    reads = 0

    @property
    def size(self) -> int:
        Counted.reads += 1
        return 3


def test_values_are_those_of_the_code_and_no_property_is_read() -> None:
    model = nn.ModuleDict({"fc": nn.Linear(2, 3)})
    batch = {"x": torch.zeros(2), "y": [torch.zeros(5)]}
    counted = Counted()
    frame = sys._getframe()
    assert (model, batch, counted) is not None
    code = "out = model.fc(batch['x'].view(counted.size)) + batch['y'][0].sum() + unknown + len(batch)"
    found = {value.name: value.text for value in values_of(code, frame)}
    assert found == {
        "model.fc": "Linear(in_features=2, out_features=3, bias=True) on cpu",
        "batch['x']": "Tensor [2] float32 cpu",
        "batch": "dict with x: Tensor [2] float32 cpu; y: list of 1, the first: Tensor [5] float32 cpu",
        "batch['y'][0]": "Tensor [5] float32 cpu",
        "batch['y']": "list of 1, the first: Tensor [5] float32 cpu",
    }
    assert Counted.reads == 0
    assert values_of("for x in (", frame) == ()


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(5, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def test_the_failed_layer_has_its_name_in_the_program() -> None:
    model = nn.Sequential(Block())
    with pytest.raises(RuntimeError) as caught:
        model(torch.zeros(2, 4))
    layer = failed_layer(caught.tb)
    assert layer is not None
    assert (layer.name, layer.code) == (
        "model.0.layers.1",
        "Linear(in_features=5, out_features=4, bias=True) on cpu",
    )
    assert layer.attribute == "layers"
    assert [(each.name, each.text) for each in layer.arguments] == [("input", "Tensor [2, 4] float32 cpu")]


class NoCells:
    """A session without cells."""

    def path(self, filename: str) -> str | None:
        return None

    def text(self, filename: str) -> str | None:
        return None


def test_an_exception_becomes_a_report_with_its_chain() -> None:
    size = 7
    try:
        try:
            torch.zeros(2, 3).view(size)
        except RuntimeError as error:
            raise ExceptionGroup("two", [ValueError("a"), OSError("b")]) from error
    except ExceptionGroup as error:
        live = live_error(error, NoCells())
    names = [(each.type, each.message) for each in live.report.chain()]
    assert [name for name, _ in names] == ["ExceptionGroup", "ValueError", "OSError", "RuntimeError"]
    assert names[-1][1] == "shape '[7]' is invalid for input of size 6"
    assert len(live.facts) == 4
    assert [(each.name, each.text) for each in live.facts[-1].values] == [("size", "7")]
    assert live.report.earlier[0].frames[-1].text == "torch.zeros(2, 3).view(size)"


class Broken(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_exception_without_words_is_no_error_of_ours() -> None:
    assert live_error(Broken(), NoCells()).report.message == ""


def test_the_error_of_a_worker_has_the_stack_of_the_worker() -> None:
    text = (
        "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "data.py", line 7, in __getitem__\n    raise ValueError("bad row")\nValueError: bad row\n'
    )
    try:
        raise ValueError(text)
    except ValueError as error:
        report = live_error(error, NoCells()).report
    assert (report.message, report.frames[-1].path, report.frames[-1].row) == ("bad row", "data.py", 7)


@pytest.mark.parametrize(
    ("text", "row", "kept"),
    [
        ("a = 1\nb = 2\nf(a)\nc = 3", 3, "a = 1\nb = 2"),
        ("a = 1\nfor b in a:\n    f(b)\nc = 3", 3, "a = 1"),
        ("a = 1\n@wrap\ndef f():\n    pass\n", 2, "a = 1"),
        ("f(1)", 1, ""),
        ("%matplotlib inline\nf(1)", 2, "%matplotlib inline"),
        ("%%time\na = 1\nf(a)", 3, "%%time\na = 1"),
        ("%%bash\nls", 1, ""),
        ("x = (", 1, ""),
    ],
)
def test_a_failed_cell_ends_before_its_failing_statement(text: str, row: int, kept: str) -> None:
    assert before_row(text, row) == kept


def test_the_session_ends_failed_cells_at_their_errors() -> None:
    typed = ["", "a = 1", "b = a\nb / 0\nc = 2", "d = 3"]
    shell = SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=typed))
    cells = SessionCells(shell)
    error: Any = None
    try:
        exec(compile(typed[2], "cell.py", "exec"), {"a": 1})
    except ZeroDivisionError as raised:
        error = raised.with_traceback(raised.__traceback__.tb_next if raised.__traceback__ else None)
    cells.record(SimpleNamespace(execution_count=2, success=False, error_in_exec=error))
    cells.record(SimpleNamespace(execution_count=3, success=True))
    sources = [cell["source"] for cell in ast.literal_eval(cells.notebook(3).decode())["cells"]]
    assert sources == ["a = 1", "b = a", "d = 3"]
    assert '"b = a\\nb / 0\\nc = 2"' in cells.notebook(2).decode()


def test_colors_become_html() -> None:
    shown = as_html("\x1b[1;31merror\x1b[0m: a < b\n\x1b[2mx\x1b[0m\n")
    assert shown.startswith("<pre style=")
    style = "font-weight: bold; color: var(--jp-error-color1, #c62828)"
    assert f'<span style="{style}">error</span>: a &lt; b\nx</pre>' in shown


def test_only_a_long_row_is_wrapped() -> None:
    """Carets below a row point at it as long as neither is wrapped."""
    rows = as_html(f"x = \x1b[31my\n    ^\x1b[0m\n{'long ' * 30}\n").split("\n")
    assert rows[0].startswith('<pre style="white-space: pre; overflow-x: auto;')
    red = "color: var(--jp-error-color1, #c62828)"
    assert rows[0].endswith(f'x = <span style="{red}">y</span>')
    assert rows[1] == f'<span style="{red}">    ^</span>'
    assert rows[2].startswith('<span style="white-space: pre-wrap')
