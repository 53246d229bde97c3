"""`--device` and `--vram`: a script written for a GPU, where there is none."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from textwrap import dedent

import fork_server
import pytest
from probing import probed_file, run_shapefix

from shapefix.runtime.protocol import StepMemoryLine
from shapefix.runtime.run import ProbeRun, probe_script

pytestmark = pytest.mark.slow


TRAINS = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=64)
given = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
blocks = [nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)) for _ in range(6)]
model = nn.Sequential(*blocks, nn.Linear(512, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
rows = TensorDataset(torch.zeros(200_000, 1).expand(-1, 512), torch.zeros(200_000).long())
for x, y in DataLoader(rows, given.batch_size, pin_memory=True, num_workers=2):
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.3f}")
"""


def ran(folder: Path, script: str, *options: str) -> ProbeRun:
    path = folder / "train.py"
    path.write_text(dedent(script), "utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        return probe_script(fork_server.interpreter(), "train.py", [], 2, 120.0, options)
    finally:
        os.chdir(before)


def shapefix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_shapefix("probe", *arguments, folder=folder, COLUMNS="100")


@pytest.mark.long
@pytest.mark.slow
def test_a_forecast(tmp_path: Path) -> None:
    """The peak, the batch that fits, accumulation, the edit and what saves, for a step that is too large."""
    (tmp_path / "train.py").write_text(TRAINS)
    told = shapefix(tmp_path, "train.py", "--vram", "1222MiB", "--", "--batch_size", "32000")
    assert (told.returncode, told.stderr) == (1, ""), told.stdout + told.stderr
    assert told.stdout.startswith("memory of a training step, forecast for a GPU with 1.2 GiB\n")
    assert re.search(r"batch 32000 +[\d.]+ GiB live, [\d.]+ GiB reserved, does not fit", told.stdout)
    assert "in backward" in told.stdout
    assert "at train.py:17" in told.stdout
    largest = re.search(r"largest batch +(\d+): (\d+) MiB live, (\d+) MiB reserved \(from", told.stdout)
    assert largest is not None
    assert 650 < int(largest[2]) <= int(largest[3]) <= 1222 - 512
    kept = re.search(r"accumulate +(\d+) x batch (\d+) per optimizer step gives batch 32000", told.stdout)
    assert kept is not None
    assert int(kept[1]) * int(kept[2]) == 32000
    assert int(kept[2]) <= int(largest[1])
    assert f"  `--batch_size 32000` -> `--batch_size {kept[2]}`\n" in told.stdout
    assert re.search(r"gradient checkpointing +\d+ MiB live, .* less \(\d\d%\)", told.stdout)
    assert re.search(r"autocast to bf16 +\d+ MiB live, .* less \(\d\d%\)", told.stdout)


def test_tensors_on_the_gpu_have_no_values_and_those_on_the_cpu_do(tmp_path: Path) -> None:
    run = ran(
        tmp_path,
        """
        import copy, math
        import torch
        from torch import nn
        from torch.nn import functional as F
        from torch.utils.checkpoint import checkpoint

        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_properties(0).total_memory == 4 * 2**30
        real = torch.arange(6.0).reshape(2, 3)
        there = real.cuda()
        assert str(there.device) == "cuda:0" and there.is_cuda and not real.is_cuda
        assert real.sum().item() == 15 and there.cpu().shape == (2, 3)
        assert there.to("cuda") is there and there.cuda().device == torch.device("cuda", 0)
        assert torch.zeros(3, device="cuda").device.type == "cuda"
        assert torch.tensor([1, 2], device="cuda").sum().item() == 3  # small whole numbers are kept
        assert there[torch.tensor([True, False]).cuda()].shape == (1, 3)
        assert (torch.tensor([1, 1]).cuda() == 1).all()
        assert there.argmax(1).cpu().numpy().shape == (2,)
        f"{there.mean():.3f}", there.tolist()
        for wrong, said in ((lambda: there + real, "same device"), (lambda: there.numpy(), "Tensor.cpu()")):
            try:
                wrong()
            except (RuntimeError, TypeError) as error:
                assert said in str(error), error
            else:
                raise AssertionError("two devices meet")

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
                self.head.weight = self.words.weight
                self.around = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, batch_first=True), 2)
                self.over, self.norm = nn.LSTM(16, 16, batch_first=True), nn.BatchNorm1d(16)
                self.attend = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)

            def forward(self, ids):
                x = checkpoint(self.around, self.words(ids), use_reentrant=False)
                x = self.over(x)[0] + self.attend(x, x, x, need_weights=False)[0]
                q = x.unflatten(-1, (2, 8)).transpose(1, 2)
                x = F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).flatten(2)
                return self.head(self.norm(x.transpose(1, 2)).transpose(1, 2))

        model = Tied()
        before = list(model.parameters())
        optimizer = torch.optim.AdamW(model.parameters())
        model.to("cuda")
        assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
        assert model.head.weight is model.words.weight and model.head.weight.is_cuda
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(2):
            ids = torch.zeros(4, 8, dtype=torch.int64, device="cuda")
            with torch.autocast("cuda", dtype=torch.float16):
                scores = model(ids)
                assert scores.dtype == torch.float16 and F.layer_norm(scores, (50,)).dtype == torch.float32
                loss = F.cross_entropy(scores.flatten(0, 1), ids.flatten())
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            assert all(each.grad.is_cuda for each in model.parameters())
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        raise AssertionError("not stopped")
        """,
        "--device", "fake", "--vram", str(4 << 30),
    )  # fmt: skip
    assert run.observed.end is not None
    assert run.observed.end["how"] == "stopped", run.process.output
    assert [line["step"] for line in run.observed.of(StepMemoryLine)] == [1, 2]
    parts = run.observed.first(StepMemoryLine)["totals"]  # type: ignore[index]
    assert parts["optimizer state"] >= 2 * parts["gradients"] > 0


def test_what_depends_on_values_ends_the_run_and_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nscores = torch.randn(5, 2, 9, device='cuda').log_softmax(-1)\n"
        "few = torch.ones(2, dtype=torch.long, device='cuda')\n"
        "torch.nn.functional.ctc_loss(scores, torch.ones(2, 3).long().cuda(), 5 * few, 3 * few)\n"
    )
    told = shapefix(tmp_path, "train.py", "--device", "fake")
    assert told.returncode == 2, told.stdout
    assert (
        "stopped by the probe: memory cannot be forecast at train.py:4: the result of aten._ctc_loss"
        in told.stdout
    )
    assert "error[" not in told.stdout


