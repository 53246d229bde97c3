"""Rules and libraries of other packages, installed by pip, are used like our own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HALF = "torch.zeros(2, 3, dtype=torch.float16)"
CODE = """\
import torch
import acme

x = torch.zeros(2, 3, dtype=torch.float16)
reveal(acme.pool_rows(x))
y = torch.zeros(2, 3, dtype=torch.float16)  # noqa: ACME101
x.view(7)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, installed by pip from a copy of its source."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(HERE / "example", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    options = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *options, "--target", folder / "site", "."],
        cwd=folder / "source",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return folder / "site"


def shapefix(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapefix", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


def changed(site: Path, folder: Path, name: str, old: str, new: str) -> Path:
    """Return a copy of the installation with a change in one file."""
    copy = folder / "site"
    shutil.copytree(site, copy)
    path = copy / "acme_shapefix" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return copy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(CODE)
    return tmp_path


def test_a_rule_of_a_plugin_has_formats_fixes_and_suppressions_like_ours(site: Path, folder: Path) -> None:
    ran = shapefix(site, folder, "check", "--output-format", "sarif", "train.py")
    assert (ran.returncode, ran.stderr) == (1, "")
    (run,) = json.loads(ran.stdout)["runs"]
    rule = run["tool"]["driver"]["rules"][0]
    assert (rule["id"], rule["name"]) == ("ACME101", "half-on-cpu")
    assert "ACME's accelerators" in rule["help"]["markdown"]
    found = [(each["ruleId"], each["message"]["text"]) for each in run["results"]]
    assert (
        "ACME101",
        "`torch.zeros(2, 3, dtype=torch.float16)` is float16; ACME computes in bfloat16",
    ) in found
    assert ("reveal", "f16[3]") in found  # the library of the plugin
    assert [code for code, _ in found].count("ACME101") == 1  # the other one has a comment
    ran = shapefix(site, folder, "fix", "--apply", "--unsafe-fixes", "train.py")
    assert "train.py: repaired 1 x ACME101" in ran.stdout
    assert "x = torch.zeros(2, 3, dtype=torch.bfloat16)\n" in (folder / "train.py").read_text()


def test_a_rule_of_a_plugin_is_configured_listed_and_explained(site: Path, folder: Path) -> None:
    (folder / "shapefix.toml").write_text('ignore = ["ACME1"]\n')
    ran = shapefix(site, folder, "check", "--output-format", "concise", "train.py")
    assert "ACME101" not in ran.stdout
    ran = shapefix(site, folder, "check", "--select", "half-on-cpu", "--output-format", "concise", "train.py")
    assert ran.stdout.count("ACME101") == 1
    assert shapefix(site, folder, "explain", "acme101").stdout.startswith("# half-on-cpu (ACME101)\n")
    assert shapefix(site, folder, "rules").stdout.splitlines()[-1].startswith("ACME101  half-on-cpu")


@pytest.mark.parametrize(
    ("name", "old", "new", "note"),
    [
        (
            "half_on_cpu.py",
            "    tensor = event.result\n",
            "    tensor = {}[event.function]\n",
            "note: site/acme_shapefix/half_on_cpu.py:17: rule ACME101 of plugin acme_shapefix 1.2 is not "
            "used: KeyError: 'torch.zeros'",
        ),
        (
            "__init__.py",
            "from acme_shapefix import",
            "import gone_for_good\nfrom acme_shapefix import",
            "note: site/acme_shapefix/__init__.py:3: plugin acme_shapefix 1.2 is not used: "
            "ModuleNotFoundError: No module named 'gone_for_good'",
        ),
        (
            "layers.py",
            '@function("acme.pool_rows")',
            '@function("torch.zeros")',
            "note: site/acme_shapefix/layers.py:12: plugin acme_shapefix 1.2 is not used: "
            "RegisteredTwiceError: torch.zeros is registered twice; wrap_method() adds to a method that is "
            "registered",
        ),
        (
            "pages/ACME101-half-on-cpu.md",
            "code: ACME101",
            "code: SF101",
            "note: site/acme_shapefix/pages/ACME101-half-on-cpu.md: plugin acme_shapefix 1.2 is not used: "
            "`SF101` is not a code like ACME101 with letters of its own",
        ),
        (
            "pages/ACME101-half-on-cpu.md",
            "severity: warning",
            "severity: loud",
            "note: site/acme_shapefix/pages/ACME101-half-on-cpu.md: plugin acme_shapefix 1.2 is not used: "
            "the front matter has a wrong value: 'loud' is not a valid Severity",
        ),
        (
            "__init__.py",
            "from acme_shapefix import half_on_cpu as half_on_cpu",
            "",
            "note: site/acme_shapefix/pages/ACME101-half-on-cpu.md: plugin acme_shapefix 1.2: no check is "
            "registered for rule ACME101",
        ),
    ],
    ids=["check", "import", "library", "code", "page", "unregistered"],
)
def test_a_plugin_that_raises_costs_one_line(
    site: Path, folder: Path, name: str, old: str, new: str, note: str
) -> None:
    broken = changed(site, folder, name, old, new)
    (folder / "second.py").write_text(CODE)
    files = ("train.py", "second.py")
    ran = shapefix(broken, folder, "check", "--jobs", "2", "--output-format", "concise", *files)
    assert ran.stderr.splitlines() == [note]
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert sum(" SF" in line for line in lines) == 2  # our own rules still find the view
    assert not any("ACME101" in line for line in lines)


def test_a_checked_repository_adds_no_plugin(site: Path, folder: Path) -> None:
    shutil.copytree(site, folder, dirs_exist_ok=True)
    ran = shapefix(folder, folder, "check", "--output-format", "concise", "train.py")
    assert (ran.returncode, ran.stderr, "ACME101" in ran.stdout) == (1, "", False)


def test_the_examples_of_a_page_are_tested_like_ours(site: Path, folder: Path) -> None:
    options = ("-n", "0", "-q", "-p", "no:cacheprovider", "-k", "ACME101")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/rules/test_pages_check.py"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    # Two examples, the text and the shown code of the repair, and the default selection.
    assert ran.stdout.startswith("..... ")


def test_the_manual_shows_the_example() -> None:
    page = (ROOT / "shapefix" / "docs" / "plugins.md").read_text()
    example = HERE / "example" / "acme_shapefix"
    for path in ("half_on_cpu.py", "layers.py"):
        code = (example / path).read_text()
        assert f"```python\n{code}```" in page, path
