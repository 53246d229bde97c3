"""Causes of errors without a rule: the places that gave the sizes and values of the failing line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from raised import traceback_of

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnostics import Role
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)


@dataclass(frozen=True)
class Traced:
    """A script; the evidence of the first cause has the lines with `# cause`, and none with `# innocent`."""

    name: str
    code: str
    confidence: Confidence
    text: str

    def __str__(self) -> str:
        return self.name


SCRIPTS = [
    Traced("residual", "SF510", Confidence.PROVED, """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)  # cause
        self.second = nn.Linear(8, 9)  # cause
        self.other = nn.Linear(8, 9)  # innocent

    def forward(self, x):
        x = self.first(x)
        return x + self.second(x)

Net()(torch.zeros(2, 4))
"""),
    Traced("literal of a caller", "SF506", Confidence.PROVED, """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, 4, 1)  # cause

    def forward(self, x):
        return self.conv(x)

net = Net(11)  # cause
net(torch.zeros(2, 10, 3, 3))
"""),
    Traced("numbers of a dictionary", "SF501", Confidence.PROVED, """\
from torch import nn

SETTINGS = {
    "width": 100,  # cause
    "heads": 8,  # cause
    "depth": 2,  # innocent
}

def build(width, heads, depth):
    layer = nn.TransformerEncoderLayer(width, heads)
    return nn.TransformerEncoder(layer, depth)

build(SETTINGS["width"], SETTINGS["heads"], SETTINGS["depth"])
"""),
    Traced("tokens without a row", "traced-error", Confidence.LIKELY, """\
import json
import torch
from torch import nn

class Words:
    def __init__(self, words):
        self.ids = {word: number for number, word in enumerate(words)}

    def add_tokens(self, words):
        self.ids.update({word: len(self.ids) + number for number, word in enumerate(words)})

    def encode(self, text):
        return torch.tensor([self.ids[word] for word in text.split()])

words = Words(json.loads('["the", "cat"]'))
embedding = nn.Embedding(len(words.ids), 4)  # cause
words.add_tokens(["<user>", "<bot>"])  # cause
embedding(words.encode("<user> the cat"))
"""),
    Traced("attribute of a passed number", "traced-error", Confidence.LIKELY, """\
class Pool:
    def __init__(self, channels):
        self.groups = channels.size()

class Net:
    def __init__(self, encoder):
        self.width, self.depth = encoder()  # cause
        self.pool = Pool(self.width)

Net(lambda: (4, 8))
"""),
    Traced("attribute of a constant", "traced-error", Confidence.LIKELY, """\
def pool(channels):
    return channels.size()

def build():
    return pool(4)  # cause

build()
"""),
    Traced("missing option", "traced-error", Confidence.LIKELY, """\
import argparse

parser = argparse.ArgumentParser()  # cause
parser.add_argument("--learning-rate", type=float, default=0.1)  # cause
parser.add_argument("--seed", type=int, default=0)  # innocent

def train(args):
    return args.learn_rate

train(parser.parse_args([]))
"""),
    Traced("class of a saved object", "traced-error", Confidence.ONLY, """\
import pickle

class Net:  # cause
    pass

pickle.loads(b"cjson\\nNet\\n.")
"""),
    Traced("chunk of a layer", "SF507", Confidence.PROVED, """\
import torch
from torch import nn

qkv = nn.Linear(6, 12)  # cause
q, k, v = qkv(torch.zeros(4, 5, 6)).chunk(3, dim=-1)
q.view(4, 5, 2, 3)
"""),
    Traced("missing argument", "traced-error", Confidence.ONLY, """\
import torch

def build(width, depth=1):  # cause
    return torch.nn.Linear(width, depth)

def main():
    return build()  # cause

main()
"""),
    Traced("function called by a library", "traced-error", Confidence.ONLY, """\
from torch.utils.data import DataLoader

def collate(rows, pad_id):  # cause
    return rows

for batch in DataLoader([1, 2, 3], collate_fn=collate):
    pass
"""),
    Traced("table of ids", "traced-error", Confidence.LIKELY, """\
import json
import torch
from torch import nn

