"""Ranges of class ids in a loss, compared with torch: a reported target raises, others do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checking import Check

TARGETS = (
    "torch.tensor([0, 1, 2])",
    "torch.tensor([0, 1, 3])",
    "torch.tensor([0, -100, 2])",
    "torch.tensor([0, -1, 2])",
    "torch.tensor([3, -1, 2])",
    "torch.arange(3)",
    "torch.arange(1, 4)",
    "torch.full((3,), 3)",
    "torch.ones(3, dtype=torch.long)",
    "torch.zeros(3, dtype=torch.long) - 1",
    "torch.tensor([0, 1, 3]).clamp(max=2)",
    "torch.tensor([1, 2, 3]) - 1",
    "torch.tensor([0, 1, 3])[:2].repeat(2)[:3]",
    "torch.ones(3, 3) / 3",
)
LOSSES = (
    "F.cross_entropy(scores, target)",
    "F.cross_entropy(scores, target, ignore_index=3)",
    "F.cross_entropy(scores, target, reduction='sum', label_smoothing=0.1)",
    "nn.CrossEntropyLoss()(scores, target)",
    "nn.CrossEntropyLoss(ignore_index=-1)(scores, target)",
    "nn.CrossEntropyLoss(weight=torch.ones(3))(scores, target)",
    "F.nll_loss(scores, target)",
    "nn.NLLLoss(reduction='none')(scores, target)",
    "F.cross_entropy(scores.unsqueeze(2).expand(3, 3, 2), target.unsqueeze(1).expand(3, 2))",
)
SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn

scores = torch.rand(3, 3)
"""
NOT_KNOWN = ("clamp", "- 1", "[:2]")
"""Targets of no known range: nothing may be reported."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_reported_targets_raise(check: Check, target: str, loss: str) -> None:
    if "/ 3" in target and ("nll" in loss or "NLL" in loss or "expand" in loss or "ignore" in loss):
        pytest.skip("no loss of probabilities")
    code = f"{SETUP}target = {target}\n{loss}\n"
    raised = ""
    try:
        exec(code, {})
    except (IndexError, RuntimeError) as error:
        raised = f"{error}"
    found = check(code, {"SF517"})
    if found:
        assert "is out of bounds" in raised
        assert found[0].error is not None
        assert found[0].error.message in raised
    elif not any(part in target for part in NOT_KNOWN):
        assert "is out of bounds" not in raised


LOADER = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, SubsetRandomSampler, TensorDataset, random_split
from torch.utils.data import RandomSampler, SequentialSampler
import random

random.seed(1)
labels = [1, 2, 3] * 4


class Rows(Dataset):
    def __len__(self):
        return len(labels)

    def __getitem__(self, i):
        return torch.rand(4), {item}


rows = Rows()
for x, y in {loader}:
    nn.functional.cross_entropy(nn.Linear(4, 3)(x), y)
"""


@pytest.mark.parametrize(
    ("item", "loader"),
    [
        ("labels[i]", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i]", "DataLoader(Rows(), batch_size=4, shuffle=True)"),
        ("torch.tensor(labels[i])", "DataLoader(Rows(), batch_size=4)"),
        ("torch.tensor(labels)[i]", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i] - 1", "DataLoader(Rows(), batch_size=4)"),
        ("3 - labels[i]", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i] + 1", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i] % 3", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i] if labels[i] < 3 else 0", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i]", "DataLoader(Subset(Rows(), [0, 1, 3, 4]), batch_size=4)"),
        ("labels[i]", "DataLoader(Rows(), sampler=SubsetRandomSampler([0, 1]), batch_size=4)"),
        ("labels[i]", "DataLoader(rows, sampler=RandomSampler(rows), batch_size=4)"),
        ("labels[i]", "DataLoader(rows, sampler=SequentialSampler(rows), batch_size=4)"),
        ("labels[i] - 1", "DataLoader(rows, sampler=RandomSampler(rows), batch_size=4)"),
        ("labels[i]", "DataLoader(rows, sampler=SequentialSampler(range(2)), batch_size=4)"),
        (
            "labels[i]",
            "DataLoader(rows, sampler=RandomSampler(data_source=rows), batch_size=4)",
        ),
        ("random.choice([1, 2, 3])", "DataLoader(Rows(), batch_size=4)"),
        ("random.choice([0, 1, 2])", "DataLoader(Rows(), batch_size=4)"),
        ("i % 4", "DataLoader(Rows(), batch_size=4)"),
        ("i % 3", "DataLoader(Rows(), batch_size=4)"),
        ("labels[i]", "DataLoader([(torch.rand(4), i % 4) for i in range(12)], batch_size=4)"),
        ("labels[i]", "DataLoader([(torch.rand(4), i % 3) for i in range(12)], batch_size=4)"),
        ("labels[i]", "DataLoader(TensorDataset(torch.rand(3, 4), torch.arange(1, 4)), batch_size=2)"),
        ("labels[i]", "DataLoader(TensorDataset(torch.rand(3, 4), torch.arange(3)), batch_size=2)"),
    ],
)
def test_labels_of_a_dataset(check: Check, item: str, loader: str) -> None:
    code = LOADER.format(item=item, loader=loader)
    raises = False
    try:
        exec(code, {})
    except IndexError as error:
        raises = "is out of bounds" in str(error)
    assert bool(check(code, {"SF517"})) == raises


