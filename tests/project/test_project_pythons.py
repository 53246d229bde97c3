"""The other versions of Python on this machine: they parse, import and run shapefix."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MINORS = (11, 12, 13, 14, 15)
BUILDS = (*map(Path, os.get_exec_path()), *Path("~/.pyenv/versions").expanduser().glob("*/bin"))

# What runs in a user's own interpreter: it has the standard library, and perhaps torch.
ALONE = """\
import importlib, pathlib, sys, warnings
root = pathlib.Path(sys.argv[1])
warnings.simplefilter("error")
for path in sorted(root.rglob("*.py")):
    compile(path.read_bytes(), str(path), "exec")
sys.path.insert(0, str(root.parent))
for name in sys.argv[2:]:
    importlib.import_module(name)
from shapefix.tensors.polynomials import Size
from shapefix.runtime.agent.masking import Masker
assert "aB3d" not in Masker().mask("hf_" + "aB3d" * 9)
assert (Size.of(3) * Size.of(4)).value == 12
"""


@cache
def interpreter(minor: int) -> str | None:
    """Find a Python of this version other than the one of the tests; None without one."""
    if sys.version_info[:2] == (3, minor):
        return None
    for folder in BUILDS:
        path = folder / f"python3.{minor}"
        if path.is_file() and "shims" not in path.parts:
            return str(path)
    return None


def others() -> list[object]:
    return [
        pytest.param(
            minor,
            marks=pytest.mark.skipif(interpreter(minor) is None, reason=f"no other Python 3.{minor} is here"),
        )
        for minor in MINORS
        if sys.version_info[:2] != (3, minor)
    ]


def modules_without_dependencies() -> list[str]:
    """Name the modules of the agent, the protocol and the algebra that import the standard library only."""
    names = []
    for folder in ("runtime/agent", "runtime/protocol", "tensors"):
        for path in sorted((ROOT / "shapefix" / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            if not re.search(r"^\s*(?:import|from) torch\b", text, re.MULTILINE) and path.stem != "__main__":
                names.append(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    return names


@pytest.mark.slow
@pytest.mark.parametrize("minor", others())
def test_every_file_is_parsed_and_the_agent_is_imported(minor: int, tmp_path: Path) -> None:
    names = modules_without_dependencies()
    assert len(names) > 40
    found = interpreter(minor)
    assert found is not None
    command = [found, "-B", "-c", ALONE, str(ROOT / "shapefix"), *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-1_000:]


WASM = """\
import { loadPyodide } from "pyodide";
const python = await loadPyodide();
python.FS.mkdir("/root");
python.FS.mount(python.FS.filesystems.NODEFS, { root: process.argv[2] }, "/root");
python.globals.set("arguments", JSON.stringify(process.argv.slice(3)));
python.runPython(`
import json, sys
sys.argv = ["-", *json.loads(arguments)]
exec(sys.argv.pop(2), {})
print("Python", *sys.version_info[:2])
`);
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("npm") is None, reason="npm, which installs Python for WebAssembly, is missing"
)
def test_the_newest_python_for_webassembly(tmp_path: Path) -> None:
    """The package of npm has the newest Python, also where no build for the machine can be had."""
    (tmp_path / "run.mjs").write_text(WASM)
    installed = subprocess.run(["npm", "install", "pyodide"], cwd=tmp_path, capture_output=True, check=False)
    if installed.returncode != 0:
        pytest.skip("npm has no index here")
    package = tmp_path / "folder" / "shapefix"
    package.parent.mkdir()
    shutil.copytree(ROOT / "shapefix", package, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    command = [
        "node",
        "run.mjs",
        str(package.parent),
        "/root/shapefix",
        ALONE,
        *modules_without_dependencies(),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"Python 3 1[4-9]\n", done.stdout), done.stderr[-1_000:]


def findings(python: str) -> list[dict[str, object]]:
    """Check the fixtures with an interpreter."""
    done = subprocess.run(
        [python, "-m", "shapefix", "check", "--no-cache", "--output-format", "json", "fixtures"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 1, done.stderr[-1_000:]
    parsed: list[dict[str, object]] = json.loads(done.stdout)
    return parsed


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("minor", others())
def test_findings_are_the_same(minor: int, tmp_path: Path) -> None:
    """Installs what shapefix needs from the package index."""
    found = interpreter(minor)
    assert found is not None
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True)
    needed = ("click", "libcst", "packaging", "rich")
    subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True)
    here = findings(sys.executable)
    assert len(here) > 20
    assert findings(str(python)) == here