words = json.loads('{"the": 0, "cat": 1}')
embedding = nn.Embedding(len(words), 4)  # cause
words.setdefault("sat", len(words))
ids = torch.tensor([words[each] for each in "the cat sat".split()])  # cause
embedding(ids)
"""),
    Traced("samples of several sizes", "traced-error", Confidence.LIKELY, """\
import torch
from torch.utils.data import DataLoader, Dataset

TEXTS = ["the cat sat", "a dog"]

class Texts(Dataset):
    def __len__(self):
        return len(TEXTS)  # innocent

    def __getitem__(self, index):
        ids = [hash(word) % 7 for word in TEXTS[index].split()]
        return torch.tensor(ids)  # cause

data = Texts()
for batch in DataLoader(data, batch_size=2):
    pass
"""),
    Traced("length of a dataset", "traced-error", Confidence.ONLY, """\
import torch
from torch.utils.data import DataLoader, Dataset

class Windows(Dataset):
    def __init__(self, series):
        self.series = series

    def __len__(self):
        return len(self.series)  # cause

    def __getitem__(self, index):
        return self.series[index + 2]

for batch in DataLoader(Windows(torch.arange(9))):
    pass
"""),
    Traced("rows of an embedding", "SF505", Confidence.PROVED, """\
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, longest=16):  # cause
        super().__init__()
        self.positions = nn.Embedding(longest, 4)

    def forward(self, ids):
        return self.positions(torch.arange(ids.size(1)))

Encoder()(torch.zeros(2, 24))
"""),
    Traced("columns of a dataset", "SF413", Confidence.PROVED, """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def loader():
    data = TensorDataset(torch.zeros(8, 3), torch.zeros(8), torch.arange(8))  # cause
    return DataLoader(data, batch_size=4)

for x, y in loader():
    print(x.shape)
"""),
    Traced("write into a view", "traced-error", Confidence.ONLY, """\
import torch

x = torch.rand(2, 3, requires_grad=True) * 2
other = torch.rand(4, 5)
y = x.exp()
other.add_(1)  # innocent
y.detach().add_(1)  # cause
y.sum().backward()
"""),
    Traced("index of a loop", "traced-error", Confidence.ONLY, """\
import json
import torch

def columns(x, count):
    found = []
    for i in range(count):  # cause
        found.append(x[:, i].sum())
    return found

columns(torch.zeros(5, 4), json.loads("5"))
"""),
    Traced("variable of another type", "traced-error", Confidence.LIKELY, """\
import json

def read(text):
    rows = json.loads(text)  # cause
    return rows.shape

read("[1, 2]")
"""),
    Traced("variable of a caller", "traced-error", Confidence.LIKELY, """\
import json

def width(rows):
    return rows.shape[1]

def main():
    table = json.loads("[1, 2]")  # cause
    other = json.loads("[1]")  # innocent
    return width(table)

main()
"""),
    Traced("file read in a function", "traced-error", Confidence.ONLY, """\
import numpy as np
import torch

np.save("x.npy", np.zeros((3, 5), np.float32))

def table(path):
    rows = np.load(path)  # cause
    return torch.from_numpy(rows)

layer = torch.nn.Linear(4, 2)  # cause
layer(table("x.npy"))
"""),
    Traced("option", "SF501", Confidence.PROVED, """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--features", type=int, default=30)  # cause
options = parser.parse_args([])
layer = torch.nn.Linear(options.features, 2)
layer(torch.zeros(2, 32))
"""),
    Traced("layers in a plain list", "SF607", Confidence.PROVED, """\
import torch
from torch import nn

class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = [nn.Linear(4, 1)]  # cause

torch.optim.Adam(Ensemble().parameters())
"""),
    Traced("none of a branch", "traced-error", Confidence.LIKELY, """\
import torch
from torch import nn

def make_loss(kind):  # cause
    if kind == "mse":
        return nn.MSELoss()
    elif kind == "mae":
        return nn.L1Loss()

def make_model():  # innocent
    return nn.Linear(2, 2)

model = make_model()
criterion = make_loss("hubber")  # cause
criterion(model(torch.zeros(1, 2)), 0)
"""),
    Traced("collected in a list", "traced-error", Confidence.LIKELY, """\
import json
import torch
from torch.nn import functional as F

