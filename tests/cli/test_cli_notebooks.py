"""`check`, `fix` and `shapes` on notebooks: places are cells, and a repair changes its cell only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Project, project_in_a_folder, shapefix  # noqa: F401

IMPORTS = "%matplotlib inline\nimport torch\nimport torch.nn as nn\nfrom model import Net"
MODEL = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def __init__(self, size):\n"
MODEL += "        super().__init__()\n        self.fc = nn.Linear(size, 4)\n\n"
MODEL += "    def forward(self, x):\n        return self.fc(x)\n"
VIEW = "x = torch.randn(8, 3, 12).transpose(0, 1)\ny = x.view(-1)"


def notebook(path: Path, *cells: str, language: str = "python") -> bytes:
    """Write a notebook with a text cell before the code cells, and return its content."""
    code = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(keepends=True)}
        for cell in cells
    ]
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# Training"]}
    content = {"cells": [text, *code], "metadata": {"kernelspec": {"language": language}}, "nbformat": 4}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path.read_bytes()


def test_cells_are_one_program_and_import_the_project(project: Project) -> None:
    folder = project(model=MODEL)
    notebook(folder / "train.ipynb", IMPORTS, "!pip install x\nnet = Net(10)", "net(torch.zeros(2, 12))")
    ran = shapefix("check", "--output-format", "concise")
    assert ran.out.splitlines()[0] == (
        "model.py:10:16: SF501 `self.fc` expects 10 features but gets 12; "
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied"
    )
    full = shapefix("check").out
    assert "::: train.ipynb:cell 3:2:11" in full
    assert "reached from net(torch.zeros(2, 12)) at train.ipynb:cell 4:1" in full


def test_findings_have_cells_in_every_format(project: Project) -> None:
    folder = project()
    notebook(folder / "train.ipynb", IMPORTS.replace("from model import Net", ""), VIEW)
    assert shapefix("check", "--output-format", "concise").out.startswith(
        "train.ipynb:cell 3:2:5: SF101 [*] `x.view(-1)` fails"
    )
    (found,) = json.loads(shapefix("check", "--output-format", "json").out)
    assert (found["filename"], found["cell"], found["location"]["row"]) == (f"{folder}/train.ipynb", 3, 2)
    assert found["cause"]["cell"] == 3
    assert "::cell 3, row 2: `x.view(-1)`" in shapefix("check", "--output-format", "github").out
    assert "2 | y = x.view(-1)" in shapefix("check", "train.ipynb").out
    assert "train.ipynb:cell 3:2:5 SF101" in shapefix("check", "--output-format", "agent").out
    (result,) = json.loads(shapefix("check", "--output-format", "sarif").out)["runs"][0]["results"]
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "train.ipynb:cell 3:2:5"
    (entry,) = json.loads(shapefix("check", "--output-format", "gitlab").out)
    assert entry["location"]["path"] == "train.ipynb"


def test_lines_in_messages_are_those_of_cells(project: Project) -> None:
    notebook(
        project() / "train.ipynb",
        "import torch\nfrom torch import nn",
        "# Two classes\nloss = nn.CrossEntropyLoss()",
        "model = nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))",
        "loss(model(torch.rand(3, 4)), torch.zeros(3, dtype=torch.long)).backward()",
    )
    (found,) = json.loads(shapefix("check", "--output-format", "json").out)
    assert "`CrossEntropyLoss` (line 1 of cell 5) expects scores" in found["message"]


def test_a_cause_in_a_notebook_is_in_a_cell_for_other_files_too(project: Project) -> None:
    old = "import pytorch_lightning as pl\ntrainer = pl.Trainer()\ntrainer.fit(m, train_dataloader=l)"
    folder = project(later=f"m = l = None\n{old}\n")
    notebook(folder / "first.ipynb", "m = l = None", old)
    found = json.loads(shapefix("check", "--output-format", "json").out)
    assert [each["cause"].get("cell") for each in found] == [3, 3]
    assert {each["cause"]["location"]["row"] for each in found} == {3}


@pytest.mark.parametrize(
    ("use", "codes"), [("net = Net.load_from_checkpoint('x')", []), ("pl.Trainer().fit(Net())", ["SF412"])]
)
def test_hooks_of_lightning_matter_to_a_trainer(project: Project, use: str, codes: list[str]) -> None:
    hook = "class Net(pl.LightningModule):\n    def validation_epoch_end(self, outputs):\n        pass"
    notebook(project() / "use.ipynb", "import lightning as pl", hook, use)
    found = json.loads(shapefix("check", "--output-format", "json").out)
    assert [each["code"] for each in found if each["code"]] == codes


def test_fix_changes_the_cell_and_no_other_byte(project: Project) -> None:
    folder = project()
    before = notebook(folder / "train.ipynb", IMPORTS.replace("from model import Net", ""), VIEW)
    shown = shapefix("fix")
    assert shown.out.splitlines()[:2] == ["--- train.ipynb:cell 3", "+++ train.ipynb:cell 3"]
    assert "-y = x.view(-1)\n+y = x.reshape(-1)\n" in shown.out
    assert (folder / "train.ipynb").read_bytes() == before
    applied = shapefix("fix", "--apply")
    assert applied.code == 0
    assert "train.ipynb: repaired 1 x SF101\n  cell 3\n    2: y = x.reshape(-1)\n" in applied.out
    assert (folder / "train.ipynb").read_bytes() == before.replace(b"x.view(-1)", b"x.reshape(-1)")


def test_a_broken_cell_costs_that_cell(project: Project) -> None:
    folder = project()
    before = notebook(folder / "train.ipynb", "import torch\nprint 'x'", "import torch\n" + VIEW)
    ran = shapefix("check", "--output-format", "concise")
    assert ran.code == 1
    assert "train.ipynb:cell 3:3:5: SF101" in ran.out
    assert "note: train.ipynb:cell 2:2:1: cannot be parsed: Missing parentheses" in ran.err
    assert shapefix("fix", "--apply").code == 0
    assert (folder / "train.ipynb").read_bytes() == before.replace(b"x.view(-1)", b"x.reshape(-1)")


@pytest.mark.parametrize("comment", ["# noqa: SF101", "# shapefix: ignore[view-across-stride-gap]"])
def test_comments_in_a_cell_suppress_its_findings(project: Project, comment: str) -> None:
    notebook(project() / "train.ipynb", "import torch", f"{VIEW}  {comment}")
    assert shapefix("check").out == "All checks passed.\n"


def test_a_notebook_in_another_language_is_skipped(project: Project) -> None:
    notebook(project() / "train.ipynb", "library(torch)", language="R")
    ran = shapefix("check")
    assert (ran.code, ran.out) == (0, "Checked 1 file; none uses torch.\n")


def test_shapes_are_those_of_a_cell(project: Project) -> None:
    definition = MODEL.replace("import torch.nn as nn\n\n\n", "")
    calls = "net = Net(12)\nnet(torch.zeros(2, 12))"
    notebook(project() / "train.ipynb", "import torch\nfrom torch import nn", definition, calls)
    lines = shapefix("shapes", "train.ipynb").out.splitlines()
    assert lines[0] == "Net.forward (train.ipynb:cell 3:6), called at train.ipynb:cell 4:2"
    assert lines[1].split() == ["6", "|", "def", "forward(self,", "x):", "x", "f32[2,", "12]"]


SETUP = """\
import torch
from torch import nn

