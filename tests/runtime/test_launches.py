"""What can be probed besides a script: a module, a folder, a notebook; and what else is answered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from textwrap import dedent

import fork_server
import pytest
from probing import Probed, probed_file, run_shapefix

from shapefix.cli.launchers import node_command, suggest_command
from shapefix.cli.main import run

TRAINING = """
import sys
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.randn(8, 4)).sum().backward()
optimizer.step()
print(__name__, __package__, sys.argv, __spec__ and __spec__.name, flush=True)
"""


def written(folder: Path, **files: str) -> Path:
    """Write files into a folder; two underscores in a name are a slash, `pkg` is the package itself."""
    for name, text in files.items():
        path = folder / ("pkg/__init__.py" if name == "pkg" else f"{name.replace('__', '/')}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def notebook(folder: Path, *sources: str, name: str = "train.ipynb") -> Path:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "# Training"}]
    cells += [{"cell_type": "code", "metadata": {}, "source": dedent(each)} for each in sources]
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def right(ran: Probed) -> str:
    assert ran.found == [], ran.run.process.output
    assert ran.run.complete, (ran.ending, ran.run.process.output)
    return ran.run.process.output


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    folder = written(tmp_path, pkg="", pkg__train=f"from . import parts\n{TRAINING}", pkg__parts="")
    ran = probed_file(folder, "pkg.train", "--lr", "1", options=("--module",))
    path = folder / "pkg" / "train.py"
    assert right(ran) == f"__main__ pkg {[str(path), '--lr', '1']} pkg.train\n"
    assert ran.run.observed.steps == 1


def test_a_package_runs_its_main(tmp_path: Path) -> None:
    folder = written(tmp_path, pkg="")
    (folder / "pkg" / "__main__.py").write_text(TRAINING)
    ran = probed_file(folder, "pkg", options=("--module",))
    assert right(ran) == f"__main__ pkg {[str(folder / 'pkg' / '__main__.py')]} pkg.__main__\n"


def test_a_folder_runs_its_main(tmp_path: Path) -> None:
    folder = written(tmp_path, job__parts="")
    (folder / "job" / "__main__.py").write_text(f"import parts\n{TRAINING}")
    ran = probed_file(folder, "job", "3")
    assert right(ran) == "__main__  ['job', '3'] None\n"


def test_the_fault_of_a_module_has_its_place(tmp_path: Path) -> None:
    folder = written(tmp_path, pkg="", pkg__train=TRAINING.replace("(8, 2)", "(9, 2)"))
    ran = probed_file(folder, "pkg.train", options=("--module",))
    assert ran.places == [("SF501", "train.py", 4)]


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("nothing.train", {}, "no module named `nothing.train` (searched from "),
        ("pkg.trian", {"pkg": ""}, "no module named `pkg.trian` (searched from "),
        ("pkg", {"pkg": ""}, "`pkg` is a package without `__main__`"),
        ("math", {}, "`math` is not written in Python"),
    ],
)
def test_a_module_that_is_not_there_is_told(
    tmp_path: Path, name: str, files: dict[str, str], said: str
) -> None:
    ran = probed_file(written(tmp_path, **files), name, options=("--module",))
    assert ran.ending.startswith(said)
    assert not ran.run.complete
    assert ran.found == []


def test_a_package_that_another_package_imports_and_the_machine_lacks_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path, pkg="import no_such_module_of_mine", pkg__train="")
    ran = probed_file(folder, "pkg.train", options=("--module",))
    assert ran.places == [("environment", "__init__.py", 1)]


def test_the_cells_of_a_notebook_run_in_its_folder(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "notebooks",
        "%matplotlib inline\n!pip install -q torch\nimport torch\nimport helper",
        """\
        model = torch.nn.Linear(4, 2)
        display(model)
        %time model(torch.ones(2, 4))
        """,
        """\
        import asyncio
        await asyncio.sleep(0)
        assert get_ipython().run_line_magic("matplotlib", "inline") is None
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.save(model, "model.pt")
        """,
        "import os\nprint(os.path.basename(os.getcwd()), __name__, flush=True)",
    )
    written(tmp_path, notebooks__helper="")
    ran = probed_file(tmp_path, "notebooks/train.ipynb")
    assert right(ran).splitlines()[-1] == "notebooks __main__"
    assert "Linear(in_features=4" in ran.run.process.output
    assert ran.run.observed.steps == 1
    assert "not executed `!pip install -q torch` (cell 2)" in ran.text
    assert "called at notebooks/train.ipynb:cell 3:3" in ran.text
    assert sorted(each.name for each in path.parent.iterdir()) == ["helper.py", "train.ipynb"]


def test_the_fault_of_a_notebook_is_placed_in_its_cell(tmp_path: Path) -> None:
    path = notebook(
        tmp_path,
        "import torch\nmodel = torch.nn.Linear(4, 2)",
        "%load_ext autoreload\nfor n in range(9):\n    try:\n        model(torch.ones(3, 5))\n"
        "    except RuntimeError:\n        pass\n",
    )
    ran = probed_file(tmp_path, "train.ipynb")
    (found,) = ran.found
    assert (found.code, found.span.path, found.span.row) == ("SF501", f"{path}:cell 2", 2)
    assert [(step.span.path, step.span.row) for step in found.evidence] == [
        (f"{path}:cell 3", 4),
        (f"{path}:cell 3", 5),
    ]


def test_cells_of_the_same_text_are_told_apart(tmp_path: Path) -> None:
    first = "import torch\nmodel, x = torch.nn.Linear(4, 2), torch.ones(3, 4)"
    path = notebook(tmp_path, first, "model(x)", "x = torch.ones(3, 5)", "model(x)")
    (found,) = probed_file(tmp_path, "train.ipynb").found
    assert found.evidence[-1].span.path == f"{path}:cell 5"


def test_a_cell_that_does_not_parse_is_named(tmp_path: Path) -> None:
    path = notebook(tmp_path, "x = 1", "y = (")
    ran = probed_file(tmp_path, "train.ipynb")
    assert [(each.span.path, each.span.row) for each in ran.found] == [(f"{path}:cell 3", 1)]


def test_a_notebook_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook(tmp_path, "import torch\nmodel = torch.nn.Linear(4, 2)", "\nmodel(torch.ones(3, 5))")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", fork_server.virtual_environment())
    assert run(["probe", "train.ipynb"]) == 1
    out = capsys.readouterr().out
    assert "--> train.ipynb:cell 2:2:9" in out
    assert "2 | model = torch.nn.Linear(4, 2)" in out
    assert "2 | model(torch.ones(3, 5))" in out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bad.ipynb", "bad.ipynb: is not a notebook: it is not JSON"),
        (
            "-m train.py",
            "train.py: is a file, but -m expects a module; did you mean `shapefix probe train.py`?",
        ),
        ("python train.py --lr 1", "did you mean `shapefix probe train.py -- --lr 1`?"),
        ("-- python3.11 -m pkg.train 1", "did you mean `shapefix probe -m pkg.train -- 1`?"),
        ("torchrun --nproc_per_node 2 train.py", "did you mean `shapefix probe --nproc 2 train.py`?"),
        ("-- python -m torch.distributed.run --nproc-per-node=gpu train.py", "probe --nproc 2 train.py`?"),
        ("-- accelerate launch --num_processes=4 'a b.py' --x 1", "--nproc 4 'a b.py' -- --x 1`?"),
        ("-- deepspeed --help", "did you mean `shapefix probe train.py -- --epochs 3`"),
        (
            "train.py --epochs 3",
            "put the script's own arguments after `--`: `shapefix probe train.py -- --epochs 3`",
        ),
        (
            "train.py --nproc 2 --vram 4GiB",
            "--nproc cannot be combined with --vram or --device fake",
        ),
        ("bad.ipynb --nproc 2", "--nproc does not support notebooks; pass a script or a module"),
        ("train.py --nproc 0", "'--nproc': 0 is not in the range 1<=x<=16"),
        ("--stops 3", "no such option '--stops'. Did you mean '--steps'?"),
        ("", "missing argument 'SCRIPT'"),
    ],
)
def test_a_command_line_that_means_another_is_answered_with_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    said: str,
) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "bad.ipynb").write_text("print()")
    monkeypatch.chdir(tmp_path)
    assert run(["probe", *shlex.split(line)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "options", "script", "arguments", "processes"),
    [
        (
            "torchrun --nnodes=2 --node-rank 1 --nproc-per-node 4 --rdzv-endpoint a:29400 train.py --lr 1",
            "--nnodes=2 --node-rank 1 --nproc-per-node 4 --rdzv-endpoint a:29400",
            "train.py",
            ("--lr", "1"),
            4,
        ),
        ("python3 -m torch.distributed.run --nnodes 1:3 -m pkg.train", "--nnodes 1:3", "pkg.train", (), 2),
        (
            "/bin/torchrun --nnodes 2 --standalone a.py -m x",
            "--nnodes 2 --standalone",
            "a.py",
            ("-m", "x"),
            2,
        ),
    ],
)
def test_torchrun_on_several_nodes(
    line: str, options: str, script: str, arguments: tuple[str, ...], processes: int
) -> None:
    found = node_command(shlex.split(line))
    assert found is not None
    assert (" ".join(found.options), found.script, found.arguments) == (options, script, arguments)
    assert (found.is_module, found.processes) == (script == "pkg.train", processes)
    assert suggest_command(["--", *shlex.split(line)]) is None


@pytest.mark.parametrize(
    "line",
    ["torchrun --nproc-per-node 2 train.py", "torchrun --nnodes 2", "train.py --nnodes 2 x", "python a.py"],
)
def test_other_command_lines_are_not_of_several_nodes(line: str) -> None:
    assert node_command(shlex.split(line)) is None


def test_a_file_and_an_interpreter_that_was_asked_for_are_no_launchers() -> None:
    assert suggest_command(["python.py", "--", "torchrun"]) is None
    assert suggest_command(["--python", "python3", "train.py"]) is None


FOR_TORCHRUN = """
import os
import torch
import torch.distributed as dist

local_rank, world = READ
dist.init_process_group("nccl", rank=local_rank, world_size=world)
device = torch.device("cuda", local_rank) if torch.cuda.is_available() else "cpu"
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).to(device))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.randn(8, 4, device=device)).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    "read",
    [
        'int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])',
        'int(os.environ.get("LOCAL_RANK")), int(os.getenv("WORLD_SIZE"))',
    ],
)
def test_a_script_for_torchrun_runs_as_its_only_process(tmp_path: Path, read: str) -> None:
    (tmp_path / "train.py").write_text(FOR_TORCHRUN.replace("READ", read))
    ran = run_shapefix("probe", "--python", fork_server.interpreter(), "train.py", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("train.py: 1 training step")
    assert (
        "note: train.py:6: reads `LOCAL_RANK`, which torchrun sets: this is a run as its only process; "
        "`--nproc 2` starts two\n"
    ) in ran.stdout


def test_another_missing_variable_is_an_exception_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('import os, torch\nos.environ["DATA_OF_RANKS"]\n')
    ran = run_shapefix("probe", "--python", fork_server.interpreter(), "train.py", folder=tmp_path)
    assert "error[crash] KeyError: 'DATA_OF_RANKS'" in ran.stdout
    assert "torchrun" not in ran.stdout