class Meter:
    def __init__(self):
        self.scores, self.targets = [], []

    def update(self, rows):
        self.scores.append(torch.zeros(len(rows), 3))
        self.targets.append(torch.tensor(rows))  # cause

    def loss(self):
        scores, targets = torch.cat(self.scores), torch.cat(self.targets)
        return F.cross_entropy(scores, targets)

meter = Meter()
meter.update(json.loads("[[1], [2]]"))
meter.loss()
"""),
    Traced("layer of a class with the wrong numbers", "SF501", Confidence.PROVED, """\
import torch
from torch import nn

class Tower(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layer = nn.Linear(inputs, width)  # cause

    def forward(self, x):
        return self.layer(x)

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = Tower(8, 4)  # innocent
        self.image = Tower(6, 4)  # cause

    def forward(self, text, image):
        return self.text(text) @ self.image(image).t()

Pair()(torch.zeros(2, 8), torch.zeros(2, 7))
"""),
    Traced("only setting of a name", "traced-error", Confidence.LIKELY, """\
import json
import torch
from types import SimpleNamespace

defaults = {
    "vocab_size": 10,  # cause
    "length": 12,  # innocent
}
settings = SimpleNamespace(**json.loads(json.dumps(defaults)))
embed = torch.nn.Embedding(settings.vocab_size, 4)  # cause
embed(torch.tensor(json.loads("[3, 11]")))
"""),
    Traced("attribute without a value", "traced-error", Confidence.LIKELY, """\
class Stopper:
    def __init__(self):
        self.patience = 3  # innocent
        self.best = None  # cause

    def is_better(self, loss):
        better = loss < self.best - 0.1
        self.best = min(self.best, loss)  # innocent
        return better

Stopper().is_better(0.5)
"""),
    Traced("tuple of a layer", "traced-error", Confidence.LIKELY, """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x):
        x = x * 2  # innocent
        y = self.attention(x, x, x)  # cause
        return x + y

Block()(torch.zeros(3, 2, 4))
"""),
    Traced("key of a caller's dictionary", "traced-error", Confidence.ONLY, """\
def width(number, *, settings):
    return settings["hidden"] * number

def main():
    settings = {"width": 3}  # cause
    other = {"depth": 3}  # innocent
    return width(2, settings=settings)

main()
"""),
    Traced("key of rows that a library passes", "traced-error", Confidence.LIKELY, """\
def encode(row):
    return row["sentence1"].split()

rows = [{"premise": "a"}]  # cause
other = [{"sentence1": "a"}]  # innocent
rows.sort(key=encode)
"""),
    Traced("key of settings without a parameter", "traced-error", Confidence.ONLY, """\
def build(width, num_classes):  # cause
    return width * num_classes

settings = {"width": 3, "depth": 2}  # innocent
settings = {
    "width": 3,
    "n_classes": 2,  # cause
}
build(**settings)  # cause
"""),
    Traced("keyword of a library", "SF414", Confidence.PROVED, """\
import torch

layer = torch.nn.Linear(2, 2)  # innocent
optimizer = torch.optim.SGD(
    layer.parameters(),
    lr=0.1,
    rate=0.9,  # cause
)
"""),
    Traced("argument of a library", "SF414", Confidence.PROVED, """\
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
plateau.step()  # cause
"""),
    Traced("module called without an argument", "SF414", Confidence.PROVED, """\
import torch

class Net(torch.nn.Module):
    def forward(self, x, mask):  # cause
        return x * mask

def run(net):
    return net(torch.zeros(2))  # cause

run(Net())
"""),
    Traced("attribute that a class never sets", "traced-error", Confidence.LIKELY, """\
class Runner:  # cause
    def __init__(self, rate):
        self.learning_rate = rate  # cause
        self.model = None  # innocent

    def step(self):
        return self.learn_rate * 2

Runner(0.1).step()
"""),
    Traced("option without a type", "traced-error", Confidence.ONLY, """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", default="0.1")  # cause
parser.add_argument("--name", default="x")  # innocent
args = parser.parse_args([])
torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), lr=args.lr)
"""),
    Traced("function in a function", "traced-error", Confidence.ONLY, """\
import pickle

def main():
    other = lambda x: x  # cause
    return pickle.dumps(other)

main()
"""),
    Traced("images of another mode", "traced-error", Confidence.LIKELY, """\
import json
import torch
from torch import nn

class Image:
    @staticmethod
    def open(path):
        return json.loads(path)

