"""`shapefix probe --repair` as a program: what it writes, shows, and ends with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fork_server
import pytest
from probing import row

from shapefix.cli import probe_repair
from shapefix.cli.probe_options import ProbeOptions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

HEAD = """\
import torch
from torch import nn

"""
TRAIN = """\
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    loss = model(torch.ones(4, 3, 8, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BROKEN = HEAD + "model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(64, 10))\n" + TRAIN
RIGHT = BROKEN.replace("64", "288")


ENVIRONMENT = {
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}


def repair(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapefix", "probe", *arguments],
        cwd=folder,
        env=os.environ | ENVIRONMENT | {"VIRTUAL_ENV": fork_server.virtual_environment()},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


def test_without_apply_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BROKEN)
    ran = repair(tmp_path, "train.py", "--repair")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "+model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 10))\n" in ran.stdout
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("train.py", BROKEN)]


def test_a_script_that_works_has_nothing_to_repair(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    ran = repair(tmp_path, "train.py", "--repair", "--apply")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("before  1 training step, loss ")
    assert ran.stderr.startswith("The script trains: nothing to repair. (1 run, ")
    assert (tmp_path / "train.py").read_text() == RIGHT


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (
            HEAD + "model = nn.Linear(3, 3)\nmodel(torch.ones(2, 3))\nraise KeyError('lr')\n",
            1,
            "Found no repair",
        ),
        ("import sys\nsys.exit('usage: train.py DATA')\n", 2, "error: cannot repair: the run shows neither"),
    ],
    ids=["unknown", "without-arguments"],
)
def test_where_nothing_is_known_nothing_is_written(tmp_path: Path, script: str, code: int, said: str) -> None:
    (tmp_path / "train.py").write_text(script)
    ran = repair(tmp_path, "train.py", "--repair", "--apply")
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ran.stderr.startswith(said)
    assert (tmp_path / "train.py").read_text() == script


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--apply"], "error: --apply requires --repair or --vram\n"),
        (["--repair", "--vram", "4GiB"], "error: --vram and --repair cannot be combined"),
    ],
    ids=["apply-alone", "forecast"],
)
def test_options_that_make_no_sense(tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    ran = repair(tmp_path, "train.py", *options)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(said)


def test_where_only_a_person_can_choose_the_repair_it_is_said(tmp_path: Path) -> None:
    before = ROOT / "fixtures" / "unet-skips" / "before"
    for path in before.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ran = repair(tmp_path, "train.py", "--repair", "--apply")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "error[SF504]" in ran.stdout
    assert "= fix (by hand): crop `skip2` to (24, 24)" in ran.stdout
    assert ran.stderr.startswith("Found no repair that makes the script train. (1 run, ")
    assert (tmp_path / "unet.py").read_bytes() == (before / "unet.py").read_bytes()


def test_apply_writes_what_was_proved(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BROKEN)
    ran = repair(tmp_path, "train.py", "--repair", "--apply", "--quiet")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "train.py").read_text() == RIGHT
    assert ran.stdout.startswith("--- train.py\n+++ train.py\n")
    assert ran.stderr == ""


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="the note must be where the probe maps nothing")
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_an_interruption_leaves_nothing_behind(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    """It comes in the second run, that of the repaired copy."""
    (tmp_path / "temporary").mkdir()
    wait = "print(file=open(os.environ['NOTE'], 'w')); time.sleep(99)"
    script = "import os, time\n" + BROKEN.replace("loss.backward()", f"loss.backward(); {wait}")
    (tmp_path / "train.py").write_text(script)
    note = Path("/dev/shm") / f"shapefix-repair-{os.getpid()}-{code}"
    process = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "probe", "train.py", "--repair", "--apply"],
        cwd=tmp_path,
        env=os.environ
        | ENVIRONMENT
        | {"VIRTUAL_ENV": sys.prefix, "NOTE": str(note), "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 100
        while not note.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(sent)
        output = process.communicate(timeout=30)
    finally:
        process.kill()
        note.unlink(missing_ok=True)
    assert (process.returncode, output) == (code, (b"", b""))
    assert (tmp_path / "train.py").read_text() == script
    assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary", "train.py"]
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    "named",
    [["-m", "training"], pytest.param(["training"], marks=pytest.mark.long)],
    ids=["module", "folder"],
)
def test_a_package_that_is_run_by_its_name(tmp_path: Path, named: list[str]) -> None:
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text(BROKEN)
    ran = repair(tmp_path, *named, "--repair", "--apply")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (folder / "__main__.py").read_text() == RIGHT


def test_no_more_runs_than_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(probe_repair, "MOST_RUNS", 1)
    options = ProbeOptions(
        "train.py", (), None, 1, 120.0, "auto", None, "never", False, repair=True, apply=True
    )
    assert probe_repair.repair(fork_server.interpreter(), options) == 1
    said = capsys.readouterr().err
    assert said.startswith("Found no repair that makes the script train. (1 run, ")
    assert said.endswith(" s; stopped at the limit of runs)\n")
    assert (tmp_path / "train.py").read_text() == BROKEN


NAN = """
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scores = torch.log(model(torch.randn(16, 8)))  # fault
nn.functional.cross_entropy(scores, torch.randint(0, 3, (16,))).backward()
optimizer.step()
"""


def test_a_nan_is_named_at_its_operation_as_without_repair(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + NAN)
    ran = repair(tmp_path, "train.py", "--repair")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert f"--> train.py:{row(HEAD + NAN, 'fault')}:" in ran.stdout
    assert "loss-not-finite: the loss is nan: `log`" in ran.stdout


CELLS = (
    "import torch\nfrom torch import nn\n%matplotlib inline\nwidth = 64\n",
    "# é\nmodel = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(width, 10))",
    TRAIN.replace("    optimizer.zero_grad()\n", ""),
)


def notebook(*cells: str) -> str:
    sources: list[dict[str, object]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": [text]}
        for text in cells
    ]
    return json.dumps({"cells": sources, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def test_the_cells_of_a_notebook_are_repaired(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(*CELLS))
    shown = repair(tmp_path, "train.ipynb", "--repair")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "+++ train.ipynb:cell 1\n" in shown.stdout
    assert "+width = 288\n" in shown.stdout
    assert "+    optimizer.zero_grad()\n" in shown.stdout
    assert path.read_text() == notebook(*CELLS)
    written = repair(tmp_path, "train.ipynb", "--repair", "--apply")
    assert written.stderr.startswith("Repaired 2 findings in 1 file.")
    cells = ["".join(each["source"]) for each in json.loads(path.read_text())["cells"]]
    assert cells == [CELLS[0].replace("64", "288"), CELLS[1], TRAIN]


def test_a_magic_is_not_changed(tmp_path: Path) -> None:
    cells = (HEAD, "%time model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(64, 10))", TRAIN)
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(*cells))
    ran = repair(tmp_path, "train.ipynb", "--repair", "--apply")
    assert (ran.returncode, ran.stderr[:15]) == (1, "Found no repair"), ran.stdout + ran.stderr
    assert path.read_text() == notebook(*cells)


RANKS = """\
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    labels = torch.ones(4, dtype=torch.int32 if rank else torch.long)
    loss = nn.functional.cross_entropy(model(torch.ones(4, 4)), labels)
    loss.backward()
    for each in model.parameters():
        dist.all_reduce(each.grad)
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_fault_of_one_rank_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(RANKS)
    ran = repair(tmp_path, "train.py", "--repair", "--apply", "--nproc", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert path.read_text() == RANKS.replace("4)), labels)", "4)), labels.long())")
    assert "the finding is gone, and the script trains" in ran.stdout
