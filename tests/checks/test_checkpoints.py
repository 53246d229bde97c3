"""SF703: what checkpoints do to gradients, asked of torch and transformers, and what is said of them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic

if TYPE_CHECKING:
    from torch import nn

HEAD = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block = nn.Linear(3, 3)
x = torch.randn(2, 3)
"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of SF703 in a script that ends in code."""
    return check(HEAD + code, {"SF703"})


@pytest.mark.parametrize("stated", ["True", "False", ""])
@pytest.mark.parametrize("requires", [True, False])
def test_what_is_said_is_what_torch_does(stated: str, requires: bool, check: Check) -> None:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    block, x = nn.Linear(3, 3), torch.randn(2, 3, requires_grad=requires)
    given = {"use_reentrant": stated == "True"} if stated else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lost = not checkpoint(block, x, **given).requires_grad
    written = f", use_reentrant={stated}" if stated else ""
    code = f"x.requires_grad_({requires})\ncheckpoint(block, x{written})\n"
    assert bool(found(check, code)) is lost


@pytest.mark.parametrize("arguments", ["x, flag", "[x]", "*parts", "torch.load('x.pt')"])
def test_inputs_of_which_not_all_is_known_are_silent(arguments: str, check: Check) -> None:
    known = "import sys\nflag = sys.argv\nparts = eval('x')\n"
    assert found(check, f"{known}checkpoint(block, {arguments}, use_reentrant=True)\n") == []


def tiny_llama() -> nn.Module:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=50, **sizes)).train()


@pytest.mark.parametrize("reentrant", [True, False])
def test_transformers_itself_switches_the_cache_off(reentrant: bool) -> None:
    import torch

    model, ids = tiny_llama(), torch.randint(0, 50, (2, 8))
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    output = model(input_ids=ids, labels=ids, use_cache=True)
    output.loss.backward()
    assert output.past_key_values is None
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("reentrant", [True, False])
def test_transformers_trains_behind_frozen_embeddings(reentrant: bool) -> None:
    import torch

    model, ids = tiny_llama(), torch.randint(0, 50, (2, 8))
    model.get_input_embeddings().requires_grad_(False)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    model(input_ids=ids, labels=ids).loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