def load(path):
    picture = Image.open(path)  # cause
    return torch.tensor(picture).float()

conv = nn.Conv2d(3, 2, 1)  # cause
conv(load("[[[[1]]]]"))
"""),
    Traced("result with indices", "traced-error", Confidence.ONLY, """\
import torch

best = torch.zeros(4)
x = torch.zeros(2, 3)  # innocent
best[:2] = x.max(1)  # cause
"""),
    Traced("dictionary of some rows", "traced-error", Confidence.LIKELY, """\
class Boxes:
    def __init__(self, rows):
        self.by_image = {}  # cause
        for image, box in rows:
            self.by_image.setdefault(image, []).append(box)  # cause
        self.rows = rows  # innocent

    def __getitem__(self, index):
        return self.by_image[index]

Boxes([(0, 1), (2, 3)])[1]
"""),
    Traced("layer under a condition", "traced-error", Confidence.LIKELY, """\
import tempfile
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.main = torch.nn.Linear(2, 1)  # innocent
        self.extra = torch.nn.Linear(2, 1)  # cause

    def forward(self, x, extra=False):
        out = self.main(x)
        if extra:
            out = out + self.extra(x)
        return out

store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
try:
    model = DDP(Heads())  # cause
    for _ in range(2):
        model(torch.zeros(1, 2)).sum().backward()
finally:
    dist.destroy_process_group()
"""),
    Traced("variable of a loop", "traced-error", Confidence.LIKELY, """\
import json

def train(batches):
    total = 0  # innocent
    for batch in batches:
        loss = batch * 2  # cause
        if loss > 9:
            loss = 9  # cause
        total += loss
    return total / loss

train(json.loads("[]"))
"""),
    Traced("misspelled name", "traced-error", Confidence.ONLY, """\
def loss_function(x):  # cause
    return abs(x)

def other_function(x):  # innocent
    return loss_funtion(x)

other_function(1)
"""),
    Traced("short list", "traced-error", Confidence.LIKELY, """\
import json

def second(text):
    parts = text.split(json.loads('";"'))  # cause
    others = [1]  # innocent
    return parts[1]

second("a,b")
"""),
    Traced("samples that are lists", "traced-error", Confidence.ONLY, """\
import json
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

class Texts(Dataset):
    def __len__(self):
        return 4  # innocent

    def __getitem__(self, index):
        return json.loads("[1, 2]")  # cause

def collate(rows):
    return pad_sequence(rows)

next(iter(DataLoader(Texts(), collate_fn=collate)))
"""),
    Traced("parameters that are all frozen", "traced-error", Confidence.ONLY, """\
import torch

net = torch.nn.Linear(2, 2)
for name, parameter in net.named_parameters():
    parameter.requires_grad = "adapter" in name  # cause
torch.optim.SGD([each for each in net.parameters() if each.requires_grad])
"""),
    Traced("keys of a wrapper", "traced-error", Confidence.LIKELY, """\
import torch

torch.save({"module.weight": torch.zeros(2, 3)}, "last.pt")
state = torch.load("last.pt")  # cause
model = torch.nn.Linear(3, 2)
model.load_state_dict(state)
"""),
    Traced("size of a vocabulary", "traced-error", Confidence.LIKELY, """\
import torch
from torch import nn
from collections import Counter

vocabulary = {"<pad>": 0, "<unk>": 1}
counts = Counter("the cat sat on the mat".split())
for word in counts:
    vocabulary[word] = len(vocabulary)

class Tagger(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.embedding = nn.Embedding(rows, 4)  # cause
        self.out = nn.Linear(4, 2)

    def forward(self, ids):
        return self.out(self.embedding(ids))

model = Tagger(len(counts))  # cause
model(torch.tensor([vocabulary["mat"]]))
"""),
    Traced("model of a checkpoint", "traced-error", Confidence.LIKELY, """\
import io
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, depth=1):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(depth)])

state = Net(2).state_dict()
net = Net()  # cause
other = Net(2)  # innocent
net.load_state_dict(state)
"""),
    Traced("column of another length", "traced-error", Confidence.ONLY, """\
from datasets import Dataset

rows = Dataset.from_dict({"text": ["a b", "c d e"]})

