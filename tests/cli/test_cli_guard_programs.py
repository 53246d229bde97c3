"""Generated modules run the same with guards: equal results, and a guard fails only where torch does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from shapefix.guards.run import guarded

LAYERS = {
    "linear": "nn.Linear(4, 4)",
    "norm": "nn.LayerNorm(4)",
    "conv": "nn.Conv1d(3, 4, 1)",
    "batch": "nn.BatchNorm1d(3)",
    "groups": "nn.GroupNorm(1, 3)",
    "loss": "nn.BCEWithLogitsLoss()",
    "part": "nn.Sequential(nn.ReLU(), nn.Linear(4, 2))",
}
STEPS = [
    *(f"{{}} = self.{name}({{}})" for name in LAYERS if name != "loss"),
    "{} = torch.tanh({})",
    "{} = {}.contiguous()",
    "{} = {}.transpose(-1, -2)",
    "{} = self.linear(torch.cat([{}, x], dim=-1))",
    "{} = torch.cat([y, {}], dim=1)",
    "{} = torch.bmm({}, y)",
    "{} = self.loss({}, y)",
    "if {0}.dim() == 2:\n            {0} = {1}.unsqueeze(0)",
]
SIZES = [(4,), (3, 4), (2, 3, 4), (2, 4, 3), (1, 3, 3), (2, 2), (3,)]


def program(chosen: random.Random) -> str:
    """A module with a layer of each kind, and a forward of some random steps."""
    made = "\n".join(f"        self.{name} = {layer}" for name, layer in LAYERS.items())
    steps = (
        "        " + chosen.choice(STEPS).format(*chosen.choices("xy", k=2))
        for _ in range(chosen.randint(1, 4))
    )
    return (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{made}\n\n    def forward(self, x, y):\n" + "\n".join(steps) + "\n"
        "        return x, y\n"
    )


def outcome(net: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
    """The results of a module, or the exception that it raises."""
    try:
        return net(x.clone(), y.clone())
    except (RuntimeError, ValueError, IndexError, AssertionError) as error:
        return error


def compared(seed: int, path: Path) -> tuple[int, int]:
    """Run a program with and without guards on some inputs; count its guards, and their failures."""
    chosen = random.Random(seed)
    text = program(chosen)
    path.write_text(text, "utf-8")
    made = guarded(str(path), "", False)
    plain_names: dict[str, Any] = {"__name__": "model"}
    names: dict[str, Any] = {"__name__": "model"}
    exec(text, plain_names)
    exec(made.repair.new.text, names)
    plain, checked = plain_names["Net"](), names["Net"]()
    checked.load_state_dict(plain.state_dict())
    failed = 0
    for _ in range(8):
        x, y = (torch.rand(chosen.choice(SIZES)) for _ in range(2))
        expected, found = outcome(plain, x, y), outcome(checked, x, y)
        if isinstance(expected, tuple):
            assert isinstance(found, tuple), (
                f"{made.repair.new.text}\n{tuple(x.shape)} {tuple(y.shape)} {found}"
            )
            assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
        else:
            assert isinstance(found, Exception), made.repair.new.text
            failed += isinstance(found, AssertionError)
    return len(made.guards), failed


def test_generated_modules(tmp_path: Path) -> None:
    counts = [compared(seed, tmp_path / "model.py") for seed in range(8)]
    assert sum(number for number, _ in counts) > 3
    assert sum(failed for _, failed in counts) > 5


@pytest.mark.long
def test_many_generated_modules(tmp_path: Path) -> None:
    for seed in range(1000, 1600):
        compared(seed, tmp_path / "model.py")
