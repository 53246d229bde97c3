"""The places, numbers and calls of a finding's evidence."""

from __future__ import annotations

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic, Moment, Role

LAYERS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(
    nn.Linear(8, 16),
    nn.ReLU(),
    nn.Linear(12, 2),
)
loader = DataLoader(TensorDataset(torch.rand(100, 8)), batch_size=64)
"""


def rows(finding: Diagnostic, role: Role) -> list[int]:
    return [step.span.row for step in finding.evidence if step.role is role]


def test_the_wrong_layer_of_a_sequential_is_the_place_to_edit(check: Check) -> None:
    (found,) = check(LAYERS + "for (x,) in loader:\n    net(x)\n", ["SF502"])
    assert (found.span.row, found.failing.row) == (8, 12)
    assert (rows(found, Role.CAUSE), rows(found, Role.PRODUCER)) == ([8], [6])
    assert [step.label for step in found.evidence if step.role is Role.PRODUCER] == ["outputs 16"]


def test_the_first_layer_of_a_sequential_is_the_place_to_edit(check: Check) -> None:
    (found,) = check(LAYERS + "net(torch.rand(4, 9))\n", ["SF501"])
    assert (found.span.row, found.failing.row) == (6, 11)
    assert found.message.startswith("`nn.Linear(8, 16)` in `net` expects")


def test_a_layer_on_its_own_is_reported_where_it_is_called(check: Check) -> None:
    (found,) = check(
        "import torch\nfrom torch import nn\nfc = nn.Linear(8, 2)\nfc(torch.rand(4, 9))\n", ["SF501"]
    )
    assert (found.span.row, rows(found, Role.CAUSE)) == (4, [3])


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("    net(x)", True),
        ("    for _ in range(3):\n        net(x)", True),
        ("    if flag():\n        net(x)", False),
        ("    if flag():\n        continue\n    net(x)", False),
    ],
)
def test_the_first_batch_raises_if_nothing_may_skip_it(check: Check, body: str, first: bool) -> None:
    (found,) = check(f"from flags import flag\n{LAYERS}for (x,) in loader:\n{body}\n", ["SF502"])
    assert found.error is not None
    assert found.error.moment is (Moment.FIRST_BATCH if first else Moment.UNKNOWN)


def test_outside_of_a_loop_over_batches_there_is_no_first_batch(check: Check) -> None:
    (found,) = check(LAYERS + "for _ in range(3):\n    net(torch.rand(4, 8))\n", ["SF502"])
    assert found.error is not None
    assert found.error.moment is Moment.UNKNOWN


def test_sizes_are_those_of_a_full_batch_and_of_the_defaults(check: Check) -> None:
    code = """\
import argparse
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
args = parser.parse_args()
loader = DataLoader(TensorDataset(torch.rand(100, 7, 8)), batch_size=args.batch_size)
for (x,) in loader:
    y = x.transpose(1, 2)
    y.view(-1, 7)
"""
    (found,) = check(code, ["SF101"])
    labels = [step.label for step in found.evidence if step.role is Role.PRODUCER]
    assert labels == ["transposed: [64, 8, 7], not contiguous"]


def test_the_way_is_the_one_that_the_run_takes_first(check: Check) -> None:
    code = """\
import torch

def shared(x):
    return x.transpose(1, 2).view(-1)

def train(x):
    shared(x)

def evaluate(x):
    shared(x)

train(torch.rand(2, 3, 4))
evaluate(torch.rand(2, 3, 4))
"""
    (found,) = check(code, ["SF101"])
    assert [step.label for step in found.calls] == ["train(torch.rand(2, 3, 4))", "shared(x)"]
    assert [step.span.row for step in found.calls] == [12, 7]


def test_long_arguments_of_a_call_are_omitted(check: Check) -> None:
    code = """\
import torch

def shared(x, first, second):
    return x.transpose(1, 2).view(-1)

shared(torch.rand(2, 3, 4), "a long argument", "and another one")
"""
    (found,) = check(code, ["SF101"])
    assert [step.label for step in found.calls] == ["shared(…)"]


COLLATED = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {item}

def collate(rows):
    x = torch.stack(rows)
    return {batch}

class Collator:
    def __call__(self, rows):
        return collate(rows)

    def together(self, rows):
        return collate(rows)

for x in DataLoader(Rows(), batch_size=4, collate_fn={collator}):
    pass
"""
ITEM, BATCH = "torch.zeros(3, 2)", "torch.stack(rows)"


@pytest.mark.parametrize(
    ("item", "batch", "collator", "way"),
    [
        (ITEM, "x.view(5, 7)", "collate", ["collate called for each batch of DataLoader(…)"]),
        (
            ITEM,
            "x.view(5, 7)",
            "Collator()",
            ["Collator.__call__ called for each batch of DataLoader(…)", "collate(rows)"],
        ),
        (
            ITEM,
            "x.view(5, 7)",
            "Collator().together",
            ["Collator.together called for each batch of DataLoader(…)", "collate(rows)"],
        ),
        (f"{ITEM}.view(5)", BATCH, "None", ["Rows.__getitem__ called for each sample of DataLoader(…)"]),
        (f"{ITEM}.view(5)", BATCH, "collate", ["Rows.__getitem__ called for each sample of DataLoader(…)"]),
    ],
)
def test_a_function_that_the_loader_calls_is_named(
    check: Check, item: str, batch: str, collator: str, way: list[str]
) -> None:
    code = COLLATED.replace("{item}", item).replace("{batch}", batch).replace("{collator}", collator)
    (found,) = check(code, ["SF507"])
    assert [step.label for step in found.calls] == way