def prepare(batch):
    batch["length"] = [len(text) for text in batch["text"]]  # innocent
    batch["ids"] = [len(word) for text in batch["text"] for word in text.split()]  # cause
    return batch  # innocent

rows.map(prepare, batched=True)
"""),
    Traced("number of beams", "traced-error", Confidence.LIKELY, """\
import torch
from torch import nn

def best(scores, k):
    return scores.topk(k, dim=-1)

head = nn.Linear(16, 4)
BEAMS = 5  # cause
best(head(torch.zeros(2, 16)), BEAMS)
"""),
    Traced("types of a setting", "traced-error", Confidence.LIKELY, """\
from types import SimpleNamespace

def sizes(settings):
    return [settings.inputs] + settings.hidden

settings = SimpleNamespace(inputs=10, hidden=(32, 16))  # cause
sizes(settings)
"""),
]  # fmt: skip


def test_the_numbers_of_a_message_decide_between_settings(tmp_path: Path) -> None:
    """The default of an option is not the number of the run: the configuration is."""
    (tmp_path / "config.json").write_text('{\n  "width": 32,\n  "heads": 5\n}\n')
    text = """\
import argparse
import json
import os
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--heads", type=int, default=4)  # innocent
args = parser.parse_args([])
with open(os.environ.get("CONFIG", "config.json")) as file:
    for name, value in json.load(file).items():
        setattr(args, name, value)

class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = torch.nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        return self.query(x).view(b, n, self.heads, w // self.heads)

Attention(args.width, args.heads)(torch.zeros(2, 3, args.width))
"""
    first = _diagnosed(tmp_path, text).causes[0]
    stated = {(Path(step.span.path).name, step.span.row): step.message for step in first.evidence}
    assert stated["config.json", 3] == '`heads` is 5 here: "heads": 5'
    assert ("train.py", 7) not in stated
    assert first.confidence is not Confidence.PROVED


def test_without_a_setting_of_the_number_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{\n  "size": 40\n}\n')
    text = """\
import json
import torch

size = len(json.loads("[" + "1," * 49 + "1]"))
pair = torch.zeros(1, size), torch.zeros(1, size // 2)
torch.cat(pair)
"""
    found = _diagnosed(tmp_path, text)
    assert not any(step.span.path.endswith(".json") for each in found.causes for step in each.evidence)


@pytest.mark.slow
def test_the_loss_of_a_lightning_module_is_followed(tmp_path: Path) -> None:
    text = """\
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def training_step(self, batch, index):
        x, y = batch
        scores = self.layer(x).argmax(-1).float()  # cause
        loss = (scores - y).abs().mean()  # cause
        return loss  # cause

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = TensorDataset(torch.zeros(4, 4), torch.zeros(4))
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Module(), DataLoader(data))
"""
    first = _diagnosed(tmp_path, text).causes[0]
    assert first.finding.name == "no-gradient"
    assert _rows(text, "cause") <= {step.span.row for step in first.evidence}


@pytest.mark.slow
def test_the_logged_names_are_compared_with_the_monitored_one(tmp_path: Path) -> None:
    text = """\
import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch.utils.data import DataLoader

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def training_step(self, batch, index):
        loss = self.layer(batch).mean()
        self.log("loss_of_train", loss)  # cause
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    # Another callback may log the value, so only the run shows the fault.
    callbacks=[
        EarlyStopping(monitor="train_loss", check_on_train_epoch_end=True),  # cause
        lightning.Callback(),
    ],
)
trainer.fit(Module(), DataLoader(torch.zeros(4, 4)))
"""
    first = _diagnosed(tmp_path, text).causes[0]
    assert first.finding.name == "early-stopping-metric"
    assert _rows(text, "cause") == {step.span.row for step in first.evidence if step.role is Role.CAUSE}


def test_every_part_of_a_traced_cause_and_the_advice_are_shown(tmp_path: Path) -> None:
    text = """\
import json

def train(kinds):
    for kind in kinds:
        if kind == "a":
            loss = 1
        elif kind == "b":
            loss = 2
        elif kind == "c":
            loss = 3
    return loss

train(json.loads("[]"))
"""
    shown = " ".join(str(_diagnosed(tmp_path, text)).split())
    assert "These lines have a part in it, too:" in shown
    assert "train.py:8 `loss` is set only if this line runs" in shown
    assert "Set `loss` before the branch or loop." in shown


def test_a_missing_collator_is_named(tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "row_trainer.py"
    library.parent.mkdir()
    library.write_text("""\
