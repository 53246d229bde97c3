"""Products, joins, elementwise operations and look-ups: torch refuses what is told, and runs the repair."""

from __future__ import annotations

import random

import pytest
from checking import Check

from shapefix.diagnostics import Applicability
from shapefix.repair.edits import apply

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
q, k = torch.randn(2, 8, 10, 64), torch.randn(2, 8, 10, 64)
a, b = torch.randn(6, 4), torch.randn(5, 4)
hidden, mask, token = torch.randn(4, 7, 16), torch.ones(4, 7), torch.randn(4, 16)
x, skip = torch.randn(1, 3, 24, 24), torch.randn(1, 3, 25, 25)
table = nn.Embedding(10, 3)
"""
OURS = ("SF503", "SF504", "SF505", "SF510")

MISFITS = {
    "s = q @ k": "64 columns and 10 rows cannot be multiplied",
    "s = torch.matmul(a, b)": "4 columns and 5 rows cannot be multiplied",
    "s = a @ torch.randn(3)": "4 columns and 3 elements cannot be multiplied",
    "s = torch.mm(hidden, torch.randn(16, 2))": "`mm` expects a matrix, not 3 dimensions",
    "s = torch.bmm(torch.randn(4, 2, 3), torch.randn(1, 3, 2))": "batch sizes 4 and 1 differ",
    "s = torch.addmm(torch.randn(3), a, b.T)": "size 3 of the added tensor cannot be broadcast to 5",
    "s = torch.einsum('ij,jk->ik', a, b)": "`j` is both 4 and 5",
    "s = torch.einsum('bij->bji', a)": "`a` is f32[6, 4]; 2 dimensions for 3 letters",
    "s = F.linear(a, torch.randn(4, 2))": "last size 4, but the weight expects 2",
    "s = torch.cat([x, skip], dim=1)": "except in dimension 1, but are 24 and 25 in dimension 2",
    "s = torch.cat((a, torch.randn(6, 9)))": "sizes must match except in dimension 0",
    "s = torch.cat([token, hidden], dim=1)": "same number of dimensions: got 3 and 2",
    "s = torch.stack([a, b])": "equal size, but sizes 6 and 5 in dimension 0 differ",
    "s = torch.hstack((a, b))": "sizes must match except in dimension 1, but are 6 and 5 in dimension 0",
    "s = pad_sequence([a, torch.randn(3, 5)])": "only the first dimension is padded",
    "s = hidden * mask": "dimension 2 cannot be broadcast with 7 in dimension 1",
    "s = hidden == token": "broadcast with 4 in dimension 0",
    "s = torch.where(mask > 0, hidden, 0.0)": "dimension 1 cannot be broadcast with 16 in dimension 2",
    "s = hidden.masked_fill(mask > 0, 0.0)": "dimension 2 cannot be broadcast with 7 in dimension 1",
    "s = token.expand(4, 32)": "only a size of 1 can be expanded to 32, not 16",
    "s = a.expand_as(token)": "only a size of 1 can be expanded",
    "s = hidden.gather(2, mask.long())": "2 dimensions, but 3 dimensions expected",
    "s = hidden[torch.ones(4, 8) > 0]": "the mask has size 8, but the tensor has 7",
    "s = torch.zeros(4, 1); s += torch.randn(4, 3)": "cannot grow size 1 in dimension 1 to 3",
    "s = torch.zeros(4, 5); s[:, :3] = torch.randn(4, 4)": "size 4 cannot be broadcast to 3",
    "s = table(torch.tensor([1, 10]))": "contains 10, but `nn.Embedding(10, 3)` has only rows 0 to 9",
    "s = table(torch.arange(12).unsqueeze(0).expand(2, -1))": "contains 11",
    "s = F.embedding(torch.full((2,), 20), table.weight)": "contains 20, but the weight has only rows 0 to 9",
    "s = table(torch.tensor([3, -1]))": "contains -1, but ids start at 0",
}
"""Code that torch refuses, and what is said of it."""

REPAIRED = {
    "s = q @ k": "s = q @ k.transpose(-2, -1)",
    "s = torch.mm(a, b)": "s = torch.mm(a, b.T)",
    "s = a @ torch.randn(6, 4)": None,
    "s = torch.mm(a, torch.randn(7, 4))": "s = torch.mm(a, torch.randn(7, 4).T)",
    "s = (q + 1) @ (k + 1)": "s = (q + 1) @ (k + 1).transpose(-2, -1)",
    "s = b.t() @ (a + 1)": None,
    "s = torch.mm(hidden, torch.randn(16, 2))": "s = torch.matmul(hidden, torch.randn(16, 2))",
    "s = torch.cat((a, torch.randn(6, 9)))": "s = torch.cat((a, torch.randn(6, 9)), dim=1)",
    "s = torch.cat([a, b], -1)": "s = torch.cat([a, b], 0)",
    "s = torch.cat([token, hidden], dim=1)": "s = torch.cat([token.unsqueeze(1), hidden], dim=1)",
    "s = hidden * mask": "s = hidden * mask.unsqueeze(-1)",
    "s = hidden + token": "s = hidden + token.unsqueeze(1)",
    "s = hidden.masked_fill(mask > 0, 0.0)": "s = hidden.masked_fill((mask > 0).unsqueeze(-1), 0.0)",
    "s = torch.zeros(4, 1); s += torch.randn(4, 3)": "s = torch.zeros(4, 1); s = s + torch.randn(4, 3)",
    "s = hidden.gather(2, mask.long())": "s = hidden.gather(2, mask.long().unsqueeze(-1))",
}
"""Code that torch refuses, and its repair; None where several would do."""


def runs(text: str) -> bool:
    """Whether a script runs."""
    try:
        exec(compile(text, "script.py", "exec"), {})
    except (RuntimeError, IndexError, ValueError):
        return False
    return True


@pytest.mark.parametrize("code", MISFITS)
def test_what_is_refused_is_told_with_the_reason(code: str, check: Check) -> None:
    assert not runs(HEAD + code)
    (finding,) = check(HEAD + code)
    assert finding.code in OURS
    assert MISFITS[code] in finding.text


@pytest.mark.parametrize("code", REPAIRED)
def test_the_repair_runs(code: str, check: Check) -> None:
    (finding,) = check(HEAD + code)
    fixes = [fix for fix in finding.fixes if fix.applicability is not Applicability.DISPLAY]
    text, _, _ = apply(HEAD + code, fixes)
    assert not runs(HEAD + code)
    assert text == HEAD + (REPAIRED[code] or code)
    assert runs(text) is bool(fixes)


@pytest.mark.parametrize("seed", range(60))
def test_random_repairs_run(seed: int, check: Check) -> None:
    """Whatever is repaired runs, and the finding was no false alarm."""
    rng = random.Random(seed)
    sizes = [rng.choice((1, 2, 3, 4)) for _ in range(4)]
    one, two = ([rng.choice(sizes) for _ in range(rng.choice((1, 2, 3)))] for _ in range(2))
    operation = rng.choice(
        ("x @ y", "torch.mm(x, y)", "x + y", "torch.cat([x, y], dim=-1)", "torch.bmm(x, y)")
    )
    text = f"import torch\nx, y = torch.randn({one}), torch.randn({two})\nz = {operation}\n"
    findings = [finding for finding in check(text) if finding.code in OURS]
    assert bool(findings) is not runs(text)
    for finding in findings:
        fixes = [fix for fix in finding.fixes if fix.applicability is not Applicability.DISPLAY]
        if fixes:
            repaired, _, _ = apply(text, fixes)
            assert runs(repaired), repaired
