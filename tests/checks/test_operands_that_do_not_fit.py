"""What torch refuses is told, with the reason: hidden states, layers that reshape, parts, distances."""

from __future__ import annotations

import pytest
from checking import Check

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
x = torch.randn(4, 16)
steps = torch.randn(4, 5, 16)
"""
MISFITS = {
    "nn.LSTMCell(16, 8)(x, (torch.zeros(4, 9), torch.zeros(4, 8)))": "a hidden state of last size 8",
    "nn.GRUCell(16, 8)(x, torch.zeros(3, 8))": "the batch size of `x` is 4",
    "nn.GRU(16, 8, 2, batch_first=True)(steps, torch.zeros(1, 4, 8))": "expects size 2 in dimension 0",
    "nn.GRU(16, 8)(steps, torch.zeros(1, 4, 8))": "is 5, its dimension 1 without `batch_first=True`",
    "nn.GRU(16, 8, batch_first=True)(steps, torch.zeros(1, 5, 8))": "the batch size of `steps` is 4",
    "nn.RNN(16, 8, batch_first=True)(steps, torch.zeros(4, 8))": "a hidden state of 3 dimensions",
    "nn.Unflatten(-1, (3, 5))(x)": "a size of 16 is not 3 * 5 = 15",
    "nn.Sequential(nn.ReLU(), nn.Unflatten(1, (2, 4)))(x)": "the input of `nn.Unflatten(1, (2, 4))` is",
    "x.split([5, 6], dim=1)": "its size 16 in dimension 1 is not 5 + 6",
    "torch.cat([x, x], dim=2)": "`x` is f32[4, 16], but it has no dimension 2",
    "torch.cdist(x, torch.randn(5, 11))": "their last sizes, 16 and 11, differ",
    "F.cosine_similarity(x.unsqueeze(1), torch.randn(5, 11), dim=-1)": "cannot be broadcast with 11",
    "F.pairwise_distance(x, torch.randn(3, 16))": "cannot be broadcast",
}
FITS = [
    "nn.LSTMCell(16, 8)(x, (torch.zeros(4, 8), torch.zeros(4, 8)))",
    "nn.GRUCell(16, 8)(x)",
    "nn.GRU(16, 8, 2, batch_first=True)(steps, torch.zeros(2, 4, 8))",
    "nn.GRU(16, 8, bidirectional=True)(steps, torch.zeros(2, 5, 8))",
    "nn.LSTM(16, 8, proj_size=3)(steps, (torch.zeros(1, 5, 3), torch.zeros(1, 5, 8)))",
    "nn.RNN(16, 8)(x, torch.zeros(1, 8))",
    "nn.Unflatten(-1, (2, -1))(x)",
    "x.split([5, 11], dim=1)",
    "torch.cat([x, x], dim=-1)",
    "torch.cdist(x, torch.randn(5, 16))",
    "F.cosine_similarity(x.unsqueeze(1), torch.randn(5, 16), dim=-1)",
]


def messages(code: str, check: Check) -> list[str]:
    return [found.message for found in check(HEAD + code) if found.code in ("SF507", "SF510")]


@pytest.mark.parametrize("code", MISFITS)
def test_what_torch_refuses_is_told(code: str, check: Check) -> None:
    import torch

    with pytest.raises((RuntimeError, IndexError)):
        exec(HEAD + code, {"torch": torch})
    (message,) = messages(f"y = {code}", check)
    assert MISFITS[code] in message


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", FITS)
def test_what_torch_takes_is_no_finding(code: str, check: Check) -> None:
    exec(HEAD + code, {})
    assert not messages(f"y = {code}", check)


def test_what_comes_after_a_refused_write_is_not_told_as_well(check: Check) -> None:
    code = """
h = nn.Linear(16, 8)(x)
h += x
y = nn.Linear(16, 4)(h)
"""
    assert [found.code for found in check(HEAD + code)] == ["SF510"]


PARTS = {
    "a[m] = 0": "The shape of the mask [2, 5] at index 0 does not match",
    "b = a[m]": "The shape of the mask [2, 5] at index 0 does not match",
    "a[12] = 0": "index 12 is out of bounds for dimension 0 with size 10",
    "a[0, 0, 0] = 0": "too many indices for tensor of dimension 2",
    "a[a > 0] = 0": "",
    "a[9] = 0": "",
}


@pytest.mark.parametrize(("statement", "words"), PARTS.items(), ids=PARTS)
def test_a_part_is_written_as_it_is_read(statement: str, words: str, check: Check) -> None:
    text = f"import torch\na, m = torch.rand(10, 1), torch.rand(2, 5) > 0\n{statement}\n"
    raised = ""
    try:
        exec(text, {})
    except IndexError as error:
        raised = str(error)
    found = check(text, {"SF507", "SF510"})
    assert [each.error.message for each in found if each.error] == ([raised] if words else [])
    assert words in raised
