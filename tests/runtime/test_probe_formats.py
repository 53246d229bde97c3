"""What `shapefix probe` prints for programs: one JSON document that its schema describes, and annotations."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from probing import ROOT, probed, run_shapefix

from shapefix.report.view import View
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.report.json_document import Document, document, json_text

pytestmark = pytest.mark.slow


TRAINS = """\
import sys
import torch
from torch.utils.data import DataLoader

rows = [{"x": torch.randn(6), "y": torch.tensor(n % 3)} for n in range(8)]
model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in DataLoader(rows, batch_size=4):
    loss = torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model.pt")
"""
WRONG = TRAINS.replace("Linear(6, 4)", "Linear(5, 4)")


@cache
def schema() -> Any:
    known = json.loads((ROOT / "shapefix/runtime/report/probe.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(known)
    return jsonschema.Draft202012Validator(known)


def shapefix(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_shapefix("probe", *arguments, folder=folder)


def told(folder: Path, script: str, *arguments: str, timeout: float = 120.0, **files: str) -> Document:
    """The document of a script, which its schema describes."""
    run = probed(folder, script, *arguments, timeout=timeout, **files).run
    known = collect_findings(run.observed)
    seen = document(run, arguments, known, 0, View(str(folder)))
    written = json.loads(json_text(seen))
    schema().validate(written)
    assert written == seen
    return seen


def test_the_document_of_ranks_and_of_a_notebook(tmp_path: Path) -> None:
    script = (
        "import torch.distributed as dist\ndist.init_process_group()\nif dist.get_rank(): dist.barrier()\n"
    )
    (tmp_path / "train.py").write_text(script)
    ran = shapefix("train.py", "--nproc", "2", "--output-format", "json", folder=tmp_path)
    known = json.loads(ran.stdout)
    schema().validate(known)
    assert [each["collectives"] for each in known["ranks"]] == [1, 2]
    assert [each["waits_at"] for each in known["ranks"]] == [None, "barrier"]
    assert known["ranks"][1]["at"]["location"]["row"] == 3
    assert [each["name"] for each in known["findings"]] == ["waiting-rank"]
    cells = [{"cell_type": "code", "source": "!pip install torch\nimport torch"}]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    known = json.loads(shapefix("train.ipynb", "--output-format", "json", folder=tmp_path).stdout)
    schema().validate(known)
    cell = f"{tmp_path / 'train.ipynb'}:cell 1"
    assert known["not_executed"] == [{"filename": cell, "row": 1, "text": "!pip install torch"}]
    assert known["ranks"] == []


def test_the_document_of_a_script_that_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    ran = shapefix("train.py", "--output-format", "json", "--", "--epochs", "3", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    seen = json.loads(ran.stdout)
    schema().validate(seen)
    script = str(tmp_path / "train.py")
    assert (seen["schema_version"], seen["script"], seen["arguments"]) == (1, script, ["--epochs", "3"])
    assert (seen["ending"]["how"], seen["ending"]["worked"], seen["exit_code"]) == ("finished", True, 0)
    assert seen["environment"]["executable"] == sys.executable
    assert seen["steps"] == 1
    assert [(each["batch_size"], each["length"], each["collate"]["name"]) for each in seen["loaders"]] == [
        (4, 8, "default_collate")
    ]
    first = seen["batches"][0]["value"]["items"]
    assert (first["x"]["dtype"], first["x"]["size"], first["x"]["stride"]) == ("float32", [4, 6], [6, 1])
    (model,) = seen["modules"]
    assert [each["name"] for each in model["children"]] == ["0", "1", "2"]
    assert model["children"][0]["input"]["args"][0]["size"] == [4, 6]
    assert model["children"][2]["output"]["size"] == [4, 3]
    assert model["children"][2]["constructed"] == {
        "filename": script,
        "location": {"row": 6, "column": 69},
        "end_location": {"row": 6, "column": 90},
    }
    assert model["seconds"] >= sum(each["seconds"] for each in model["children"])
    assert [each["name"] for each in seen["losses"]] == ["cross_entropy"] * 2
    assert seen["backward"][0]["value"] > 0
    assert seen["gradients"][0]["parameters_with"] == 4
    assert [each["module"] for each in seen["gradients"][0]["norms"]] == ["0", "2"]
    (model,) = seen["models"]
    assert (model["parameters"], model["trainable"], model["bytes"]) == (43, 43, {"float32": 172})
    assert [each["rows"] for each in seen["step_times"]] == [4, 4]
    assert seen["writes"] == [{"filename": str(tmp_path / "model.pt")}]
    assert (seen["findings"], seen["exceptions"], seen["forecast"]) == ([], [], None)


def test_findings_are_those_of_check(tmp_path: Path) -> None:
    seen = told(tmp_path, WRONG)
    (finding,) = seen["findings"]
    assert (finding["code"], finding["location"]) == ("SF501", {"row": 6, "column": 29})
    assert list(finding) == [
        "code", "name", "message", "severity", "filename", "location", "end_location", "error",
        "cause", "evidence", "condition", "reservation", "fix",
    ]  # fmt: skip
    (raised,) = seen["exceptions"]
    assert (raised["left"], raised["type"], raised["ended_the_script"]) == ("module", "RuntimeError", True)
    assert raised["stack"][0]["location"]["row"] == 9


def test_the_same_run_is_told_in_the_same_order(tmp_path: Path) -> None:
    def known_size(part: Any) -> Any:
        """A document without what differs from run to run."""
        if isinstance(part, dict):
            differing = ("seconds", "memory", "step_times")
            return [(name, known_size(each)) for name, each in part.items() if name not in differing]
        return [known_size(each) for each in part] if isinstance(part, list) else part

    script = TRAINS.replace("torch.randn", "torch.ones").replace(
        "import torch\n", "import torch; torch.manual_seed(0)\n"
    )
    assert known_size(told(tmp_path, script)) == known_size(told(tmp_path, script))


SCRIPTS = {
    "nothing": "",
    "exit": "import sys\nsys.exit('no data: \\udcff')\n",
    "forever": "while True:\n    pass\n",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "unreadable": "x = (\n",
    "ragged": """
