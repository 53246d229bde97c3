"""Values followed through calls, constructors, modules and comprehensions, and the repairs of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from raised import traceback_of

from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnostics import Applicability, Role
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)

FOLLOWED = {
    "result of a method": """\
import numpy as np
import torch

class Reader:
    def rows(self):
        return np.array([{}, {}])  # cause

reader = Reader()
table = reader.rows()  # cause
other = [1]  # innocent
torch.from_numpy(table)
""",
    "argument of a constructor": """\
import numpy as np
import torch

class Table:
    def __init__(self, rows, scale):
        self.rows = rows  # cause
        self.scale = scale  # innocent

    def tensor(self):
        return torch.from_numpy(self.rows)

names = np.array([{}, {}])  # cause
scale = 3  # innocent
Table(names, scale).tensor()
""",
    "default of a parameter": """\
import io
import torch

def load(stream, device="cuda:7"):  # cause
    return torch.load(stream, map_location=torch.device(device))

stream = io.BytesIO()
torch.save(torch.zeros(2), stream)
stream.seek(0)
load(stream)
""",
    "value of a dictionary": """\
class Losses:
    def first(self, x):
        return x

    def second(self, x):
        if x:
            x + 1  # cause

    def total(self, x):
        found = {"first": self.first(x), "second": self.second(x)}  # cause
        return sum(2 * value for value in found.values())

Losses().total(3)
""",
    "function without a result": """\
def build(kind):  # cause
    if kind == "small":
        model = [1]  # cause
    else:
        return [2]

model = build("small")  # cause
model.parameters()
""",
    "key of a dictionary that a library reads": """\
import sys
sys.path.insert(0, "plans/site-packages")
from plan_runner import run

class Plan:
    def parts(self):
        return {"optim": 1, "rate": 2}  # cause

run(Plan())
""",
    "weights of a loss": """\
import torch

weights = torch.ones(len([1, 2, 3]))
loss = torch.nn.CrossEntropyLoss(weight=weights)  # cause
loss(torch.zeros(2, 5), torch.tensor([0, 1]))
""",
    "inference mode": """\
import torch

layer = torch.nn.Linear(2, 2)

@torch.inference_mode()  # cause
def features():
    return layer(torch.ones(1, 2))

x = features()  # cause
layer(x).sum().backward()
""",
    "batches of a collator": """\
import torch
from torch.utils.data import DataLoader

def collate(rows):
    return torch.stack(rows), torch.ones(len(rows))  # cause

loader = DataLoader([torch.zeros(2)] * 4, batch_size=2, collate_fn=collate)
for x, length, y in loader:
    print(x, length, y)
""",
    "result of a module": """\
import torch

class Loss(torch.nn.Module):
    def forward(self, x):
        return x.mean().item()  # cause

measure = Loss()
loss = measure(torch.ones(2, requires_grad=True))  # cause
loss.backward()
""",
    "divisor in a tuple": """\
def split(rows, share):
    count = int(len(rows) * share)  # cause
    first = rows[count:]  # innocent
    second = rows[:count]  # cause
    return first, second  # cause

train, valid = split([1, 2, 3], 0.0)  # cause
for epoch in range(2):  # innocent
    print(epoch, sum(valid) / len(valid))
""",
    "calls of a line": """\
import numpy as np

def first(n):
    return np.random.rand(n, 4)  # cause

def second(n):
    return np.random.rand(n)  # cause

np.concatenate([first(3), second(3)], axis=1)
""",
    "indices of a subset": """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

parts = np.array_split(np.random.permutation(60), 2)  # cause
chosen = Subset(TensorDataset(torch.zeros(20, 3)), np.concatenate(parts).tolist())  # cause
for batch in DataLoader(chosen, batch_size=8):
    print(batch)
""",
    "classes of a metric": """\
import torch
from torchmetrics.classification import MulticlassAccuracy

names = ["cat", "dog"]  # cause
metric = MulticlassAccuracy(num_classes=len(names))  # cause
metric.update(torch.zeros(4, 3), torch.tensor([0, 1, 2, 1]))
""",
    "key of given settings": """\
import torch

LAYERS = {"linear": torch.nn.Linear}
SETTINGS = [("linear", {"in_feature": 8, "out_features": 2})]  # cause
layers = [LAYERS[name](**given) for name, given in SETTINGS]
""",
    "list of an object": """\
import torch

class Bank:
    def __init__(self):
        self.items = []  # cause

    def push(self, x):
        if x.norm() > 100:
            self.items.append(x)  # cause

bank = Bank()
bank.push(torch.ones(2))
torch.stack(bank.items)
""",
    "class in the place of an instance": """\
import torch