import torch

class RowTrainer:
    def __init__(self, rows, data_collator=torch.tensor):
        self.rows, self.collate = rows, data_collator

    def train(self):
        return self.collate(self.rows)
""")
    text = """\
import json
import sys
sys.path.insert(0, "site-packages")
from row_trainer import RowTrainer

padded = RowTrainer([[1], [2]], data_collator=list)  # innocent
trainer = RowTrainer(json.loads("[[1], [2, 3]]"))  # cause
trainer.train()
"""
    first = _diagnosed(tmp_path, text).causes[0]
    named = {step.span.row for step in first.evidence if step.role is Role.CAUSE}
    assert _rows(text, "cause") == named


def test_a_number_that_yaml_reads_as_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("epochs: 3\nlr: 1e-4\n")
    text = """\
import torch
import yaml

with open("config.yaml") as file:
    config = yaml.safe_load(file)
torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), lr=config["lr"])
"""
    first = _diagnosed(tmp_path, text).causes[0]
    stated = {(Path(step.span.path).name, step.span.row): step.message for step in first.evidence}
    assert stated["config.yaml", 2] == "YAML reads `1e-4` as text; write `1.0e-4`"


def _pasted(folder: Path, text: str, row: int, error: str) -> Diagnosis:
    """Diagnose the error of a GPU at a row of a function."""
    script = folder / "train.py"
    script.write_text(text)
    call = text.splitlines().index("run()") + 1
    log = f"""\
Traceback (most recent call last):
  File "{script}", line {call}, in <module>
    run()
  File "{script}", line {row}, in run
    {text.splitlines()[row - 1].strip()}
{error}
"""
    found = diagnose_log(log.splitlines(), str(folder), OPTIONS)
    assert found is not None
    return found


def test_memory_that_grows_in_the_loop_is_the_cause_of_an_error_at_another_line(tmp_path: Path) -> None:
    text = """\
import torch

net = torch.nn.Linear(8, 2).cuda()
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def run():
    total = 0
    for step in range(100):
        loss = criterion(net(torch.zeros(4, 8).cuda()), torch.zeros(4).long().cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total

run()
"""
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total of 8 GiB"
    )
    first = _pasted(tmp_path, text, 10, error).causes[0]
    assert (first.finding.code, first.confidence) == ("SF701", Confidence.LIKELY)
    other = text.replace("total += loss", "total += loss.item()")
    assert _pasted(tmp_path, other, 10, error).causes == ()


def test_the_conversion_of_a_tensor_on_a_gpu_is_named(tmp_path: Path) -> None:
    text = """\
import torch

def run(loaded=torch.load("x.pt")):
    found = []
    found.append(loaded.sum(0).numpy())
    return found

run()
"""
    error = (
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to"
        " host memory first."
    )
    first = _pasted(tmp_path, text, 5, error).causes[0]
    assert [step.message for step in first.evidence if step.span.column == 18] == ["`.cpu()` is missing here"]


def _rows(text: str, marker: str) -> set[int]:
    return {row for row, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {marker}")}


def _diagnosed(folder: Path, text: str) -> Diagnosis:
    script = folder / "train.py"
    script.write_text(text)
    found = diagnose_log(traceback_of(script).splitlines(), str(folder), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("case", SCRIPTS, ids=str)
def test_the_origins_are_named(case: Traced, tmp_path: Path) -> None:
    first = _diagnosed(tmp_path, case.text).causes[0]
    assert (first.finding.code, first.confidence) == (case.code, case.confidence)
    places = [first.finding.span, *(step.span for step in first.evidence)]
    named = {row for span in places for row in range(span.row, span.end_row + 1)}
    assert _rows(case.text, "cause") <= named
    assert not _rows(case.text, "innocent") & named


def test_a_line_that_has_moved_is_followed_at_its_new_place(tmp_path: Path) -> None:
    text = """\
def pool(channels):
    return channels.size()

def build():
    width = 4  # cause
    return pool(width)

build()
"""
    (tmp_path / "train.py").write_text(text)
    log = traceback_of(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(moved := f"# The width is a number.\n{text}")
    found = diagnose_log(log.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    first = found.causes[0]
    assert first.confidence is Confidence.LIKELY
    assert _rows(moved, "cause") == {step.span.row for step in first.evidence if step.role is Role.CAUSE}
    shown = str(found)
    assert "train.py:3  return channels.size()" in shown
    assert "sources have changed" in shown


def test_the_keys_of_a_setting_of_a_library_are_no_columns(tmp_path: Path) -> None:
    library = tmp_path / "dist-packages" / "runner.py"
    library.parent.mkdir()
    library.write_text("def train(loaders):\n    return {}['loss']\n")
    text = """\
import sys
sys.path.insert(0, "dist-packages")
from runner import train

loaders = {"valid": [1]}
train(loaders=loaders)
"""
    found = _diagnosed(tmp_path, text)
    assert found.explanation is not None
    assert found.explanation.name == "missing-key"
    assert not any("column" in step.message for each in found.causes for step in each.evidence)


def test_the_end_of_a_long_path_is_shown(tmp_path: Path) -> None:
    folder = "/workspace/projects/a-long-name-of-a-project/models/transformers"
    log = (
        f'Traceback (most recent call last):\n  File "{folder}/decoder.py", line 237, in forward\n'
        "    return self.layer(x)\nValueError: no layer\n"
    )
    found = diagnose_log(log.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert "  …/models/transformers/decoder.py:237  return self.layer(x)\n" in str(found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_the_fixed_device_of_a_setting_is_named(tmp_path: Path) -> None:
    text = """\
import argparse
import torch

class Options:
    device = "cuda:0"  # cause
    fallback = "cuda" if torch.cuda.is_available() else "cpu"  # innocent

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=["cpu", "cuda"])  # innocent

