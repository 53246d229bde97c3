"""Keys of a batch that a model does nothing with, and views that one row of a batch makes legal."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from probing import probed, row

from shapefix.diagnostics import Condition
from shapefix.runtime.agent.watchers.views import grown_sizes, legal_only_at_one

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.slow

BERT = """
import torch
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
    num_labels=3,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters())
ids, labels = torch.randint(0, 50, (4, 7)), torch.randint(0, 3, (4,))
"""

MASKS = """
batch = {"input_ids": ids, "attention_masks": torch.ones_like(ids), "labels": labels}
for _ in range(9):
    model(**batch).loss.backward()  # fault
    optimizer.step()
    optimizer.zero_grad()
"""

LABEL = """
for _ in range(9):
    loss = model(input_ids=ids, label=labels).loss  # fault
    loss.backward()
"""

WITHOUT = """
for _ in range(9):
    outputs = model(input_ids=ids, attention_mask=torch.ones_like(ids))  # fault
    outputs.loss.backward()
"""

RIGHT = """
for _ in range(9):
    logits = model(input_ids=ids, label=labels, attention_mask=torch.ones_like(ids)).logits
    torch.nn.functional.cross_entropy(logits, labels).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (
            MASKS,
            "SF402",
            "ignores `attention_masks` (accepted by `**kwargs`); it reads `attention_mask`",
        ),
        (LABEL, "SF402", "ignores `label`; it reads `labels`, so its loss is None"),
        (WITHOUT, "SF403", "is called without `labels`, so its loss is None"),
    ],
)
def test_keys_that_a_model_ignores_or_lacks(script: str, code: str, said: str, tmp_path: Path) -> None:
    ran = probed(tmp_path, BERT + script)
    assert [(each.code, each.span.row) for each in ran.found] == [(code, row(BERT + script, "fault"))]
    assert said in ran.found[0].message


def test_a_loss_that_is_computed_elsewhere_needs_no_labels(tmp_path: Path) -> None:
    ran = probed(tmp_path, BERT + RIGHT)
    assert ran.found == []
    assert ran.run.trained


NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 8), nn.Parameter(torch.randn(1, 12, 8))
        self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 9)

    def forward(self, ids, attention_mask=None, **others):
        x = self.words(ids)
        x = x + self.places[:, : x.shape[1]].view(1, -1, 8)
        return self.head(self.layer(x))

net = Net()
optimizer = torch.optim.AdamW(net.parameters())
ids = torch.randint(0, 9, (ROWS, 6))
images = torch.randn(ROWS, 1, 5, 5).permute(0, 2, 3, 1).view(ROWS, -1)  # grey
for _ in range(9):
    logits = net(ids=ids, attention_mask=torch.ones_like(ids), extra=1)  # called
    loss = F.cross_entropy(logits[:, :-1].SHAPE(-1, 9), ids[:, 1:].reshape(-1))  # fault
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_view_that_only_one_row_makes_legal(tmp_path: Path) -> None:
    script = NET.replace("ROWS", "1").replace("SHAPE", "view")
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.severity, found.span.row) == ("SF101", "warning", row(script, "fault"))
    assert found.message == "`.view(-1, 9)` of f32[1, 5, 9] is legal only because the batch has one row"
    assert found.condition == Condition("the batch has more than one row")
    notes = [(each.name, each.span.row) for each in ran.notes]
    assert notes == [
        ("unread-argument", row(script, "called")),
        (found.name, row(script, "grey")),
    ]
    assert "is legal only because dimension 3 has the size 1" in ran.notes[1].message


@pytest.mark.parametrize("rows", ["1", "4"])
def test_reshape_is_right_with_any_number_of_rows(rows: str, tmp_path: Path) -> None:
    ran = probed(tmp_path, NET.replace("ROWS", rows).replace("SHAPE", "reshape"))
    assert ran.found == []
    assert ran.run.trained


def test_no_larger_size_is_legal_where_a_view_is_legal_at_one_only() -> None:
    """The same operations on a larger tensor, with torch: each size that may be wanted is refused."""
    import torch

    choose = random.Random(0)
    told = 0
    for _ in range(1500):
        size = [choose.choice([1, 1, 2, 3]) for _ in range(choose.randint(2, 4))]
        order = choose.sample(range(len(size)), len(size))
        cut = choose.choice([None, *range(len(size))])

        def made(sizes: list[int], order: list[int] = order, cut: int | None = cut) -> torch.Tensor:
            tensor = torch.empty(sizes)
            if cut is not None and sizes[cut] > 2:
                tensor = tensor.narrow(cut, 1, sizes[cut] - 1)
            return tensor.permute(order)

        tensor = made(size)
        wanted = [choose.choice([tensor.numel(), *tensor.shape]), -1][:: choose.choice([1, -1])]
        try:
            tensor.view(wanted)
        except RuntimeError:
            continue
        for dimension in legal_only_at_one(tuple(tensor.shape), tensor.stride(), tuple(wanted)):
            told += 1
            larger = list(size)
            larger[order[dimension]] = 2
            for each in grown_sizes(tuple(tensor.shape), tuple(wanted)):
                with pytest.raises(RuntimeError):
                    made(larger).view(each)
    assert told > 50


HEADS = """
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, number):
        return torch.randn(5, 8, 1).permute(2, 0, 1).view(-1).view(5, 8)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x).view(len(x), 1, 5, 8).transpose(1, 2)
        return y.CONTIGUOUSview(len(x), 5, 8)  # viewed

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x in DataLoader(Samples(), batch_size=4):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("call", "noted"), [("", True), ("contiguous().", False)])
def test_a_view_of_a_contiguous_copy_is_legal_for_any_size(tmp_path: Path, call: str, noted: bool) -> None:
    script = HEADS.replace("CONTIGUOUS", call)
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert [each.span.row for each in ran.notes] == [row(script, "viewed")] * noted
