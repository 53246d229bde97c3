"""Datasets and the default collation, compared with torch: what is reported raises, and the twin does not."""

from __future__ import annotations

import random

import pytest
import torch
from checking import Check

HEAD = """\
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate, random_split
"""
DATASET = """\
class Data(Dataset):
    def __init__(self):
        self.rows = [[1, 2, 3], [4, 5], [6], [7, 8, 9, 10]]
        self.texts = ["one two", "three", "four five six", "seven"]
        self.found = dict(zip(self.texts, [[1, 2], [3], [4, 5, 6], [7]]))
        self.made = [torch.zeros(random.randint(2, 40), 3) for _ in range(4)]
        self.lengths = torch.randint(2, 40, (4,))

    def __len__(self):
        return 4

    def __getitem__(self, index):
        {}
"""
RAISE = (
    "return torch.tensor(self.rows[index])",
    "return self.rows[index]",
    "return {'row': torch.tensor(self.rows[index]), 'label': index}",
    "return torch.tensor([len(word) for word in self.texts[index].split()])",
    "return torch.zeros(len(self.texts[index])), index",
    "return torch.zeros(3), {'boxes': torch.tensor(self.rows[index]), 'id': torch.tensor([index])}",
    "return torch.tensor(self.found[list(self.found)[index]])",
    "return torch.zeros(3), {'boxes': torch.tensor(self.found[self.texts[index]])}",
    "return self.made[index]",
    "return torch.zeros(self.lengths[index].item())",
    "return np.zeros((3, 8 + index), dtype=np.float32)",
    "return torch.zeros(np.random.randint(2, 40))",
    "return torch.zeros(random.randint(2, 40))[:20 + index]",
    "return None if index == 2 else torch.zeros(3)",
    "return (torch.zeros(3), None)",
    "return {'x': [1, None]}",
)
FINE = (
    "return torch.tensor(self.rows[index][:1])",
    "return torch.tensor((self.rows[index] + [0] * 4)[:4])",
    "return torch.tensor([len(word) for word in self.texts[index].split()][:1])",
    "return self.texts[index]",
    "return torch.zeros(3), {'boxes': torch.tensor(self.rows[index][:1]), 'id': torch.tensor([index])}",
    "return torch.tensor(self.found[self.texts[index]][:1])",
    "return random.randint(0, 3)",
    "return torch.zeros(40)[random.randint(0, 8):][:3]",
    "start = random.randint(0, 8); return torch.zeros(40)[start:start + 4]",
    "n = random.randint(1, 8); return torch.cat([torch.zeros(n), torch.zeros(9 - n)])",
    "return self.made[index].sum(0)",
    "return None if index > 9 else torch.zeros(3)",
)
NOT_SEEN = ("None if index ==", "[1, None]", "index > 9")
"""An expression with `if`, and None in a list, are not followed."""


@pytest.mark.parametrize("body", RAISE)
def test_samples_that_torch_cannot_stack_are_reported(check: Check, body: str) -> None:
    code = f"{HEAD}{DATASET.format(body)}\nfor batch in DataLoader(Data(), batch_size=4):\n    pass\n"
    random.seed(1)
    torch.manual_seed(1)
    with pytest.raises((TypeError, RuntimeError)) as raised:
        exec(code, {"__name__": "script"})
    found = check(code, {"SF302", "SF410"})
    if any(part in body for part in NOT_SEEN):
        assert not found
        return
    assert len(found) == 1, body
    assert found[0].error is not None
    assert found[0].error.type == type(raised.value).__name__
    assert all(part in str(raised.value) for part in found[0].error.message.split(" ... "))


@pytest.mark.parametrize("body", FINE)
def test_samples_that_torch_stacks_are_not_reported(check: Check, body: str) -> None:
    code = f"{HEAD}{DATASET.format(body)}\nfor batch in DataLoader(Data(), batch_size=4):\n    pass\n"
    exec(code, {"__name__": "script"})
    assert check(code, {"SF302", "SF410"}) == []


@pytest.mark.parametrize("settings", ["batch_size=2", "batch_size=4, shuffle=True", "batch_size=1"])
def test_none_in_any_place_raises(check: Check, settings: str) -> None:
    body = "\n        ".join(("if index == 1:", "    return None", "return torch.zeros(3), index"))
    code = f"{HEAD}{DATASET.format(body)}\nfor batch in DataLoader(Data(), {settings}):\n    pass\n"
    with pytest.raises(TypeError, match="NoneType"):
        exec(code, {"__name__": "script"})
    (found,) = check(code, {"SF410"})
    assert "returns None" in found.message


def test_parts_of_a_random_split_are_samples_of_the_whole(check: Check) -> None:
    body = "\n        ".join(("if index < 3:", "    return None", "return torch.zeros(3), index"))
    loader = "for batch in DataLoader(random_split(Data(), [2, 2])[0], batch_size=2):\n    pass\n"
    code = f"{HEAD}{DATASET.format(body)}\n{loader}"
    with pytest.raises(TypeError, match="NoneType"):
        exec(code, {"__name__": "script"})
    assert [found.code for found in check(code, {"SF410"})] == ["SF410"]


def test_labels_drawn_at_random_have_their_range(check: Check) -> None:
    body = "return torch.zeros(3), random.randint(0, {})"
    use = (
        "for inputs, targets in DataLoader(Data(), batch_size=4):\n"
        "    torch.nn.functional.cross_entropy(torch.nn.Linear(3, 4)(inputs), targets)\n"
    )
    assert [f.code for f in check(HEAD + DATASET.format(body.format(4)) + use, {"SF517"})] == ["SF517"]
    assert check(HEAD + DATASET.format(body.format(3)) + use, {"SF517"}) == []