def build(options):
    return torch.nn.Linear(2, 3).to(options.device)

build(Options())
"""
    first = _diagnosed(tmp_path, text).causes[0]
    named = {step.span.row for step in first.evidence if step.role is Role.CAUSE}
    assert _rows(text, "cause") <= named
    assert not _rows(text, "innocent") & named


def test_a_line_of_known_sizes_that_fit_is_no_cause(tmp_path: Path) -> None:
    """The sources have changed since: nothing in the failing line explains the message any more."""
    text = SCRIPTS[0].text
    (tmp_path / "train.py").write_text(text)
    log = traceback_of(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(text.replace("nn.Linear(8, 9)  # cause", "nn.Linear(8, 8)  # cause"))
    found = diagnose_log(log.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert found.causes == ()


def test_two_functions_of_one_name_are_no_cause(tmp_path: Path) -> None:
    method = "class {}:\n    def build(self, width):\n        pass\n\n\n"
    use = "method = vars(B)['build']\nmethod.__qualname__ = 'build'\nmethod()\n"
    text = method.format("A") + method.format("B") + use
    found = _diagnosed(tmp_path, text)
    assert found.explanation is not None
    assert found.causes == ()


def test_the_gradient_of_a_backward_is_no_subject(tmp_path: Path) -> None:
    text = """\
import json
import torch

layer = torch.nn.Linear(2, 1)
out = layer(torch.zeros(1, len(json.loads("[1, 2]"))))
gradient = torch.ones(1, 1)
for _ in json.loads("[1, 2]"):
    out.backward(gradient)
"""
    found = _diagnosed(tmp_path, text).causes
    rows = {
        step.span.row for each in found[:1] for step in each.evidence if step.message.endswith("is set here")
    }
    assert 6 not in rows


@pytest.mark.slow
def test_the_state_of_the_step_before_is_named_first(tmp_path: Path) -> None:
    text = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 2)
model, loader = accelerator.prepare(model, DataLoader(torch.zeros(4, 4)))
state = None
for x in loader:
    with accelerator.accumulate(model):
        out = model(x)
        state = out.mean(0) if state is None else 0.9 * state + 0.1 * out.mean(0)  # cause
        loss = (out - state).sum()
        accelerator.backward(loss)
"""
    first = _diagnosed(tmp_path, text).causes[0]
    assert first.finding.name == "second-backward"
    set_here = [step.span.row for step in first.evidence if step.message.endswith("is set here")]
    assert {set_here[0]} == _rows(text, "cause")
