"""Files and projects that use a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from checking import Check

from shapefix.sources.gpu_use import GpuUse, is_script, uses_gpu
from shapefix.sources.project import Project
from shapefix.sources.text import read_source


@pytest.mark.parametrize(
    "code",
    [
        "model.cuda()",
        "model.to('cuda:1')",
        "model.to(device)",
        "model.to('cuda' if torch.cuda.is_available() else 'cpu')",
        "x = x.to(self.device, non_blocking=True)",
        "model.to(args.gpu)",
        "model.to(device=rank)",
        "model.to(0)",
        "x = torch.zeros(3, device=device)",
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nmodel.to(device)",
        "with torch.cuda.amp.autocast():\n    loss = model(x)",
        "x = torch.cuda.FloatTensor(3)",
        "torch.cuda.set_device(rank)",
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
        "import lightning as L\nL.Trainer(accelerator='gpu')",
        "import lightning as L\nL.Trainer(accelerator='cpu')\nL.Trainer(max_epochs=2)",
        "import lightning as L\nL.Trainer(accelerator='cpu')\nmodel.cuda()",
        "from transformers import Trainer, TrainingArguments\nTrainer(model, TrainingArguments('out'))",
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
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "if torch.cuda.is_available():\n    torch.cuda.manual_seed_all(0)",
        "torch.set_default_device('cpu')",
        "model.cuda(",
        "acceleration = 9.81\ndevices_sold = 3",
        "import lightning.pytorch as pl\npl.Trainer(max_epochs=1, accelerator='cpu', devices=1)",
        "from pytorch_lightning import Trainer\nTrainer(accelerator='cpu')",
        "from transformers import Trainer, TrainingArguments\n"
        "Trainer(model=model, args=TrainingArguments('out', use_cpu=True))",
    ],
)
def test_code_that_does_not(code: str) -> None:
    assert not uses_gpu(code)


CELL = '{"cell_type": "code", "source": ["import torch\\n", "from model import Net\\n", "Net().cuda()"]}'
NOTEBOOK = f'{{"cells": [{CELL}], "metadata": {{}}, "nbformat": 4}}'
IMPORTER = "import torch\nfrom model import Net\nNet().cuda()\n"


def user(folder: Path, name: str = "model.py", read_with: tuple[str, ...] = ()) -> str | None:
    """The file that makes the one of this name use a GPU, as a name in the folder."""
    path = folder / name
    found = GpuUse(Project(str(folder)), read_source).user(str(path), path.read_text(), read_with)
    return None if found is None else str(Path(found).relative_to(folder))


@pytest.mark.parametrize("name", ["train.py", "scripts/train.py", "notebook.ipynb"])
def test_files_that_import_it_use_the_gpu(name: str, tree: Callable[..., Path]) -> None:
    folder = tree("model.py", "venv/lib.py", ".hidden/run.py", name)
    for other in ("venv/lib.py", ".hidden/run.py"):
        (folder / other).write_text(IMPORTER)
    assert user(folder) is None
    (folder / name).write_text(NOTEBOOK if name.endswith("ipynb") else IMPORTER)
    assert user(folder) == name


def test_other_files_of_a_project_count_only_where_a_file_may_be_loaded_by_name(
    tree: Callable[..., Path],
) -> None:
    folder = tree("model.py", "other.py", "evaluate.py")
    (folder / "other.py").write_text("import torch\nnet.cuda()\n")
    assert user(folder) == "other.py"
    (folder / "model.py").write_text("import torch\nfor _ in range(3):\n    print(torch.zeros(3))\n")
    assert user(folder) is None
    (folder / "model.py").write_text("")
    (folder / "evaluate.py").write_text("import torch\nimport model\n")
    assert user(folder) is None
    assert user(folder, read_with=(str(folder / "other.py"),)) == "other.py"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print(1)", True),
        ("if __name__ == '__main__':\n    main()", True),
        ("for x in y:\n    x()", True),
        ("import a\nX = f()\nclass A:\n    print(1)\ndef g():\n    h()", False),
        ("if fast:\n    X = 1", False),
        ("def (", False),
    ],
)
def test_scripts(text: str, expected: bool) -> None:
    assert is_script(text) is expected


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
