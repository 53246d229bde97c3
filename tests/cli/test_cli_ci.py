"""The steps of the GitHub action and of the GitLab template run as their systems run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from command_line import VIEW, Project, project_in_a_folder  # noqa: F401

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FILES = ROOT / "shapefix" / "ci"


def read(name: str) -> Any:
    return import_module("yaml").safe_load((FILES / name).read_text())


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs `shapefix` and `python`; the installation by pip is left out."""
    folder = tmp_path_factory.mktemp("bin")
    for name, module in (("shapefix", "shapefix"), ("python", "true")):
        command = "true" if module == "true" else f'exec {sys.executable} -m {module} "$@"'
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)
    return folder


def run(script: str, folder: Path, programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def github_step(**inputs: str) -> tuple[str, dict[str, str]]:
    """Return the script of the last step, and its variables with the expressions evaluated."""
    action = read("action.yml")
    values = {name: each["default"] for name, each in action["inputs"].items()} | inputs
    step = action["runs"]["steps"][-1]
    assert not re.search(r"\$\{\{", step["run"]), "an input in a script is code that a stranger may write"
    pattern = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
    variables = {name: pattern.sub(lambda m: values[m[1]], text) for name, text in step["env"].items()}
    return step["run"], variables


def test_the_github_action_annotates_and_writes_sarif(project: Project, programs: Path) -> None:
    folder = project(train=VIEW, other=VIEW)
    script, variables = github_step(**{"sarif-file": "found.sarif", "paths": "train.py *"})
    ran = run(script, folder, programs, **variables)
    assert ran.returncode == 2  # there is no file `*`
    assert ran.stdout.count("::error title=shapefix (SF101),file=") == 1
    (log,) = json.loads((folder / "found.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in log["results"]] == ["SF101"]
    script, variables = github_step(arguments="--ignore SF101")
    ran = run(script, folder, programs, **variables)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_gitlab_template_writes_a_report_and_fails(project: Project, programs: Path) -> None:
    folder = project(train=VIEW)
    job = read("gitlab.yml")["shapefix"]
    ran = run("\n".join(job["script"]), folder, programs, **job["variables"])
    assert ran.returncode == 1
    assert "error[SF101]" in ran.stdout
    (entry,) = json.loads((folder / job["artifacts"]["reports"]["codequality"]).read_text())
    assert (entry["check_name"], entry["location"]["path"]) == ("SF101", "train.py")


def test_the_image_of_docker_starts_shapefix(project: Project, programs: Path) -> None:
    """Its commands are those of the file; there is no Docker here to build it."""
    text = re.sub(r"\\\n", "", (FILES / "Dockerfile").read_text())
    steps = [line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [name for name, _ in steps if name != "RUN"] == [
        *("FROM", "ARG", "USER", "ENV", "WORKDIR", "ENTRYPOINT", "CMD")
    ]
    given = dict(steps)
    folder = project(train=VIEW)
    for name, script in steps:
        if name == "RUN":
            assert subprocess.run(["sh", "-n", "-c", script], check=False).returncode == 0
    (install,) = [script for name, script in steps if name == "RUN" and "pip" in script]
    assert run(f"{given['ARG']}; {install}", folder, programs).returncode == 0
    command = [*json.loads(given["ENTRYPOINT"]), *json.loads(given["CMD"])]
    ran = run(" ".join(command), folder, programs, **dict([given["ENV"].split("=", 1)]))
    assert ran.returncode == 1
    assert "error[SF101]" in ran.stdout
