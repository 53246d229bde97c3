"""The rows of models: repeated sequences are folded; models of one class have their variables."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import fork_server
import pytest
from probing import probed

from shapefix.runtime import agent_process
from shapefix.runtime.report.module_tree import _repetition

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
