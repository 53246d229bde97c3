"""What the hooks of the probe cost a training step.

    python tests/benchmarks/probe.py

The script below makes steps with GPT-2s of one size, plain and under the probe, in turns. The first step of a
model is the one whose modules are written down; the others are merely watched.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, STEPS = 5, 8

SCRIPT = f"""
import json, time
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.set_num_threads(1)
ids = torch.randint(0, 2000, (4, 64))

def step(model, optimizer):
    start = time.perf_counter()
    optimizer.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    return time.perf_counter() - start

first, rest = [], []
for _ in range(3):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=2000, n_positions=64, n_embd=192, n_layer=6, n_head=4))
    optimizer = torch.optim.AdamW(model.parameters())
    times = [step(model, optimizer) for _ in range({STEPS})]
    first.append(times[0])
    rest += times[1:]
print(json.dumps([min(first[1:]), min(rest)]))
"""


def measured(probed: bool) -> tuple[float, float]:
    """The time of a first step and of a later one, in seconds, the best of several in one process."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "steps.py")
        script.write_text(SCRIPT)
        command = [sys.executable, str(script)]
        if probed:
            agent = ROOT / "shapefix" / "runtime" / "agent" / "__main__.py"
            options = ["--observations", f"{folder}/seen.jsonl", "--saves", folder]
            limits = ["--steps", str(STEPS + 1), "--timeout", "600"]
            command = [sys.executable, str(agent), *options, *limits, str(script)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, later = json.loads(ran.stdout.splitlines()[-1])
    return first, later


def main() -> None:
    """Measure plain and probed runs in turns, and print the medians."""
    runs = [(measured(False), measured(True)) for _ in range(ROUNDS)]
    for number, name in enumerate(("first step", "later step")):
        plain = statistics.median(run[0][number] for run in runs)
        probed = statistics.median(run[1][number] for run in runs)
        print(f"{name}: {plain * 1e3:.1f} ms plain, {probed * 1e3:.1f} ms probed, {probed / plain - 1:+.1%}")


if __name__ == "__main__":
    main()