projection = nn.Linear(271, width)


def go(x):
    return projection(x)


if __name__ == "__main__":
    data = torch.zeros(8, 4000)
"""


@pytest.mark.parametrize(
    "row",
    [
        "exec(open('setup.py').read())",
        'exec(open("./setup.py").read(), globals())',
        "exec(compile(open('setup.py').read(), 'setup.py', 'exec'))",
        "from pathlib import Path\nexec(Path('setup.py').read_text())",
        "%run -i setup.py",
        "if True:\n    %run setup.py",
    ],
)
def test_an_executed_file_shares_the_names_of_the_notebook(project: Project, row: str) -> None:
    cells = ("import torch\nwidth = 256", row, "go(data)")
    notebook(project(setup=SETUP) / "train.ipynb", *cells)
    (line,) = shapefix("check", "train.ipynb", "--output-format", "concise").out.splitlines()
    assert line.startswith("setup.py:8:12: SF501 `projection` expects 271 features but gets 4000")
    (finding,) = json.loads(shapefix("check", "train.ipynb", "--output-format", "json").out)
    calls = [
        (each.get("cell"), each["location"]["row"]) for each in finding["evidence"] if each["role"] == "call"
    ]
    assert calls == [(4, 1)]
    if "%" not in row:
        with pytest.raises(RuntimeError, match=r"\(8x4000 and 271x256\)"):
            exec("\n".join(cells), {"__name__": "__main__"})


@pytest.mark.parametrize(
    "row",
    [
        "exec(open('other.py').read())",
        "exec(text)",
        "exec(open('../setup.py').read())",
        "%run setup.py --fast",
    ],
)
def test_other_executed_code_is_unknown(project: Project, row: str) -> None:
    notebook(project(setup=SETUP) / "train.ipynb", "import torch\nwidth = 256\ntext = '1'", row, "go(data)")
    assert shapefix("check").out == "All checks passed.\n"


def test_a_file_that_executes_itself_is_run_once(project: Project) -> None:
    folder = project(setup=SETUP + "exec(open('setup.py').read())\n")
    notebook(folder / "train.ipynb", "import torch\nwidth = 256", "%run setup.py", "go(data)")
    ran = shapefix("check", "train.ipynb", "--output-format", "concise")
    assert len(ran.out.splitlines()) == 1


DATABRICKS = """\
# Databricks notebook source
# MAGIC %md
# MAGIC # Training

# COMMAND ----------

# MAGIC %pip install torch
import torch

# COMMAND ----------

path = dbutils.widgets.get("path")
x = torch.randn(8, 3, 12).transpose(0, 1)

# COMMAND ----------

display(x.view(-1))
"""


def test_a_databricks_source_is_one_program(project: Project) -> None:
    project(train=DATABRICKS)
    (line,) = shapefix("check", "--output-format", "concise").out.splitlines()
    assert line.startswith("train.py:17:9: SF101 [*] `x.view(-1)` fails")


COLAB = (
    "!pip install -q transformers\n%cd /content\nfrom google.colab import drive, files\n"
    "drive.mount('/content/drive')\nuploaded = files.upload()",
    "%%capture\nimport torch, os\nos.environ['KAGGLE'] = '1'\nbase = '/kaggle/input/digits'",
    "%%writefile model.py\nclass Net(",
    "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu') #@param\n" + VIEW,
    "files.download('model.pt')",
)


def test_idioms_of_colab_and_kaggle_are_known(project: Project) -> None:
    notebook(project() / "train.ipynb", *COLAB)
    ran = shapefix("check", "--output-format", "concise")
    (line,) = ran.out.splitlines()
    assert line.startswith("train.ipynb:cell 5:3:5: SF101 [*] `x.view(-1)` fails")
    assert "cannot be parsed" not in ran.err