def test_no_forecast_for_a_script_without_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS.replace('"cuda" if', '"cpu" if'))
    told = shapefix(tmp_path, "train.py", "--vram", "4G")
    assert told.returncode == 2
    assert "no forecast: the script trains, but not on a GPU" in told.stderr


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    told = shapefix(tmp_path, "train.py", "--vram", "four")
    assert (told.returncode, told.stdout) == (2, "")
    assert "'four' is not an amount of memory, for example 4GiB or 800MiB" in told.stderr
    told = shapefix(tmp_path, "train.py", "--vram", "4G", "--device", "cpu")
    assert (told.returncode, told.stdout) == (2, "")
    assert "--vram uses a simulated GPU and cannot be combined with --device cpu" in told.stderr


def test_a_gpu_that_is_asked_for_has_to_be_there(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (tmp_path / "train.py").write_text(TRAINS)
    told = shapefix(tmp_path, "train.py", "--device", "cuda")
    assert told.returncode == 2
    assert "torch finds no GPU (requested by --device)" in told.stdout


DEVICES = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask, self.head = torch.ones(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(x * self.mask.to(x.device))

net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(9):
    x, y = torch.randn(4, 8, device="cuda"), torch.randn(4, 1)
    nn.functional.mse_loss(net(x), y.cuda()).backward()
    optimizer.step()
"""


def test_a_copy_to_the_gpu_at_each_call_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DEVICES)
    told = shapefix(tmp_path, "train.py", "--device", "fake")
    assert told.returncode == 0, told.stdout
    note = (
        "note: train.py:10: `self.mask` (32 B) is copied from cpu to cuda:0 on each call of `Net`; register"
    )
    assert note in told.stdout


def test_two_devices_that_meet(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DEVICES.replace("y.cuda()", "y"))
    told = shapefix(tmp_path, "train.py", "--device", "fake")
    assert told.returncode == 1, told.stdout
    assert "train.py:16" in told.stdout
    assert "Expected all tensors to be on the same device" in told.stdout


FOR_ACCELERATORS = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.accelerator.set_device_index(0)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=8)
model = torch.nn.DataParallel(torch.nn.Linear(8, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    torch.cuda.nvtx.range_push("step")
    y = y.type(torch.cuda.LongTensor)
    loss = F.mse_loss(model(x), F.one_hot(y, 4).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
    torch.accelerator.synchronize()
"""


def test_an_accelerator_is_the_simulated_gpu(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FOR_ACCELERATORS)
    ran = probed_file(tmp_path, "train.py", options=("--device", "fake"))
    assert ran.found == []
    assert ran.run.observed.steps == 1
    assert "Linear  " in ran.text


TYPES = """
import torch
import torch.nn.functional as F
import numpy as np

assert F.one_hot(torch.tensor([0, 2]).cuda(), 4).shape == (2, 4)
for made, dtype, sizes in (
    (torch.cuda.FloatTensor(3, 4), torch.float32, (3, 4)),
    (torch.cuda.FloatTensor(torch.Size([2])), torch.float32, (2,)),
    (torch.cuda.LongTensor([1, 2]), torch.int64, (2,)),
    (torch.cuda.DoubleTensor(np.zeros((2, 2))), torch.float64, (2, 2)),
    (torch.cuda.HalfTensor(), torch.float16, (0,)),
    (torch.ones(2).type("torch.cuda.IntTensor"), torch.int32, (2,)),
):
    assert (made.dtype, tuple(made.shape), made.device.type) == (dtype, sizes, "cuda"), made
assert isinstance(torch.ones(2).cuda(), torch.cuda.FloatTensor)
assert not isinstance(torch.ones(2), torch.cuda.FloatTensor)
assert torch.ones(2).cuda().type() == "torch.cuda.FloatTensor"
assert torch.ones(2).type() == "torch.FloatTensor"
assert torch.ones(2).cuda().type(torch.float16).is_cuda
assert torch.ones(2).type(torch.DoubleTensor).dtype == torch.float64
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.zeros(3).is_cuda
torch.nn.Linear(2, 2)(torch.zeros(1, 2))
print("right", flush=True)
"""


def test_the_types_of_cuda_are_those_of_the_simulated_gpu(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TYPES)
    ran = probed_file(tmp_path, "train.py", options=("--device", "fake"))
    assert ran.found == []
    assert ran.run.process.output.splitlines()[-1] == "right"


@pytest.mark.parametrize(
    "line",
    [
        "torch.eye(8).to_sparse().cuda()",
        "torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 2), device='cuda')",
        "model(torch.eye(8).cuda().to_sparse())",
    ],
)
def test_a_limit_of_the_simulated_gpu_is_no_fault_of_the_script(tmp_path: Path, line: str) -> None:
    script = f"import torch\nmodel = torch.nn.Linear(8, 4).cuda()\nmodel(torch.ones(2, 8).cuda())\n{line}\n"
    (tmp_path / "train.py").write_text(script)
    ran = probed_file(tmp_path, "train.py", options=("--device", "fake"))
    assert ran.found == []
    assert not ran.run.complete
    assert "stopped by the probe: the simulated GPU does not support the call at train.py:4: " in ran.ending


def test_an_error_of_the_script_on_the_simulated_gpu_is_reported(tmp_path: Path) -> None:
    script = "import torch\nmodel = torch.nn.Linear(8, 4).cuda()\nmodel(torch.ones(2, 7).cuda())\n"
    (tmp_path / "train.py").write_text(script)
    ran = probed_file(tmp_path, "train.py", options=("--device", "fake"))
    assert ran.places == [("SF501", "train.py", 2)]
