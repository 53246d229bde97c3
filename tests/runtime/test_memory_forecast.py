"""The forecast of memory against real allocations.

The truth on the CPU is what torch's own allocator in C++ reports to the profiler while real kernels compute
on real tensors: every byte that it gives out, the kernels' scratch included. It shares nothing with the
forecast, which counts storages of tensors without memory, as Python sees them come and go.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

DEPEND_ON_THE_CPU = {"cnn-32-adamw-amp", "cnn-32-sgd-amp-checkpoints"}
"""Convolutions in bf16: oneDNN's kernels for them, and what these allocate, differ from CPU to CPU."""
PROGRAM = Path(__file__).with_name("memory_configurations.py")


FEW = (
    "mlp-2048-momentum", "mlp-2048-adamw-amp", "mlp-1024-loop", "cnn-16-adamw", "cnn-8-adamw-x2",
    "encoder-16-sgd-checkpoints", "gpt2-4-adamw-bf16", "bert-8-adamw", "t5-8-sgd-x2",
)  # fmt: skip
"""Every kind of model, and most ways of training."""


def start(how: str, *names: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), how, *names],
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def told(program: subprocess.Popen[str]) -> dict[str, dict[str, Any]]:
    out, _ = program.communicate(timeout=240)
    assert program.returncode == 0
    lines = (json.loads(line) for line in out.splitlines() if line.startswith("{"))
    return {line.pop("name"): line for line in lines}


@pytest.mark.parametrize(
    ("instructions", "names"),
    [
        pytest.param("ALL", FEW, id="few"),
        pytest.param("ALL", (), id="any", marks=pytest.mark.long),
        pytest.param("AVX2", (), id="AVX2", marks=pytest.mark.long),
    ],
)
def test_the_forecast_is_within_two_percent_of_what_the_cpu_gives_out(
    instructions: str, names: tuple[str, ...]
) -> None:
    # A CPU held to AVX2 stands for one without AVX-512.
    programs = start("fake", *names), start("cpu", *names, ONEDNN_MAX_CPU_ISA=instructions)
    forecasts, truths = map(told, programs)
    assert len(forecasts) == (len(names) or 20)
    assert truths.keys() == forecasts.keys()
    compared = truths.keys() - DEPEND_ON_THE_CPU
    errors = {name: forecasts[name]["live"] / truths[name]["live"] - 1 for name in compared}
    assert len(errors) == (len(names) or 18)
    assert {name: error for name, error in errors.items() if abs(error) > 0.02} == {}
    assert statistics.median(map(abs, errors.values())) < 0.005
    for each in forecasts.values():
        assert sum(each["parts"].values()) == each["live"] <= each["reserved"]


@pytest.mark.gpu
def test_the_forecast_is_within_five_percent_of_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    forecasts, truths = map(told, (start("fake"), start("cuda")))
    live = {
        name: (forecasts[name]["live"] + each["workspace"]) / each["live"] - 1
        for name, each in truths.items()
    }
    reserved = {
        name: (forecasts[name]["reserved"] + each["workspace"]) / each["reserved"] - 1
        for name, each in truths.items()
    }
    print(json.dumps({"live": live, "reserved": reserved}, indent=1))
    assert len(live) >= 20
    assert statistics.median(map(abs, live.values())) < 0.05, live
    assert statistics.median(map(abs, reserved.values())) < 0.10, reserved
