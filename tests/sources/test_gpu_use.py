"""Files and projects that use a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checking import Check

from shapefix.sources.gpu_use import GpuUse, uses_gpu
from shapefix.sources.text import read_source


@pytest.mark.parametrize(
    "code",
    [
        "model.cuda()",
        "model.to('cuda:1')",
        "model.to(device)",
        "x = x.to(self.device, non_blocking=True)",
        "model.to(args.gpu)",
        "model.to(device=rank)",
        "model.to(0)",
        "x = torch.zeros(3, device=device)",
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "device = torch.device('cpu')\nif fast:\n    device = torch.device(name)\nmodel.to(device)",
        "def train(model, device):\n    model.to(device)\ndevice = torch.device('cpu')",
        "model = AutoModel.from_pretrained(name, device_map='auto')",
        "from transformers import Trainer, AutoModel",
        "from transformers import Seq2SeqTrainingArguments as A",
        "from accelerate import Accelerator",
        "import pytorch_lightning as pl",
        "from lightning.fabric import Fabric",
        "from trl import SFTConfig",
        "from torch.nn.parallel import DistributedDataParallel as DDP",
        "torch.set_default_device('mps')",
    ],
)
def test_code_that_uses_a_gpu(code: str) -> None:
    assert uses_gpu(code)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "model.to(torch.float16)",
        "model.to('cpu')",
        "device = torch.device('cpu')\nmodel.to(device)",
        "x = torch.zeros(3, device=y.device)",
        "x = x.to(y.device)",
        "x = x.to(y)",
        "# model.cuda()",
        "'''Call model.cuda() and model.to(device) before.'''",
        "from transformers import AutoModel",
        "torch.zeros(3, device='cpu')",
        "model.cuda(",
        "acceleration = 9.81\ndevices_sold = 3",
    ],
)
def test_code_that_does_not(code: str) -> None:
    assert not uses_gpu(code)


@pytest.mark.parametrize("user", ["train.py", "scripts/train.py", "notebook.ipynb"])
def test_a_project_is_all_its_files(user: str, tree: Callable[..., Path]) -> None:
    folder = tree("model.py", "venv/lib.py", ".hidden/run.py", user)
    for name in ("venv/lib.py", ".hidden/run.py"):
        (folder / name).write_text("model.cuda()")
    assert GpuUse(str(folder), read_source).file() is None
    cell = '{"cells": [{"cell_type": "code", "source": ["model.cuda()"]}], "metadata": {}, "nbformat": 4}'
    (folder / user).write_text(cell if user.endswith("ipynb") else "model.cuda()")
    assert GpuUse(str(folder), read_source).file() == str(folder / user)


MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.table = torch.ones(4)

    def forward(self, x):
        return self.fc(x) * self.table + torch.zeros(x.size(0), 4)
"""


def test_modules_of_a_project_without_a_gpu_stay_on_the_cpu(check: Check) -> None:
    assert not check(MODEL, ["SF603"])
    assert not check(f"{MODEL}\nNet()(torch.zeros(3, 4))\n", ["SF602", "SF603"])
    assert len(check(f"{MODEL}\nnet = Net().cuda()\n", ["SF603"])) == 2
    (check.folder / "train.py").write_text("from model import Net\nnet = Net().to(device)\n")
    assert len(check(MODEL, ["SF603"])) == 2