def optimizer(model, lr):
    return torch.optim.Adam(model.parameters(), lr=lr)

optimizer(torch.nn.ReLU, lr=0.1)  # cause
""",
    "decorator without gradients": """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    @torch.no_grad()  # cause
    def forward(self, x):
        return self.layer(x)

Net()(torch.ones(3, 2)).mean().backward()
""",
    "dtype of a target": """\
import pandas as pd
import torch

table = pd.DataFrame({"a": [1, 2], "kind": [0, 1]})
x = torch.zeros(2, 3)
y = torch.tensor(table["kind"].values, dtype=torch.float32)  # cause
torch.nn.functional.cross_entropy(x, y)
""",
}
LIBRARIES = {"plan_runner.py": "def run(plan):\n    return plan.parts()['optimizer']\n"}


def _rows(text: str, marker: str) -> set[int]:
    return {row for row, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {marker}")}


def _diagnosed(folder: Path, text: str) -> Diagnosis:
    for name, code in LIBRARIES.items():
        path = folder / "plans" / "site-packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    script = folder / "train.py"
    script.write_text(text)
    found = diagnose_log(traceback_of(script).splitlines(), str(folder), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_places_of_a_value_are_named(name: str, tmp_path: Path) -> None:
    text = FOLLOWED[name]
    first = _diagnosed(tmp_path, text).causes[0]
    named = {first.finding.span.row} | {
        step.span.row for step in first.evidence if step.role not in (Role.CALL, Role.FAILURE)
    }
    assert _rows(text, "cause") <= named
    assert not _rows(text, "innocent") & named


def test_a_name_of_another_module_is_followed(tmp_path: Path) -> None:
    (tmp_path / "tables.py").write_text("import numpy as np\nROWS = np.array([{}, {}])\n")
    text = "import torch\nfrom tables import ROWS\ntorch.from_numpy(ROWS)\n"
    first = _diagnosed(tmp_path, text).causes[0]
    assert ("tables.py", 2) in {(Path(step.span.path).name, step.span.row) for step in first.evidence}


def test_an_error_of_the_machine_has_no_values(tmp_path: Path) -> None:
    text = "import ctypes\nname = 'libcudnn.so.99'\nctypes.CDLL(name)\n"
    found = _diagnosed(tmp_path, text)
    assert found.explanation is not None
    assert found.explanation.name == "shared-library"
    assert found.causes == ()


REPAIRED = {
    "checkpoint of a GPU": """\
import io
import torch

stream = io.BytesIO()
torch.save(torch.zeros(2), stream)
stream.seek(0)
torch.load(stream, map_location="cuda")
""",
    "mask of floats": "import torch\nmask = torch.ones(2)\nprint(~mask)\n",
    "index of a gather": """\
import torch
chosen = torch.tensor([0, 1])
print(torch.zeros(2, 3).gather(1, chosen).squeeze(1))
""",
    "scalars": "import torch\nlosses = [torch.tensor(1.0), torch.tensor(2.0)]\nprint(torch.cat(losses))\n",
    "features of inference": """\
import torch
layer = torch.nn.Linear(2, 2)
with torch.inference_mode():
    x = layer(torch.ones(1, 2))
layer(x).sum().backward()
""",
    "options of a loader": """\
from torch.utils.data import DataLoader
loader = DataLoader([1, 2], batch_sampler=[[0], [1]], batch_size=2, drop_last=True, num_workers=0)
list(loader)
""",
    "option of the command line": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--hidden-dim", type=int, default=3)
args = parser.parse_args([])
print(args.hidden_size)
print(args.hidden_size + 1)
""",
    "rows of a filtered table": """\
import pandas as pd

class Rows:
    def __init__(self, table):
        self.table = table

    def get(self, i):
        first = self.table["a"][i]
        return first + self.table["b"][i]

table = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})
Rows(table[table["a"] > 2]).get(0)
""",
    "numbers of a loss": """\
import torch

class Loss(torch.nn.Module):
    def forward(self, x):
        return x.mean().item() + 0.1 * x.abs().mean().item()

measure = Loss()
loss = measure(torch.ones(2, requires_grad=True))
loss.backward()
""",
    "option without a type": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--warmup", default="100")
