"""Findings of losses, metrics and dtypes: their repairs, and what keeps them silent."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Comparison, Condition, Diagnostic, Variable
from shapefix.repair.edits import apply

CODES = frozenset({"SF508", "SF509", "SF512"})
HEAD = """\
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of the three rules in code."""
    return check(HEAD + textwrap.dedent(code), CODES)


def repairs(diagnostic: Diagnostic) -> list[tuple[Applicability, str]]:
    """What each fix writes, with its applicability."""
    return [(fix.applicability, "".join(edit.content for edit in fix.edits)) for fix in diagnostic.fixes]


@pytest.mark.parametrize(
    ("code", "repair"),
    [
        (
            "F.nll_loss(torch.rand(8, 3), torch.zeros(8, 1))",
            (Applicability.UNSAFE, ".squeeze(1)"),
        ),
        ("F.nll_loss(torch.rand(8, 1), torch.zeros(8, 1).long())", (Applicability.DISPLAY, "")),
        (
            "F.cross_entropy(torch.rand(8, 3), torch.zeros(8, 1).long())",
            (Applicability.SAFE, ".squeeze(1)"),
        ),
        (
            "F.nll_loss(torch.rand(8, 20, 3), torch.zeros(8, 20).long())",
            (Applicability.SAFE, ".transpose(1, 2)"),
        ),
        (
            "F.cross_entropy(torch.rand(2, 8, 9, 3), torch.zeros(2, 8, 9).long())",
            (Applicability.SAFE, ".movedim(-1, 1)"),
        ),
        (
            "F.binary_cross_entropy(torch.rand(8), torch.rand(8, 1))",
            (Applicability.SAFE, ".squeeze(1)"),
        ),
        (
            "F.binary_cross_entropy_with_logits(torch.rand(8, 1), torch.rand(8))",
            (Applicability.SAFE, ".unsqueeze(1)"),
        ),
        (
            "F.mse_loss(torch.rand(8, 5, 1), torch.rand(8, 5))",
            (Applicability.SAFE, ".unsqueeze(2)"),
        ),
        ("F.mse_loss(torch.rand(8, 1), torch.rand(8))", (Applicability.UNSAFE, ".unsqueeze(1)")),
        ("F.l1_loss(torch.rand(8), torch.rand(8, 1))", (Applicability.UNSAFE, ".squeeze(1)")),
        ("F.cross_entropy(torch.rand(8, 3), torch.zeros(8).int())", (Applicability.SAFE, ".long()")),
        ("F.cross_entropy(torch.rand(8, 3), torch.zeros(8))", (Applicability.UNSAFE, ".long()")),
        (
            "F.binary_cross_entropy(torch.rand(8), torch.zeros(8).bool())",
            (Applicability.SAFE, ".float()"),
        ),
        ("nn.Embedding(4, 4)(torch.zeros(8))", (Applicability.UNSAFE, ".long()")),
        ("nn.Embedding(4, 4)(torch.zeros(8).bool())", (Applicability.DISPLAY, "")),
        ("x = torch.zeros(8)\nnn.Embedding(4, 4)((x - x.mean()) / x.std())", (Applicability.DISPLAY, "")),
        ("F.cross_entropy(torch.rand(8, 2), torch.zeros(8).bool())", (Applicability.SAFE, ".long()")),
        ("nn.Linear(4, 4)(torch.from_numpy(np.ones((2, 4))))", (Applicability.UNSAFE, ".float()")),
        ("nn.Conv2d(3, 4, 1)(torch.zeros(1, 3, 4, 4).byte())", (Applicability.UNSAFE, ".float()")),
        ("nn.Linear(4, 4)(torch.arange(4))", (Applicability.DISPLAY, ".float()")),
        ("nn.Linear(4, 4)(torch.rand(4).half())", (Applicability.DISPLAY, ".float()")),
    ],
)
def test_the_repair_follows_from_the_evidence(
    check: Check, code: str, repair: tuple[Applicability, str]
) -> None:
    (diagnostic,) = found(check, code)
    assert repairs(diagnostic) == [repair]


@pytest.mark.parametrize(
    "code",
    [
        # Pairs, by design.
        "y = torch.rand(8)\n(y.unsqueeze(1) - y).abs().mean()",
        "y = torch.rand(8)\nc = y.reshape(-1, 1)\n(c == y).sum()",
        "a, b = torch.rand(8), torch.rand(8)\n(a[:, None] == b).sum()",
        "a, b = torch.rand(8), torch.rand(8)\n(a.view(-1, 1) != b).sum()",
        # No prediction, or no sum of all of it.
        "a, b = torch.rand(8, 1), torch.rand(8)\n(a - b).abs().mean()",
        "a, b = torch.rand(8, 1), torch.rand(8)\n(a == b).sum(0)",
        # The sizes are only equal if the data happen to be.
        "def f(a, b):\n    a, b = a.view(-1, 1), b.view(-1)\n    return (a == b).sum()",
        # Somebody else's contexts may be autocast.
        "def f(context):\n    with context:\n        return nn.Linear(4, 4)(torch.rand(2, 4).half())",
        "def f(x):\n    return nn.Linear(4, 4)(x)\n\n"
        "with torch.autocast('cuda'):\n    f(torch.rand(2, 4).half())",
        "@torch.autocast('cuda')\ndef f(x):\n    return nn.Linear(4, 4)(x)\n\nf(torch.rand(2, 4).half())",
        # The weights were converted, or may have been.
        "m = nn.Sequential(nn.Linear(4, 4))\nm.to(torch.float64)\nm(torch.rand(2, 4).double())",
        "m = nn.Linear(4, 4)\nm = m.type(torch.DoubleTensor)\nm(torch.rand(2, 4).double())",
        "def f(dtype):\n    m = nn.Linear(4, 4).to(dtype)\n    return m(torch.rand(2, 4).double())",
        "torch.set_default_dtype(torch.float64)\nnn.Linear(4, 4)(torch.from_numpy(np.ones((2, 4))))",
        "class N(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
        "    def forward(self, x):\n        return self.fc(torch.from_numpy(np.ones((2, 4))))",
        # The tensor was converted, or may have been.
        "def f(x, dtype):\n    return nn.Linear(4, 4)(torch.arange(4).to(dtype))",
        "def f(x, like):\n    return nn.Linear(4, 4)(torch.arange(4).type_as(like))",
        "nn.Linear(4, 4)(torch.arange(4).type('torch.FloatTensor'))",
        "nn.Linear(4, 4)(torch.arange(4).type(torch.cuda.FloatTensor))",
        "def f(flag):\n    x = torch.arange(4)\n    if flag:\n        x = x.float()\n"
        "    return nn.Linear(4, 4)(x)",
        "nn.Linear(4, 4)(torch.Tensor(np.ones((2, 4))))",
        "nn.Linear(4, 4)(torch.tensor(np.ones((2, 4), dtype=np.float32)))",
        # A branch that looks at what came in.
        "def f(p, y):\n    if y.dim() == 2:\n        y = y.squeeze(1)\n    return F.cross_entropy(p, y)\n\n"
        "f(torch.rand(8, 3), torch.zeros(8, 1).long())",
    ],
)
def test_what_keeps_silent(check: Check, code: str) -> None:
    assert found(check, code) == []


def test_the_way_of_an_array_is_told(check: Check) -> None:
    (diagnostic,) = found(
        check,
        """
        from torch.utils.data import DataLoader, TensorDataset
        X = np.random.rand(32, 4)
        for (x,) in DataLoader(TensorDataset(torch.from_numpy(X)), batch_size=8):
            nn.Linear(4, 2)(x)
        """,
    )
    assert [step.message for step in diagnostic.evidence] == [
        "`nn.Linear(4, 2)` created here",
        "created by numpy here",
        "collated here",
        "`x` is float64 here: its weights are float32",
    ]


def test_a_pair_of_unknown_sizes_states_its_condition(check: Check) -> None:
    (diagnostic,) = found(
        check,
        """
        def loss(logits, labels):
            B, T, V = logits.shape
            return F.cross_entropy(logits, labels.view(B, T))
        """,
    )
    assert diagnostic.code == "SF508"
    assert diagnostic.condition == Condition("`T` != `V`", Comparison(Variable("T"), "!=", Variable("V")))
    assert repairs(diagnostic) == [(Applicability.UNSAFE, ".transpose(1, 2)")]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("x = self.softmax(x)", ""),
        ("x = torch.softmax(x, dim=1)  # probabilities", ""),
        ("x = x.softmax(dim=1)", ""),
        ("y = x = self.softmax(x)", "y = x = x"),
        ("y = self.softmax(x); x = y", "y = x; x = y"),
    ],
)
def test_a_layer_that_is_left_out_leaves_no_assignment_to_itself(line: str, kept: str, check: Check) -> None:
    code = f"""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.softmax = nn.Linear(8, 3), nn.Softmax(dim=1)

    def forward(self, x):
        x = self.fc(x)
        {line}
        return x


