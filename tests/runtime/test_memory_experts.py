"""Mixtures of experts on a GPU that is not there: which row goes where depends on values."""

from __future__ import annotations

import os
from pathlib import Path

import fork_server
import pytest
import torch
from probing import Probed, row

from shapefix.runtime.agent.fake_gpu import grouped_matmul
from shapefix.runtime.run import probe_script

pytestmark = pytest.mark.slow

MIXTRAL = """
import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64,
)
model = MixtralForCausalLM(config).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    ids = torch.randint(0, 64, (2, 16), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

EXPERTS = """
import torch
from torch import nn

class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 3) for _ in range(4))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        order = chosen.argsort()
        counts = COUNTS  # read
        parts = x[order].split(counts)
        rows = [expert(part) for expert, part in zip(self.experts, parts)]
        return torch.cat(rows) * weight[order, None]

model = Experts().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(18, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


def on_no_gpu(folder: Path, script: str) -> Probed:
    (folder / "train.py").write_text(script, "utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        python = fork_server.interpreter()
        return Probed(probe_script(python, "train.py", [], 1, 120.0, ("--device", "fake")), folder)
    finally:
        os.chdir(before)


def test_a_mixture_of_experts_of_transformers(tmp_path: Path) -> None:
    ran = on_no_gpu(tmp_path, MIXTRAL)
    assert ran.found == [], ran.text
    assert ran.run.trained, ran.ending
    assert "mlp MixtralSparseMoeBlock" in ran.text
    assert "gradients for 21 of 21 parameters" in ran.text


def test_rows_are_spread_evenly_over_the_experts(tmp_path: Path) -> None:
    script = EXPERTS.replace("COUNTS", "torch.bincount(chosen, minlength=4).tolist()")
    ran = on_no_gpu(tmp_path, script)
    assert ran.found == [], ran.text
    assert ran.run.trained, ran.ending
    assert "f32[5, 8]" in ran.text  # of 18 rows, the first expert


def test_what_follows_from_unknown_values_is_not_the_users_fault(tmp_path: Path) -> None:
    script = EXPERTS.replace("COUNTS", "[int((chosen == number).sum()) for number in range(4)]")
    ran = on_no_gpu(tmp_path, script)
    assert ran.found == [], ran.text
    assert not ran.run.complete
    read = f"memory cannot be forecast: train.py:{row(script, 'read')} reads a value that the simulated GPU"
    assert read in ran.ending
    assert "which leads to RuntimeError: split_with_sizes" in ran.ending


def test_what_is_refused_because_of_the_device_is_still_a_fault(tmp_path: Path) -> None:
    script = EXPERTS.replace("COUNTS", "torch.bincount(chosen, minlength=4).tolist()")
    script = script.replace("* weight[order, None]", "@ weight[order, None]")
    ran = on_no_gpu(tmp_path, script)
    assert [each.code for each in ran.found] == ["SF503"]


@pytest.mark.parametrize("sizes", [((24, 16), (3, 16, 32)), ((16, 24), (24, 8)), ((3, 8, 16), (3, 16, 24))])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_sizes_of_grouped_products(sizes: tuple[list[int], list[int]], dtype: torch.dtype) -> None:
    left, right = torch.ones(sizes[0], dtype=dtype), torch.ones(sizes[1], dtype=dtype)
    needed = left.dim() == 2 or right.dim() == 2
    offs = torch.tensor([8, 16, 24], dtype=torch.int32) if needed else None
    real = torch._grouped_mm(left, right, offs=offs)
    ours = grouped_matmul.product(left, right, offs)
    assert (ours.shape, ours.stride(), ours.dtype) == (real.shape, real.stride(), real.dtype)
