"""Batches of a loader: the smaller last one, and those of a tokenizer's results."""

from __future__ import annotations

import contextlib
import io
import textwrap

import pytest
from checking import Check

LOOP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

size = 8
loader = DataLoader(TensorDataset(torch.zeros(20, 3, 4)), batch_size=size)
lstm = nn.LSTM(4, 5, batch_first=True)
state = torch.zeros(1, size, 5), torch.zeros(1, size, 5)
for (x,) in loader:
    {guard}
    out, _ = lstm(x, state)
"""
GUARDS = (
    "if x.size(0) != size: continue",
    "if len(x) < size: break",
    "if x.shape[0] < 8: continue",
    "n = x.size(0); state = torch.zeros(1, n, 5), torch.zeros(1, n, 5)",
)


def run(code: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "program", "exec"), {})


def test_a_state_of_the_full_batch_size_is_reported(check: Check) -> None:
    code = LOOP.format(guard="pass")
    with pytest.raises(RuntimeError) as raised:
        run(code)
    (found,) = check(code, {"SF507"})
    assert found.error is not None
    assert found.error.message == str(raised.value)


@pytest.mark.parametrize("guard", GUARDS)
def test_a_test_of_the_batch_size_may_leave_out_the_last_batch(guard: str, check: Check) -> None:
    code = LOOP.format(guard=guard)
    run(code)
    assert check(code, {"SF507"}) == []


def test_a_batch_of_encodings_has_their_methods(check: Check) -> None:
    from torch.utils.data import default_collate
    from transformers import BatchEncoding

    assert isinstance(default_collate([BatchEncoding({"a": 1}), BatchEncoding({"a": 2})]), BatchEncoding)
    code = """
    from torch.utils.data import DataLoader, Dataset
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

    class Texts(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return tokenizer("a text", padding="max_length", max_length=8, return_tensors="pt")

    for batch in DataLoader(Texts(), batch_size=2):
        batch = batch.to("cpu")
    """
    assert check(textwrap.dedent(code), {"SF405"}) == []


def test_a_loss_of_none_is_no_loss_without_a_gradient(check: Check) -> None:
    code = """
    import torch
    from torch import nn

    class Stub(nn.Module):
        def forward(self, x):
            pass

    model, layer = Stub(), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(torch.ones(4, 3)), torch.zeros(4).long())
        loss.backward()
        optimizer.step()
    """
    assert check(textwrap.dedent(code), {"SF803"}) == []
