"""Keys that a loop reads, and that no batch of its loader has."""

from __future__ import annotations

import pytest
from checking import Check

CODE = """
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        sample = {{"x": torch.ones(3), "label": i % 2}}
        {more}
        return sample


def train(options):
    for batch in DataLoader(Rows(), batch_size=4):
        {use}


train(None)
"""


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("batch['labels']", 1),
        ("batch['label']", 0),
        ("batch['labels'] = batch.pop('label'); batch['labels']", 0),
        ("batch.get('labels')", 0),
        ("batch['labels'] if options else None", 0),
        ("batch.update(options); batch['labels']", 0),
    ],
)
def test_torch_and_the_finding_agree(check: Check, use: str, found: int) -> None:
    code = CODE.format(more="pass", use=use)
    if found:
        with pytest.raises(KeyError, match="labels"):
            exec(code, {"__name__": "script"})
    elif "options" not in use:
        exec(code, {"__name__": "script"})
    assert [each.code for each in check(code, {"SF403"})] == ["SF403"] * found


@pytest.mark.parametrize(
    "more", ["if i: sample['labels'] = i", "sample.update(load(i))", "sample[name(i)] = 1"]
)
def test_keys_that_some_samples_may_have(check: Check, more: str) -> None:
    assert check(CODE.format(more=more, use="batch['labels']"), {"SF403"}) == []