args = parser.parse_args([])
print(1 / args.warmup)
""",
    "key that a library reads": FOLLOWED["key of a dictionary that a library reads"],
}


@pytest.mark.parametrize("name", REPAIRED)
def test_the_repaired_script_runs(name: str, tmp_path: Path) -> None:
    found = _diagnosed(tmp_path, REPAIRED[name])
    fix = found.causes[0].finding.fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE
    rows = REPAIRED[name].split("\n")
    for edit in sorted(fix.edits, key=lambda edit: (edit.span.row, edit.span.column), reverse=True):
        row = rows[edit.span.row - 1]
        rows[edit.span.row - 1] = row[: edit.span.column - 1] + edit.content + row[edit.span.end_column - 1 :]
    script = tmp_path / "train.py"
    script.write_text("\n".join(rows))
    with pytest.raises(AssertionError, match="the script raises nothing"):
        traceback_of(script)


def test_a_quoted_number_of_a_setting_is_converted(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"width": 4, "dropout": "0.1"}\n')
    text = """\
import json
import torch
from types import SimpleNamespace

settings = SimpleNamespace(**json.load(open("settings.json")))
torch.nn.LSTM(2, settings.width, dropout=settings.dropout, num_layers=2)
"""
    first = _diagnosed(tmp_path, text).causes[0]
    assert ("settings.json", 1) in {(Path(step.span.path).name, step.span.row) for step in first.evidence}
    assert first.finding.fix is not None
    assert [edit.content for edit in first.finding.fix.edits] == ["float(settings.dropout)"]


def test_a_quoted_number_in_a_list_of_settings_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text('classes: 4\nchannels: [3, 8, "16"]\n')
    text = """\
import torch

def read(path):
    return {"channels": [3, 8, open(path).read().split('"')[1]], "classes": 4}

settings = read("model.yaml")
def build(channels):
    return [torch.nn.Conv2d(a, b, 3) for a, b in zip(channels, channels[1:])]

build(settings["channels"])
"""
    first = _diagnosed(tmp_path, text).causes[0]
    assert ("model.yaml", 2) in {(Path(step.span.path).name, step.span.row) for step in first.evidence}


def test_a_list_of_names_has_ticks_around_each(tmp_path: Path) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "    trainer.train()\n"
        "KeyError: \"The `metric_for_best_model` training argument is set to 'eval_f1', "
        "which is not found in the evaluation metrics. "
        "The available evaluation metrics are: ['eval_loss', 'epoch']. Consider\"\n"
    )
    found = diagnose_log(log.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert "the available ones are `eval_loss`, `epoch`." in " ".join(str(found).split())


def test_a_generator_expression_is_one_line_of_the_stack(tmp_path: Path) -> None:
    text = "values = [None]\nprint(sum(2 * value for value in values))\n"
    shown = str(_diagnosed(tmp_path, text))
    assert shown.count("train.py:2  print") == 1


def _shown(folder: Path, text: str) -> str:
    found = diagnose_log(text.splitlines(), str(folder), OPTIONS)
    assert found is not None
    return " ".join(str(found).split())


def test_a_pasted_unknown_error_is_an_error(tmp_path: Path) -> None:
    shown = _shown(tmp_path, "after one epoch I get:\nmylib.errors.StateError: no such state\n")
    assert shown.startswith("StateError: no such state")
    assert "does not know this message" in shown
    assert diagnose_log(["all is well: 3 errors before, none now"], str(tmp_path), OPTIONS) is None


def test_without_a_stack_no_line_is_this_one(tmp_path: Path) -> None:
    shown = _shown(tmp_path, "RuntimeError: tensors used as indices must be long, int, byte or bool tensors")
    assert "this line" not in shown
    log = "train.py: error: unrecognized arguments: --local-rank=0"
    assert "the line that fails" not in _shown(tmp_path, log)


def test_the_reason_of_a_failed_dataset_comes_first(tmp_path: Path) -> None:
    log = """\
Traceback (most recent call last):
  File "/x/site-packages/datasets/json.py", line 122, in _generate_tables
    pa_table = paj.read_json(
pyarrow.lib.ArrowInvalid: JSON parse error: Column() changed from object to array in row 0

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/site-packages/datasets/builder.py", line 2038, in _prepare_split_single
    raise DatasetGenerationError("An error occurred while generating the dataset") from e
datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset
"""
    shown = _shown(tmp_path, log)
    assert shown.startswith("ArrowInvalid: JSON parse error")
    assert "from row 0 on array" in shown
    other = _shown(tmp_path, log.replace("changed from object to array", "has a bad row, number 7,"))
    assert "(before it: ArrowInvalid: JSON parse error: Column() has a bad row" in other


def test_the_report_of_a_launcher_is_named_as_such(tmp_path: Path) -> None:
    rule = "=" * 60
    log = f"""\
Traceback (most recent call last):
  File "/x/site-packages/torch/distributed/launcher/api.py", line 268, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
{rule}
main.py FAILED
{rule}
"""
    shown = _shown(tmp_path, log)
    assert shown.startswith("ChildFailedError: main.py FAILED A process of the training has failed")
