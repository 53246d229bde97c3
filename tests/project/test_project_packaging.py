"""The rule book is found, and both hooks work, wherever shapefix was installed from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PYTHONPATH"))}
    clean["PIP_COMPILE"] = "0"  # Python compiles the few modules that are imported.
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def installs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of what is tracked or new in the checkout, in a git repository of its own, to be installed from.

    Skips where pip has no index to install the dependencies of a build from.
    """
    folder = tmp_path_factory.mktemp("installs")
    index = run(
        sys.executable, "-m", "pip", "download", "--no-deps", "-d", folder, "hatchling>=1.27", cwd=folder
    )
    if index.returncode != 0:
        pytest.skip(f"pip finds no package index here: {index.stderr.strip().splitlines()[-1]}")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    source = folder / "source"
    for name in listed.stdout.splitlines():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copyfile(ROOT / name, path)
    _committed(source)
    yield folder
    shutil.rmtree(folder)


def _committed(folder: Path) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    run("git", "init", "-q", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    assert run("git", *identity, "commit", "-q", "-m", "all", cwd=folder).returncode == 0


def test_a_report_needs_no_torch() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [each.partition(">")[0] for each in extras["report"]] == ["jinja2"]
    assert set(extras["report"]) < set(extras["probe"])


# CI itself runs in an editable installation.
@pytest.mark.parametrize(
    "editable", [pytest.param(False, id="wheel"), pytest.param(True, id="editable", marks=pytest.mark.long)]
)
def test_an_installed_shapefix_works(installs: Path, tmp_path: Path, editable: bool) -> None:
    venv = tmp_path / "venv"
    assert run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path).returncode == 0
    source = installs / "source"
    target = ("-e", source) if editable else (source,)
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python")
    installed = run(*pip, "install", "-q", *target, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    page = run(venv / "bin" / "shapefix", "explain", "SF101", cwd=tmp_path)
    assert page.stdout.startswith("# view-across-stride-gap (SF101)")
    manual = run(venv / "bin" / "shapefix", "help", "probe", cwd=tmp_path)
    assert manual.stdout == (ROOT / "shapefix" / "docs" / "probe.md").read_text("utf-8"), manual.stderr
    table = "from shapefix.library.transformers.forward_signatures import of_class; "
    table += "print(of_class('T5Model').swallows)"
    assert run(venv / "bin" / "python", "-c", table, cwd=tmp_path).stdout == "True\n"
    parts = (
        "runtime/report/page/page.html.j2",
        "runtime/report/page/page.css",
        "runtime/report/probe.schema.json",
    )
    where = "import pathlib, shapefix; folder = pathlib.Path(shapefix.__file__).parent; "
    where += f"print([(folder / each).is_file() for each in {parts}])"
    assert run(venv / "bin" / "python", "-c", where, cwd=tmp_path).stdout == "[True, True, True]\n"
    (tmp_path / "train.py").write_text(VIEW)
    found = run(venv / "bin" / "shapefix", "check", "--output-format", "concise", "train.py", cwd=tmp_path)
    assert (found.returncode, found.stdout[:22]) == (1, "train.py:3:5: SF101 [*")


@pytest.mark.long
def test_a_release_is_the_same_bytes_wherever_it_is_built(installs: Path, tmp_path: Path) -> None:
    assert run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path).returncode == 0
    python = tmp_path / "venv" / "bin" / "python"
    tools = run(python, "-m", "pip", "install", "-q", "build", "hatchling", "twine", cwd=tmp_path)
    assert tools.returncode == 0, tools.stderr
    built = []
    for copy in ("one", "two"):
        source = tmp_path / copy / "source"
        shutil.copytree(installs / "source", source)  # with new times
        command = (python, "-m", "build", "-n", "-o", tmp_path / copy, source)
        done = run(*command, cwd=tmp_path, SOURCE_DATE_EPOCH="1767225600")
        assert done.returncode == 0, done.stderr
        built.append({path.name: path.read_bytes() for path in (tmp_path / copy).iterdir() if path.is_file()})
    assert sorted(path.rpartition(".")[2] for path in built[0]) == ["gz", "whl"]
    assert built[0] == built[1]
    checked = run(
        python, "-m", "twine", "check", "--strict", *(tmp_path / "one").glob("shapefix-*"), cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(next((tmp_path / "one").glob("*.whl"))) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith("METADATA"))
        readme = wheel.read(name).decode()
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(links) > 80
    assert all(link.startswith(("https://", "#")) for link in links)


def test_the_hooks_of_pre_commit(installs: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "train.py").write_text(VIEW)
    (repository / "notes.txt").write_text("not Python\n")
    source = installs / "source"
    assert run("git", "tag", "v0.1.0", cwd=source).returncode == 0
    (repository / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {source}\n    rev: v0.1.0\n    hooks: [{{id: shapefix}}, {{id: shapefix-fix}}]\n"
    )
    _committed(repository)
    pre_commit = Path(sys.executable).parent / "pre-commit"

    def tried(hook: str) -> subprocess.CompletedProcess[str]:
        return run(
            *(pre_commit, "run", hook, "--all-files", "--color", "never"),
            cwd=repository,
            PRE_COMMIT_HOME=str(tmp_path / "hooks"),
        )

    checked = tried("shapefix")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "train.py:3:5" in checked.stdout
    assert (repository / "train.py").read_text() == VIEW

    fixed = tried("shapefix-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert "files were modified by this hook" in fixed.stdout
    assert (repository / "train.py").read_text() == VIEW.replace(".view", ".reshape")

    assert tried("shapefix").returncode == 0
    assert tried("shapefix-fix").returncode == 0
