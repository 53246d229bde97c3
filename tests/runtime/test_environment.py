"""Exceptions caused by the machine are no errors of the script; a script for a GPU gets a simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from probing import probed, probed_file, row, run_shapefix

from shapefix.runtime.findings.environment import CPU_FOR_GPU, ENVIRONMENT, Lack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(torch.cuda.is_available(), reason="the scripts need a machine without a GPU"),
]

NEEDS_GPU = (
    "torch.zeros(3).cuda()",
    'torch.zeros(3, device="cuda")',
    'torch.nn.Linear(2, 2).to("cuda:0")',
    "torch.cuda.set_device(0)",
    "torch.cuda.FloatTensor(3)",
    "torch.cuda.current_device()",
    "torch.cuda.get_device_name()",
    "torch.cuda.Stream()",
    "torch.cuda.Event(enable_timing=True)",
    'torch.Generator("cuda")',
    "assert torch.cuda.is_available(), 'this is for a GPU'",
)
TRAINING = """
import torch
model = torch.nn.Linear(4, 2).cuda()  # needs
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    x = torch.randn(8, 4).cuda()
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("statement", NEEDS_GPU)
def test_a_missing_gpu_is_not_an_error_of_the_script(tmp_path: Path, statement: str) -> None:
    (found,) = probed(tmp_path, f"import torch\n{statement}  # fault\n").found
    assert (found.code, found.name, found.span.row) == (ENVIRONMENT, Lack.GPU.value, 2)


def test_a_missing_package_and_a_missing_network_are_named(tmp_path: Path) -> None:
    (package,) = probed(tmp_path, "import torch\nimport cv9\n").found
    assert (package.code, package.name) == (ENVIRONMENT, Lack.PACKAGE.value)
    assert package.message.startswith("`cv9` is not installed; `")
    script = "import torch, urllib.request\nurllib.request.urlopen('http://no-such-host.invalid/')\n"
    (network,) = probed(tmp_path, script).found
    assert (network.code, network.name, network.span.row) == (ENVIRONMENT, Lack.NETWORK.value, 2)


@pytest.mark.parametrize("statement", ["raise AssertionError('no CUDA version of the data')", "import a.b"])
def test_other_exceptions_stay_those_of_the_script(tmp_path: Path, statement: str) -> None:
    (tmp_path / "a.py").write_text("")
    (found,) = probed(tmp_path, f"import torch\n{statement}\n").found
    assert found.code == "crash"


def test_a_script_for_a_gpu_runs_on_a_simulated_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    ran = run_shapefix("probe", "train.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "train.py: 1 training step" in ran.stdout
    assert f"note: train.py:{row(TRAINING, 'needs')}: needs a GPU, and torch finds none" in ran.stdout
    assert "loss " in ran.stdout
    assert "on the CPU in its place" in ran.stdout


def test_a_script_that_asserts_a_gpu_runs_on_a_simulated_one(tmp_path: Path) -> None:
    script = TRAINING.replace("import torch\n", "import torch\nassert torch.cuda.is_available(), 'no GPU'\n")
    (tmp_path / "train.py").write_text(script)
    ran = run_shapefix("probe", "train.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "this is a run on a simulated GPU, with sizes but no values" in ran.stdout


MOVES = """
import torch, io
from torch import nn
device = "cuda:0"
x = torch.randn(3, 4, device=device)
assert torch.zeros(2, device=torch.device("cuda")).device.type == "cpu"
assert torch.zeros(2).to("cuda", torch.float64, non_blocking=True).dtype == torch.float64
assert torch.zeros(2).to(0).sum() == 0 and torch.zeros(2).to(device=0).sum() == 0
assert torch.ones(2).cuda(0, non_blocking=True).pin_memory().sum().item() == 2
assert torch.zeros(2).type(torch.cuda.LongTensor).dtype == torch.int64
assert torch.zeros(2).type("torch.cuda.HalfTensor").dtype == torch.float16
assert torch.cuda.FloatTensor([1, 2]).dtype == torch.float32
assert isinstance(torch.Generator("cuda"), torch.Generator)
assert torch.randn(3, generator=torch.Generator(device).manual_seed(1)).shape == (3,)
torch.cuda.set_device(0)
torch.cuda.synchronize()
with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0), torch.autocast("cuda"):
    nn.Linear(4, 4, device=device)(x)
start = torch.cuda.Event(enable_timing=True)
start.record()
buffer = io.BytesIO()
torch.save({"a": x}, buffer)
buffer.seek(0)
assert torch.load(buffer, map_location=device)["a"].equal(x)
model = nn.DataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).to(0).cuda(device), device_ids=[0])
scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(model.parameters(), 0.1)
scaler.scale(model(x).sum()).backward()
scaler.step(optimizer)
with torch.device("cuda"):
    assert torch.ones(3).sum().item() == 3
torch.set_default_device("cuda")
assert torch.ones(3).sum().item() == 3
"""


def test_what_is_moved_to_a_gpu_stays_on_the_cpu_with_its_values(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MOVES)
    ran = probed_file(tmp_path, "train.py", options=("--device", CPU_FOR_GPU))
    assert ran.found == [], ran.run.process.output
    assert ran.run.observed.steps == 1


def test_a_requested_device_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    ran = run_shapefix("probe", "--device", "cpu", "train.py", folder=tmp_path)
    assert ran.returncode == 2
    assert "error[environment] missing-gpu: the script needs a GPU, and torch finds none" in ran.stdout
