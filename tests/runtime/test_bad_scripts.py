"""Scripts that do what no probe would like: it tells how far they came, and nothing is lost or runs on."""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import dedent

import pytest
from probing import Probed, probed, probed_file, row, runs

from shapefix.cli.exit_codes import CLEAN, FAILED, code_of
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.protocol import EndLine

pytestmark = pytest.mark.slow

MODEL = """
import os, shutil, sys, threading, time
import torch
print("process", os.getpid(), flush=True)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
"""


def code(ran: Probed) -> int:
    return code_of(ran.run, collect_findings(ran.run.observed))


def left_as_it_was(ran: Probed, before: dict[str, bytes]) -> None:
    """Nothing of the script runs any more, and its folder is as it was."""
    processes = [
        int(line.split()[1]) for line in ran.run.process.output.splitlines() if line[:8] == "process "
    ]
    assert processes
    until = time.monotonic() + 10
    while any(map(runs, processes)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(runs, processes))
    assert contents(ran.folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    ("script", "mark"),
    [
        (MODEL + "time.sleep(1e6)  # here", "here"),
        (MODEL + "lock = threading.Lock()\nlock.acquire()\nlock.acquire()  # here", "here"),
        (MODEL + "threading.Event().wait()  # here", "here"),
        (MODEL + "import subprocess\nsubprocess.run(['sleep', '1000'])  # here", "here"),
    ],
    ids=["sleep", "lock", "event", "program"],
)
def test_whoever_waits_for_ever_is_ended_at_the_line_where_it_waits(
    tmp_path: Path, script: str, mark: str
) -> None:
    (tmp_path / "train.py").write_text(script)
    before = contents(tmp_path)
    ran = probed_file(tmp_path, "train.py", timeout=5.0)
    assert f"stopped at the time limit of 5 s at train.py:{row(script, mark)}" in ran.ending
    assert code(ran) == FAILED
    left_as_it_was(ran, before)


def test_a_loop_that_catches_everything_is_ended_at_the_time_limit(tmp_path: Path) -> None:
    script = (
        MODEL + "while True:\n    try:\n        time.sleep(0.01)\n    except BaseException:\n        pass"
    )
    ran = probed(tmp_path, script, timeout=5.0)
    assert "stopped at the time limit of 5 s at train.py:" in ran.ending
    assert code(ran) == FAILED


@pytest.mark.parametrize(
    "deed",
    [
        "here = os.path.dirname(os.path.abspath(__file__)); shutil.rmtree(here); os.makedirs(here)",
        "os.remove(__file__)",
        "os.makedirs('elsewhere'); os.chdir('elsewhere')",
        "sys.stdout = open('log.txt', 'w'); sys.stderr = sys.stdout",
        "sys.stdout = sys.stderr = None",
        "sys.stdout.close()",
        "os.close(1); os.close(2)",
        "sys.argv.clear(); sys.path.clear(); os.environ.clear()",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.setrecursionlimit(10**6)",
    ],
    ids=["folder", "itself", "cwd", "stdout", "no-stdout", "closed", "descriptors", "environment", "signals"],
)
def test_what_a_script_does_to_its_surroundings_is_no_hindrance(tmp_path: Path, deed: str) -> None:
    script = MODEL + deed + "\ntorch.save(model, 'model.pt')\nstep()\nopen('done', 'w').write('done')\n"
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "data.txt").write_text("rows")
    before = contents(tmp_path)
    ran = probed_file(tmp_path, "train.py")
    assert ran.run.observed.steps == 1, ran.ending
    assert code(ran) == CLEAN, (ran.ending, ran.found)
    left_as_it_was(ran, before)


def test_a_script_in_another_encoding_runs_and_one_in_none_is_told_its_line(tmp_path: Path) -> None:
    source = "# -*- coding: latin-1 -*-\nname = 'Größe'\n" + MODEL + "step()\nassert len(name) == 5\n"
    (tmp_path / "train.py").write_bytes(source.encode("latin-1"))
    assert code(probed_file(tmp_path, "train.py")) == CLEAN
    (tmp_path / "train.py").write_bytes("x = 1\nname = 'Größe'\n".encode("latin-1"))
    ran = probed_file(tmp_path, "train.py")
    assert code(ran) == FAILED
    (found,) = ran.found
    assert (found.name, found.span.row) == ("SyntaxError", 2)


def test_workers_that_are_spawned_do_their_work(tmp_path: Path) -> None:
    script = """
    import multiprocessing
    import os
    import torch

    def square(number):
        print("process", os.getpid(), flush=True)
        return number ** 2

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            rows = torch.tensor(pool.map(square, range(8)), dtype=torch.float32)
        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        while True:
            model(rows).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    """
    (tmp_path / "train.py").write_text(dedent(script))
    before = contents(tmp_path)
    ran = probed_file(tmp_path, "train.py")
    assert ran.run.observed.steps == 1
    assert code(ran) == CLEAN
    left_as_it_was(ran, before)


@pytest.mark.parametrize(
    "script",
    [
        "from argparse import ArgumentParser\np = ArgumentParser()\np.add_argument('data')\np.parse_args()",
        "import click\n@click.command()\n@click.argument('data')\ndef main(data): pass\nmain()",
    ],
    ids=["argparse", "click"],
)
def test_who_needs_arguments_is_told_where_they_go(tmp_path: Path, script: str) -> None:
    ran = probed(tmp_path, script)
    assert "sys.exit(2) at train.py:" in ran.ending
    assert "Put the script's own arguments after `--`: `shapefix probe train.py -- --epochs 3`" in ran.ending
    assert "data" in ran.text.lower().partition("last output")[2]
    assert code(ran) == FAILED


def test_a_child_of_a_fork_that_ends_as_the_script_does_tells_nothing(tmp_path: Path) -> None:
    script = (
        MODEL
        + "if os.fork() == 0:\n    print('process', os.getpid(), flush=True)\nelse:\n    os.wait()\nstep()"
    )
    (tmp_path / "train.py").write_text(script)
    before = contents(tmp_path)
    ran = probed_file(tmp_path, "train.py")
    assert ran.run.observed.steps == 1
    assert len(list(ran.run.observed.of(EndLine))) == 1
    assert code(ran) == CLEAN
    left_as_it_was(ran, before)


@pytest.mark.parametrize("make", ["torch.jit.script(Model())", "torch.jit.trace(Model(), torch.ones(2, 4))"])
def test_scripted_and_traced_modules_run_as_others_do(tmp_path: Path, make: str) -> None:
    script = f"""
        import torch
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 2)
            def forward(self, x: torch.Tensor):
                return self.linear(x)
        model = {make}
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(x=torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert code(ran) == CLEAN
    model = ran.run.observed.modules[-1]
    assert model.out is not None
    assert model.out["size"] == [2, 2]
