"""`shapefix.probe(model, batch)`: what it reports, and that it leaves the process as it was."""

from __future__ import annotations

import linecache
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shapefix
from shapefix.runtime.agent import loss_calls


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))
        self.head = nn.Linear(width, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x))
        return out if mask is None else out * mask


class Named(Net):
    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        logits = super().forward(x)
        return {"logits": logits, "loss": None if labels is None else F.cross_entropy(logits, labels)}


X, Y = torch.randn(8, 4), torch.randint(0, 3, (8,))


def by_targets(out: torch.Tensor, batch: Any) -> torch.Tensor:
    return F.cross_entropy(out, batch["y"] if isinstance(batch, Mapping) else batch[1])


def test_a_step_is_shown_with_sizes_loss_and_gradients() -> None:
    report = shapefix.probe(Net(), (X, Y), loss=by_targets)
    assert report.error is None
    assert report.findings == ()
    assert report.loss is not None
    text = str(report)
    assert "head Linear" in text
    assert "f32[8, 4] -> f32[8, 3]" in text
    assert "gradients for 6 of 8 parameters; without: unused.weight, unused.bias" in text
    assert text.endswith("Nothing found.\n")
    assert repr(report) == f"<shapefix report: nothing found, loss {report.loss:.4g}>"


@pytest.mark.parametrize(
    ("model", "batch", "loss", "known"),
    [
        (Net(), X, lambda out, batch: out.square().mean(), True),
        (Net(), {"x": X, "y": Y}, by_targets, True),
        (Net(), [X, Y], by_targets, True),
        (Named(), {"x": X, "labels": Y}, None, True),
        (Named(), {"x": X, "labels": Y}, "loss", True),
        (Named(), (X, Y), None, True),
        (nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), X, lambda out, batch: out.mean(), True),
        (Net(), X, None, False),
        (Named(), X, None, False),
    ],
    ids=["tensor", "mapping", "list", "output", "key", "tuple", "sequential", "no-loss", "none"],
)
def test_batches_and_losses(model: nn.Module, batch: Any, loss: Any, known: bool) -> None:
    report = shapefix.probe(model, batch, loss)
    assert report.error is None
    assert (report.loss is not None) is known
    assert ("loss none, forward only" in str(report)) is not known


def test_a_fault_is_a_finding_at_its_line_and_is_not_raised() -> None:
    report = shapefix.probe(Net(width=5), X)
    (found,) = report.findings
    assert found.code == "SF501"
    assert Path(found.span.path).name == "test_here.py"
    assert "`head` (Linear) expects in_features=5 but gets f32[8, 6]" in found.message
    assert isinstance(report.error, RuntimeError)
    assert "error[SF501]" in str(report)
    assert "error[SF501]" in report._repr_html_()
    assert not vars(report.error)


@pytest.mark.parametrize(
    ("model", "batch", "loss", "said"),
    [
        (Named(), {"x": X, "idx": Y}, None, "has no parameter `idx`"),
        (Net(), (X, Y.float()), by_targets, "Long"),
        (Net(), X, "loss", "no attribute 'loss'"),
        (Named(), X, "loss", "the loss is a NoneType, not a tensor"),
        (Named(), X, "lose", "lose"),
        (Net(), X, lambda out, batch: out.detach().sum(), "does not require grad"),
    ],
    ids=["key", "dtype", "attribute", "nothing", "no-key", "detached"],
)
def test_what_fails_is_told(model: nn.Module, batch: Any, loss: Any, said: str) -> None:
    report = shapefix.probe(model, batch, loss)
    assert report.error is not None
    assert said in str(report)


def test_what_raises_nothing_is_found_too() -> None:
    report = shapefix.probe(nn.Linear(4, 1), (X, torch.ones(8)), lambda out, batch: F.mse_loss(out, batch[1]))
    assert report.error is None
    assert [each.code for each in report.findings] == ["SF509"]