loss = nn.CrossEntropyLoss()(Net()(torch.rand(4, 8)), torch.zeros(4).long())
"""
    (diagnostic,) = check(code, {"SF513"})
    (fix,) = diagnostic.fixes
    repaired, _, _ = apply(code, [fix])
    assert repaired == code.replace(f"        {line}\n", f"        {kept}\n" if kept else "")
    exec(repaired, {})


COLLATED = """
from datasets import load_dataset
from torch.utils.data import DataLoader
from tqdm import tqdm
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq

tokenizer = AutoTokenizer.from_pretrained("facebook/bart-base")
model = AutoModelForSeq2SeqLM.from_pretrained("facebook/bart-base")


def encode(rows):
    encoded = tokenizer(rows["text"], truncation=True)
    encoded["labels"] = tokenizer(rows["summary"], truncation=True)["input_ids"]
    return encoded


rows = load_dataset("notes", split="train")
rows = rows.map(encode, batched=True, remove_columns=rows.column_names)
batches = DataLoader(rows, batch_size=8, collate_fn=DataCollatorForSeq2Seq(tokenizer, model=model))
for batch in tqdm(batches):
    scores = model(**batch)[1]
    loss = nn.CrossEntropyLoss()(scores.view(-1, model.config.vocab_size), batch["labels"].view(-1))
"""


def test_a_collator_pads_labels_with_ids_outside_of_the_loss(check: Check) -> None:
    assert not check(HEAD + COLLATED, {"SF203"})
