"""The batch that a Trainer passes to forward: refused where transformers itself ends in a TypeError."""

from __future__ import annotations

import itertools
import warnings

import pytest
from checking import Check
from transformers import Trainer

SCRIPT = """
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, {parameters}):
        scores = self.layer({first}.float())
        return {{"loss": scores.sum(), "logits": scores}}


rows = Dataset.from_dict({{{columns}}})
arguments = TrainingArguments("out", {setting}use_cpu=True, report_to=[])
trainer = Trainer(model=Net(), args=arguments, train_dataset=rows)
"""
COLUMNS = {
    "x": '"x": [[1.0, 2.0]] * 4',
    "y": '"y": [[1.0, 2.0]] * 4',
    "label": '"label": [0, 1, 0, 1]',
    "labels": '"labels": [0, 1, 0, 1]',
}
PARAMETERS = ("x", "x, labels=None", "x, labels", "x, y=None, **rest")
COMBINED = [("x",), ("x", "labels"), ("x", "label"), ("x", "y"), ("y", "labels")]


@pytest.mark.parametrize(
    ("parameters", "columns", "removes"), list(itertools.product(PARAMETERS, COMBINED, (True, False)))
)
def test_keys_of_the_batch(check: Check, parameters: str, columns: tuple[str, ...], removes: bool) -> None:
    script = SCRIPT.format(
        parameters=parameters,
        first="x",
        columns=", ".join(COLUMNS[name] for name in columns),
        setting="" if removes else "remove_unused_columns=False, ",
    )
    space: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(script, space)
    trainer = space["trainer"]
    assert isinstance(trainer, Trainer)
    raises = ""
    try:
        batch = next(iter(trainer.get_train_dataloader()))
        trainer.compute_loss(trainer.model, batch)
    except ValueError as error:
        # SF404 reports that no column is left.
        raises = "" if "No columns" in str(error) else "another error"
    except TypeError as error:
        raises = "SF401" if "unexpected" in str(error) else "SF403"
    found = {finding.code for finding in check(script, ["SF401", "SF403"])}
    assert found == ({raises} if raises else set())