import torch
from torch.utils.data import DataLoader
odd = {"b": [[1], [1, 2]], "c": None, "d": 7, "e": torch.eye(3).to_sparse(), "f": "text"}
for batch in DataLoader([[1, 2], [3, 4]], collate_fn=lambda rows: {"a": rows, **odd}):
    torch.nn.Linear(2, 2)(torch.tensor(batch["a"], dtype=torch.float32)[0:1])
""",
    "swallowed": """
import torch
for _ in range(3):
    try:
        torch.nn.Linear(2, 2)(torch.randn(3, 3))
    except Exception:
        print("skipped")
""",
    "infinite": """
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
(model(torch.ones(1, 2)) / 0).mean().backward()
optimizer.step()
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_however_a_script_ends_the_schema_describes_it(tmp_path: Path, name: str) -> None:
    told(tmp_path, SCRIPTS[name], timeout=4.0 if name == "forever" else 120.0)


def test_how_a_script_has_ended(tmp_path: Path) -> None:
    assert told(tmp_path, SCRIPTS["killed"])["ending"]["how"] == "signal"
    seen = told(tmp_path, SCRIPTS["exit"])["ending"]
    assert (seen["how"], seen["worked"], seen["process_code"]) == ("exit", False, 1)


def test_a_forecast_is_part_of_the_document(tmp_path: Path) -> None:
    script = TRAINS.replace("Linear(4, 3))", "Linear(4, 3)).cuda()")
    script = script.replace('batch["x"]', 'batch["x"].cuda()').replace('batch["y"]', 'batch["y"].cuda()')
    (tmp_path / "train.py").write_text(script)
    ran = shapefix("train.py", "--vram", "2GiB", "--output-format", "json", folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    seen = json.loads(ran.stdout)
    schema().validate(seen)
    forecast = seen["forecast"]
    assert (forecast["vram"], forecast["fits"], forecast["peak"]["batch"]) == (2 << 30, True, 4)
    assert (
        forecast["peak"]["reserved"] >= forecast["peak"]["live"] == sum(forecast["peak"]["by_kind"].values())
    )
    assert [each["batch"] for each in forecast["tried"]] == sorted({4, forecast["largest_batch"]})
    assert seen["memory"]["steps"][0]["peaks"]["forward"]["bytes"] > 0


def test_findings_annotate_a_pull_request(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRONG)
    ran = shapefix("train.py", "--output-format", "github", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.startswith(f"::error title=shapefix (SF501),file={tmp_path}/train.py,line=6,col=29,")
    assert ran.stdout.count("\n") == 1


def test_formats_of_findings_serve_the_probe_as_well(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRONG)
    ran = shapefix("train.py", "--output-format", "concise", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.startswith("train.py:6:29: SF501 ")
    assert ran.stdout.count("\n") == 1


def test_a_script_that_shows_nothing_is_an_annotation_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nsys.exit(3)\n")
    ran = shapefix("train.py", "--output-format", "github", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert ran.stdout == (
        f"::error title=shapefix,file={tmp_path}/train.py::the run did not complete: "
        "sys.exit(3) at train.py:2, before any batch or model\n"
    )
