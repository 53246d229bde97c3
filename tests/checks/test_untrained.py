"""SF605: layers that no optimizer was given, and what looks like that and is none."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic

HEAD = """\
import itertools
import torch
from torch import nn
from data import loader

projection, model = nn.Linear(8, 4), nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
"""
LOOP = """
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(projection(x)), y).backward()
    optimizer.step()
"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of SF605 in code."""
    return check(HEAD + textwrap.dedent(code), {"SF605"})


def test_a_module_that_is_moved_or_cast_keeps_its_parameters() -> None:
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    before = list(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to("cpu").half().double()
    assert all(one is two for one, two in zip(before, model.parameters(), strict=True))
    weight = model.weight.detach().clone()
    model(torch.rand(3, 4).double()).sum().backward()
    optimizer.step()
    assert not torch.equal(model.weight, weight)


def test_an_embedding_that_is_resized_keeps_its_parameter() -> None:
    import transformers

    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=20, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config)
    before = model.get_input_embeddings().weight
    model.resize_token_embeddings(24)
    assert model.get_input_embeddings().weight is before
    assert before.shape[0] == 24


@pytest.mark.parametrize(
    "made",
    [
        "torch.optim.Adam(model.parameters())",
        "torch.optim.Adam([p for n, p in model.named_parameters() if 'bias' in n])",
        "torch.optim.Adam([{'params': model.parameters(), 'lr': 0.1}])",
    ],
)
def test_reported_where_all_parameters_are_known(made: str, check: Check) -> None:
    (finding,) = found(check, f"optimizer = {made}\n{LOOP}")
    assert finding.message.startswith("`projection` is used in the loss")
    assert [step.span.row for step in finding.evidence] == [6, 8, 13]


@pytest.mark.parametrize(
    "made",
    [
        "torch.optim.Adam(itertools.chain(model.parameters(), projection.parameters()))",
        "torch.optim.Adam(everything)",
        "torch.optim.Adam([*model.parameters(), projection.weight])",
        "torch.optim.Adam([p for module in (model, projection) for p in module.parameters()])",
        "make(model)",
        "torch.optim.Adam(nn.ModuleList([model, projection]).parameters())",
        "torch.optim.Adam(nn.ModuleDict({'a': model, 'b': projection}).parameters())",
    ],
)
def test_silent_where_they_may_be_among_them(made: str, check: Check) -> None:
    assert not found(check, f"from elsewhere import everything, make\noptimizer = {made}\n{LOOP}")


@pytest.mark.parametrize(
    "use",
    [
        "criterion(model(projection(x).detach()), y).backward()",
        "print(projection(x)); criterion(model(x), y).backward()",
        "criterion(model(x), projection(x).argmax(1)).backward()",
        "tune(projection); criterion(model(projection(x)), y).backward()",
    ],
)
def test_silent_where_nothing_is_learned_of_it(use: str, check: Check) -> None:
    code = LOOP.replace("criterion(model(projection(x)), y).backward()", use)
    optimizer = "from elsewhere import tune\noptimizer = torch.optim.Adam(model.parameters())"
    assert not found(check, f"{optimizer}\n{code}")
