"""Loaders whose workers would not start, and calls around DistributedDataParallel; and both done right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from probing import probed, row

pytestmark = pytest.mark.slow

HEAD = """
import threading
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, held=None):
        self.held = held
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.ones(3)

def stacked(rows):
    return torch.stack(rows)

def read(loader):
    for batch in loader:  # read
        torch.nn.Linear(3, 1)(batch)
"""

REFUSED = {
    "a lambda": (
        "DataLoader(Rows(), 4, num_workers=1, collate_fn=lambda rows: torch.stack(rows)",
        "collate_fn",
    ),
    "a local function": ("DataLoader(Rows(), 4, num_workers=2, collate_fn=local", "collate_fn"),
    "a lock in the dataset": ("DataLoader(Rows(threading.Lock()), 4, num_workers=1", "dataset"),
}


def script(loader: str, method: str = "spawn") -> str:
    return f"""{HEAD}
def main():
    def local(rows):
        return torch.stack(rows)
    read({loader}, multiprocessing_context="{method}"))

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "a lambda" else pytest.mark.long) for name in REFUSED]
)
def test_what_a_new_interpreter_cannot_get_is_named(name: str, tmp_path: Path) -> None:
    loader, part = REFUSED[name]
    text = script(loader)
    (found,) = probed(tmp_path, text).found
    assert (found.name, found.span.row) == ("unstartable-workers", row(text, "read"))
    assert f"each worker is a new interpreter (spawn) and cannot get `{part}`: " in found.message
    assert " at 0x" not in found.message


def test_a_forked_worker_gets_everything(tmp_path: Path) -> None:
    loader, _ = REFUSED["a lambda"]
    assert probed(tmp_path, script(loader, "fork")).found == []


def test_functions_and_data_of_the_module_reach_the_workers(tmp_path: Path) -> None:
    loader = "DataLoader(Rows(torch.ones(9)), 4, num_workers=1, collate_fn=stacked"
    assert probed(tmp_path, script(loader)).found == []


def test_a_script_that_workers_would_run_again_is_named(tmp_path: Path) -> None:
    text = HEAD + 'read(DataLoader(Rows(), 4, num_workers=1, multiprocessing_context="spawn"))\n'
    (found,) = probed(tmp_path, text).found
    assert (found.name, found.span.row) == ("unstartable-workers", row(text, "read"))
    assert "would run this script again: RuntimeError" in found.message


@pytest.mark.long
def test_python_itself_refuses_these(tmp_path: Path) -> None:
    """Each script above raises without the probe, except for the right ones."""
    (tmp_path / "lambda.py").write_text(script(REFUSED["a lambda"][0]))
    (tmp_path / "again.py").write_text(
        HEAD + 'read(DataLoader(Rows(), 4, num_workers=1, multiprocessing_context="spawn"))\n'
    )
    for name, message in {"lambda": "pickle", "again": "bootstrapping phase"}.items():
        ran = subprocess.run(
            [sys.executable, f"{name}.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode
        assert message in ran.stderr


WRAPPED = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in torch.randn(5, 8, 4):
    loss = {call}.pow(2).mean()  # call
    optimizer.zero_grad()
    loss.backward()
    {more}
    optimizer.step()
    with torch.no_grad():
        model.module(x)
"""


def test_a_training_call_around_the_wrapper_is_named(tmp_path: Path) -> None:
    text = WRAPPED.format(call="model.module(x)", more="")
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.span.row) == ("SF613", row(text, "call"))


@pytest.mark.parametrize(
    ("call", "more"),
    [
        pytest.param("model(x)", "", marks=pytest.mark.long),
        ("(model(x) + model.module(x))", ""),
        ("model.module(x)", "[dist.all_reduce(each.grad) for each in model.parameters()]"),
    ],
)
def test_other_calls_are_right(tmp_path: Path, call: str, more: str) -> None:
    assert probed(tmp_path, WRAPPED.format(call=call, more=more)).found == []
