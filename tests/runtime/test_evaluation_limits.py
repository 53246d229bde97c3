"""The evaluation after the training steps: short by default, left out, or full."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probed, probed_file, run_shapefix

pytestmark = pytest.mark.slow

SCRIPT = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.seconds = 0.0

    def forward(self, x):
        time.sleep(self.seconds)
        return self.inner(x)

data = TensorDataset(torch.randn(32, 4), torch.zeros(32, dtype=torch.long))
model = Slow()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(data, batch_size=4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print("trained")
seen = 0
with torch.no_grad():
    for x, y in DataLoader(data, batch_size=4):
        model(x)
        seen += 1
print("evaluated", seen)
model.seconds = 0.7
row = torch.randn(1, 4)
with torch.no_grad():
    for _ in range(20):
        row = torch.cat([row, model(row)[-1:]])
print("generated")
"""

GENERATION = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16, n_positions=100_000))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
ids = torch.zeros(1, 4, dtype=torch.long)
model(input_ids=ids, labels=ids).loss.backward()
optimizer.step()
out = model.generate(ids, max_new_tokens=90_000, do_sample=True, pad_token_id=0)
print("generated", out.shape[1] < 90_000)
"""


def run(folder: Path, *options: str, script: str = SCRIPT) -> Probed:
    (folder / "train.py").write_text(script)
    return probed_file(folder, "train.py", options=options)


def test_calls_for_evaluation_are_limited_in_time(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert "evaluated 2" in ran.run.process.output
    assert "calls for evaluation take more than 2 s" in ran.ending
    assert ran.run.complete
    assert ran.found == []


def test_without_evaluation_the_run_ends_after_the_step(tmp_path: Path) -> None:
    ran = run(tmp_path, "--evaluation", "none")
    assert ran.run.process.output.count("trained") == 1
    assert "evaluated" not in ran.run.process.output
    assert "the training steps are done, and an evaluation begins" in ran.ending
    assert ran.run.complete
    assert len(ran.run.observed.modules) == 1


def test_a_full_evaluation_gets_all_batches(tmp_path: Path) -> None:
    ran = run(tmp_path, "--evaluation", "full", script=SCRIPT.replace("0.7", "0.0"))
    assert "evaluated 8" in ran.run.process.output
    assert "generated" in ran.run.process.output


def test_generation_by_transformers_is_limited_and_the_script_goes_on(tmp_path: Path) -> None:
    ran = run(tmp_path, script=GENERATION)
    assert "generated True" in ran.run.process.output
    assert ran.run.complete


def test_options_for_evaluation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    ran = run_shapefix("probe", "train.py", "--no-eval", "--full-eval", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (
        2, "error: --no-eval and --full-eval cannot be combined\n"
    )  # fmt: skip
