"""Values not shown by the code: windows of a text, properties, branches of some passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check

from shapefix.diagnostics import Applicability
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

WINDOWS = """\
import torch
from torch import nn

from parts import load_model, load_text


def evaluate(model, ids, length):
    losses = []
    for i in range(ids.numel() // length):
        window = ids[:, {bounds}]
        losses.append(nn.functional.cross_entropy(model(window)[0, 1:], window[:, 1:].view(-1)))
    return torch.stack(losses)


evaluate(load_model(), load_text(), 16)
"""
NEW_DICTIONARY = """\
import torch
from parts import data


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.users = torch.nn.Embedding(4, 8)

    def forward(self, tables):
        tables["user"] = self.users(tables["user"])
        return tables["user"]


model = Model()
model(data.tables)
model(data.tables)
"""
KEPT_DICTIONARY = NEW_DICTIONARY.replace(
    "from parts import data", "data = {'user': torch.arange(4)}"
).replace("data.tables", "data")
OWN_DATASET = """\
import torch
from torch.utils.data import DataLoader


class Graph:
    def to(self, device):
        return self


class Sampler(DataLoader):
    def __init__(self, rows):
        self.rows = rows
        super().__init__(self, batch_size=1, collate_fn=self.collate)

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.rows[index], self.rows

    def collate(self, samples):
        return Graph()


for graph in Sampler(torch.randn(3, 2)):
    graph = graph.to("cpu")
"""
SOME_PASSES = """\
import torch


def distance(x, y):
    return (x - y).pow(2).mean()


def train(loader, every=100):
    step = -1
    for batch in loader:
        step += 1
        loss = distance(batch, torch.randn(5, 4))
        if {test}:
            print(loss.data[0])


train(torch.utils.data.DataLoader(torch.rand(20, 4), batch_size=5))
"""
TRIED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 4)

    def forward(self, x):
        return self.conv(x)


Net()(torch.randn(10, 1, 64, 64))
"""


def reservations(folder: Path, text: str) -> list[str]:
    (folder / "train.py").write_text(text, "utf-8")
    session = CheckSession((str(folder),), Settings(CheckOptions(use_cache=False))).run()
    return [each.reservation for each in (*session.findings(), *session.hidden()) if each.code == "SF101"]


def test_a_window_of_an_unknown_text_may_have_one_row(tmp_path: Path) -> None:
    (reason,) = reservations(tmp_path, WINDOWS.format(bounds="(i * length):((i + 1) * length)"))
    assert reason.startswith("it is assumed that a run has ")


def test_a_slice_of_an_unknown_batch_has_several_rows(tmp_path: Path) -> None:
    assert reservations(tmp_path, WINDOWS.format(bounds=":length")) == [""]


def test_an_attribute_of_an_unknown_object_may_be_made_anew(check: Check) -> None:
    assert not check(NEW_DICTIONARY)
    assert [each.code for each in check(KEPT_DICTIONARY)] == ["SF512"]


def test_a_loader_may_be_its_own_dataset(check: Check) -> None:
    assert not check(OWN_DATASET)


@pytest.mark.parametrize("test", ["step % every == 0", "step % 10 == 9 and step > 0", "True"])
def test_a_branch_of_some_passes_is_taken(check: Check, test: str) -> None:
    assert [each.code for each in check(SOME_PASSES.format(test=test))] == ["SF507"]


def test_a_layer_is_not_changed_for_a_trial_call(check: Check) -> None:
    (alone,) = check(TRIED)
    (tried,) = check(f"{TRIED}\n\ndef train(images):\n    return Net()(images)\n")
    assert [fix.applicability for fix in alone.fixes] == [Applicability.UNSAFE]
    assert [fix.applicability for fix in tried.fixes] == [Applicability.DISPLAY]
