"""The rows of models: repeated sequences are folded; models of one class have their variables."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import termios
import time
from pathlib import Path
from textwrap import dedent

import fork_server
import pytest
from probing import ROOT, probed

from shapefix.runtime import agent_process
from shapefix.runtime.report.module_tree import _repetition
from shapefix.runtime.report.text_report import forward_lines, report_lines

pytestmark = pytest.mark.slow

SEQUENCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(5))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + norm(layer(x))
        return self.head(x)

Net()(torch.randn(3, 8))
"""
TWO_MODELS = """
import torch
from torch import nn

class Agent:
    def __init__(self):
        self.actor, self.critic = (nn.Sequential(nn.Linear(4, n)) for n in (3, 1))
        parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.SGD(parameters, 0.1)

    def step(self, x):
        loss = self.actor(x).mean() + self.critic(x).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

Agent().step(torch.randn(6, 4))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", (1, 1)),
        ("aab", (1, 2)),
        ("ababab", (2, 3)),
        ("ababcd", (2, 2)),
        ("aaaa", (1, 4)),
        ("a", (1, 1)),
    ],
)
def test_the_repetition_at_the_start_of_a_sequence(text: str, expected: tuple[int, int]) -> None:
    assert _repetition(list(text), 0) == expected


def test_a_repeated_sequence_of_modules_is_folded(tmp_path: Path) -> None:
    text = probed(tmp_path, SEQUENCE).text
    rows = [row.split("  ")[2] for row in text.splitlines() if row.startswith("    ")]
    assert [row.strip() for row in rows] == [
        "layers.0…4 5 × Linear",
        "norms.0…4 5 × LayerNorm",
        "head Linear",
    ]


def test_models_of_one_class_have_the_names_of_their_variables(tmp_path: Path) -> None:
    text = probed(tmp_path, TWO_MODELS).text
    assert "Sequential `self.actor` with gradient" in text
    assert "Sequential `self.critic` with gradient" in text
    assert "largest: actor.0 0." in text or "largest: critic.0 " in text


def test_a_transform_without_parameters_is_not_a_model(tmp_path: Path) -> None:
    script = (
        "import torch\nfrom torch import nn\nx = nn.Flatten()(torch.randn(2, 3, 4))\nnn.Linear(12, 1)(x)\n"
    )
    text = probed(tmp_path, script).text
    assert "Linear with gradient" in text
    assert "Flatten with gradient" not in text


def test_a_script_keeps_a_terminal_as_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = pty.openpty()
    before = os.dup(0)
    os.dup2(other, 0)
    try:
        script = (
            "import os, torch\nprint(os.isatty(0))\ntry:\n    input()\nexcept EOFError:\n    print('end')\n"
        )
        (tmp_path / "train.py").write_text(script)
        monkeypatch.chdir(tmp_path)
        result = agent_process.run_agent(fork_server.interpreter(), "train.py", (), tmp_path / "run", 1, 60)
    finally:
        os.dup2(before, 0)
        for each in (own, other, before):
            os.close(each)
    assert result.output.split() == ["True", "end"]


SLOW = """
    import time
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        time.sleep(3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def in_terminal(folder: Path, *options: str) -> list[tuple[float, str]]:
    """The lines of `probe` in a terminal, each with the second in which it came."""
    own, other = pty.openpty()
    termios.tcsetwinsize(other, (50, 120))
    command = [sys.executable, "-m", "shapefix", "probe", "--color", "never", *options, "train.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "VIRTUAL_ENV": fork_server.virtual_environment()}
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=other, stderr=subprocess.DEVNULL)
    os.close(other)
    lines: list[tuple[float, str]] = []
    rest = b""
    with contextlib.suppress(OSError):  # the end of a terminal, on Linux
        while chunk := os.read(own, 1 << 16):
            *done, rest = (rest + chunk).split(b"\n")
            lines += [(time.monotonic(), each.decode().rstrip()) for each in done]
    os.close(own)
    assert child.wait(60) == 0
    return lines


def test_the_tree_is_printed_while_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(SLOW))
    lines = in_terminal(tmp_path)
    text = [each for _, each in lines]
    seconds = {each.split()[0]: at for at, each in lines if each}
    assert text[0].startswith("train.py: running (Python ")
    assert seconds["loss"] - seconds["Sequential"] > 2
    assert text.count("Sequential with gradient, called at train.py:10") == 1
    made = next(number for number, each in enumerate(text) if each.startswith("train.py: 1 training step"))
    assert text[made - 1] == ""
    assert text[made + 1].startswith("loss ")
    (tmp_path / "train.py").write_text(dedent(SLOW.replace("time.sleep(3)", "time.sleep(0)")))
    assert [each for _, each in in_terminal(tmp_path, "--quiet")] == ["Nothing found in 1 training step."]


def test_a_report_repeats_only_rows_that_have_changed(tmp_path: Path) -> None:
    ran = probed(tmp_path, SLOW.replace("time.sleep(3)", "time.sleep(0)"))
    every = list(report_lines(ran.run, str, 120))
    printed = list(forward_lines("train.py", ran.run.observed, str, 120))
    rest = list(report_lines(ran.run, str, 120, printed))
    assert rest[:2] == [[], every[0]]
    assert [*printed[2:], [], *rest[2:]] == every[2:]
    changed = [*printed[:-1], [("another model", "name")]]
    assert list(report_lines(ran.run, str, 120, changed)) == every


MODELS_IN_A_LIST = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def forward(self, x):
            return self.layer(x)

    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    nets = [Net() for _ in range(12)]
    optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in nets]
    for number, net in enumerate(nets):
        for x, y in DataLoader(data, batch_size=8):
            optimizers[number].zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizers[number].step()
"""


def test_equal_calls_of_models_in_a_list_are_one(tmp_path: Path) -> None:
    ran = probed(tmp_path, MODELS_IN_A_LIST)
    text = ran.text
    assert "train.py: 12 training steps" in text
    assert "Net with gradient, called at train.py:19, 12 equal calls" in text
    assert text.count("layer Linear") == 1
    assert text.count("gradients for 2 of 2 parameters of Net") == 8
    assert "… and gradients of 4 more optimizers" in text


SLOW_TRAINING_DATA = """
    import time
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8)
    other = DataLoader(TensorDataset(torch.randn(32, 8), torch.randn(32, 1)), batch_size=8)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torch.no_grad()
    def evaluate(loader):
        model.eval()
        total = 0
        for x, y in loader:
            total += len(model(x))
        model.train()
        return 1 / total

    for epoch in range(50):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            time.sleep(3.2)
        print("scores", evaluate(loader), evaluate(other), flush=True)
"""


def test_an_evaluation_on_the_training_data_gets_batches(tmp_path: Path) -> None:
    ran = probed(tmp_path, SLOW_TRAINING_DATA)
    assert ran.found == []
    assert ran._told.early_stop_artifact is None
    assert ran.run.process.output.split()[0] == "scores"
    assert ran.run.observed.steps == 1