class Careless(Net):
    """Writes into its batch, its parameters and its buffers, and changes its mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("window", torch.zeros(2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        x.zero_()
        self.head.weight.data.clamp_(-0.01, 0.01)
        self.calls += 1
        self.window = torch.ones(3)
        self.body.eval()
        self.eval()
        random.random(), np.random.rand(), torch.rand(1)
        return super().forward(x)


@pytest.mark.parametrize("fails", [False, True], ids=["passes", "fails"])
def test_the_process_is_left_as_it_was(fails: bool) -> None:
    model = Careless()
    model(torch.randn(8, 4)).sum().backward()  # gradients of the user's own
    model.train()
    batch = torch.ones(8, 4)
    graph = model.head(torch.ones(2, 6)).sum()
    owners: list[tuple[Any, str]] = [(F, name) for name in loss_calls.NAMES]
    owners += [(nn.Module, "__call__"), (nn.Module, "__init__"), (torch.autograd, "backward")]

    def state() -> list[Any]:
        return [
            *(getattr(owner, name) for owner, name in owners),
            {name: each.clone() for name, each in model.state_dict().items()},
            {
                name: (each.grad, None if each.grad is None else each.grad.clone())
                for name, each in grads.items()
            },
            [each.training for each in model.modules()],
            dict(model.named_buffers()),
            torch.get_rng_state(),
            random.getstate(),
            np.random.get_state(legacy=False)["state"]["key"],
            batch.clone(),
            torch.is_grad_enabled(),
        ]

    grads = dict(model.named_parameters())

    def wrong(out: torch.Tensor, batch: Any) -> torch.Tensor:
        raise ValueError("no")

    before = state()
    report = shapefix.probe(model, batch, wrong if fails else lambda out, batch: out.sum())
    after = state()
    assert (report.error is not None) is fails
    for one, two in zip(before, after, strict=True):
        assert same(one, two)
    graph.backward()  # the graphs of the user still hold what they held


def same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(two, torch.Tensor) and torch.equal(one, two)
    if isinstance(one, np.ndarray):
        return bool((one == two).all())
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


def test_a_lazy_model_stays_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    report = shapefix.probe(model, X, lambda out, batch: out.sum())
    assert report.error is None
    assert isinstance(model[0], nn.LazyLinear)


def test_a_table_for_notebooks_shows_each_call_and_escapes() -> None:
    html = shapefix.probe(Net(), X)._repr_html_()
    assert html.startswith("<div><table>")
    assert html.count("<tr>") == 1 + 6
    assert "Sequential" in html
    assert "-&gt;" not in html.partition("</table>")[0]
    report = shapefix.probe(Net(), X, lambda out, batch: (_ for _ in ()).throw(ValueError("<b>bold</b>")))
    assert "&lt;b&gt;bold&lt;/b&gt;" in report._repr_html_()


@pytest.mark.parametrize("cell", ["<ipython-input-3-0a1b2c3d>", "/tmp/ipykernel_7/1234.py"])
def test_the_line_of_a_cell_is_shown(cell: str) -> None:
    source = "import shapefix, torch\nmodel = torch.nn.Linear(4, 2)\n"
    source += "report = shapefix.probe(model, torch.ones(3, 5))\n"
    linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
    names: dict[str, Any] = {}
    exec(compile(source, cell, "exec"), names)
    assert f"--> {cell}:3:10" in str(names["report"])
    assert "3 | report = shapefix.probe(model, torch.ones(3, 5))" in str(names["report"])


def test_something_else_than_a_model_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expects a torch\.nn\.Module and a batch, not str"):
        shapefix.probe("model", X)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_shapefix_is_imported_in_no_time_and_without_torch() -> None:
    code = "import sys, shapefix; print({'torch', 'libcst', 'click', 'rich'} & set(sys.modules))"
    assert run(code) == "set()\n"


@pytest.mark.slow
def test_it_is_the_same_function_when_the_package_of_its_name_is_loaded() -> None:
    code = """
import shapefix.runtime.run, shapefix, torch
print(shapefix.probe(torch.nn.Linear(4, 2), torch.ones(3, 4)).error)
from shapefix import probe
print(probe(torch.nn.Linear(4, 2), torch.ones(3, 4), lambda out, batch: out.sum()).loss is not None)
"""
    assert run(code) == "None\nTrue\n"