TABLES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

numbers = {table}
rows = [("a", "x", 1), ("b", "y", 2), ("c", "z", 3)] * 4


class Rows(Dataset):
    def __len__(self):
        return len(rows)

    def __getitem__(self, i):
        name, other, number = rows[i]
        return torch.rand(4), {item}


for x, y in DataLoader(Rows(), batch_size=4):
    nn.functional.cross_entropy(nn.Linear(4, 3)(x), y)
"""


@pytest.mark.parametrize(
    "item", ["numbers[name]", "numbers.get(name)", "number", "number - 1", "numbers[other]"]
)
@pytest.mark.parametrize(
    "table",
    [
        "{'a': 0, 'b': 1, 'c': 2, 'x': 0, 'y': 1, 'z': 2}",
        "{name: i for i, name in enumerate('abcxyz')}",
        "{name: i % 3 for i, name in enumerate('abcxyz')}",
        "{name: i for i, name in enumerate(['a', 'b', 'c'])} | {'x': 3, 'y': 4, 'z': 5}",
    ],
)
def test_labels_of_a_table(check: Check, table: str, item: str) -> None:
    code = TABLES.format(table=table, item=item)
    raises = False
    try:
        exec(code, {})
    except IndexError as error:
        raises = "is out of bounds" in str(error)
    found = check(code, {"SF517"})
    # Characters of a text are not counted; any key of a table may be looked up, also those of other rows.
    assert found or not raises or "'abcxyz'" in table, code
    assert not found or raises or ("numbers" in item and "class 5" in found[0].message), code


CLASSIFIERS = """\
import torch
from transformers import {model}Config, {model}For{task}

config = {model}Config({settings})
model = {model}For{task}(config)
labels = {labels}
outputs = model(input_ids=torch.ones(4, 6, dtype=torch.long), labels=labels)
"""
SMALL = "vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8"


@pytest.mark.parametrize("model", ["Bert", "DistilBert", "Roberta"])
@pytest.mark.parametrize("task", ["SequenceClassification", "TokenClassification"])
@pytest.mark.parametrize("settings", ["", "num_labels=3", "num_labels=4", "num_labels=1"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_labels_of_a_classifier(check: Check, model: str, task: str, settings: str, most: int) -> None:
    small = SMALL if model != "DistilBert" else "vocab_size=20, dim=8, n_layers=1, n_heads=2, hidden_dim=8"
    rows = [0, 1, most, 0]
    labels: list[Any] = list(rows) if task.startswith("Sequence") else [[number] * 6 for number in rows]
    if settings.endswith("=1") and task.startswith("Sequence"):
        labels = [float(number) for number in rows]
    code = CLASSIFIERS.format(
        model=model,
        task=task,
        settings=", ".join(filter(None, [small, settings])),
        labels=f"torch.tensor({labels})",
    )
    raises = False
    try:
        exec(code, {})
    except IndexError as error:
        raises = "is out of bounds" in str(error)
    found = check(code, {"SF517"})
    is_single = settings.endswith("=1")
    assert bool(found) == (raises and not is_single), code
    if found and not settings:
        assert "num_labels=2" in found[0].message


def test_the_message_is_that_of_torch() -> None:
    with pytest.raises(IndexError, match=r"Target 5 is out of bounds\."):
        torch.nn.functional.cross_entropy(torch.rand(1, 5), torch.tensor([5]))
