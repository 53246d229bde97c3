"""`shapefix.check` and the other functions for programs agree with the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from asked_programs import LOG, NET, VIEW

import shapefix
from shapefix.cli.main import run
from shapefix.diagnostics import Applicability
from shapefix.sources.configuration import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(VIEW)
    return tmp_path


def test_the_import_is_light_and_dir_has_the_functions_only() -> None:
    program = """
import sys
import shapefix
assert dir(shapefix) == ["check", "check_source", "diagnose", "probe", "reveal", "shapes"]
heavy = {"libcst", "click", "rich", "torch", "packaging", "shapefix.diagnostics", "shapefix.engine"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from shapefix import check_source
assert "libcst" in sys.modules and "click" not in sys.modules
assert [each.code for each in check_source("import torch\\nx = torch.ones(2, 3).t().view(6)\\n")] == ["SF101"]
assert callable(shapefix.shapes)  # still the function after its package was used
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_check_finds_what_the_command_finds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text("import torch\nx = (\n")
    assert run(["check", "--output-format", "json", "--no-cache", "."]) == 2
    entries = json.loads(capsys.readouterr().out)
    given: tuple[str | Path | list[str | Path], ...] = (".", folder, [folder / "train.py", "broken.py"])
    for paths in given:
        found = shapefix.check(paths, use_cache=False)
        assert [(each.code, each.span.row, each.text) for each in found] == [
            (each["code"], each["location"]["row"], each["message"]) for each in entries if each["code"]
        ]
        assert [Path(each.path).name for each in found.failures] == ["broken.py"]
    (only,) = shapefix.check("train.py", use_cache=False)
    assert only.span.path == str(folder / "train.py")
    assert only.fix is not None
    assert only.fix.applicability is Applicability.SAFE


def test_options_and_configurations_apply(folder: Path) -> None:
    assert shapefix.check(".", ignore=["SF101"], use_cache=False) == []
    assert shapefix.check(".", select=["SF5"], use_cache=False) == []
    (folder / "shapefix.toml").write_text('ignore = ["SF1"]\n')
    assert shapefix.check(".", use_cache=False) == []
    assert len(shapefix.check(".", isolated=True, use_cache=False)) == 1
    (folder / "shapefix.toml").write_text("ignore = 1\n")
    with pytest.raises(ConfigurationError, match="ignore must be a list of strings"):
        shapefix.check(".", use_cache=False)


def test_check_source_needs_no_file(folder: Path) -> None:
    (found,) = shapefix.check_source(VIEW)
    assert (found.code, found.span.path, found.span.row) == ("SF101", "-", 4)
    (found,) = shapefix.check_source("import torch\nfrom train import x\nx.view(-1, 8)\n", "other.py")
    assert (found.code, found.span.path) == ("SF101", str(folder / "other.py"))
    assert shapefix.check_source("x = 1  # ä\n") == []
    cookie = f"# -*- coding: latin-1 -*-\n# ä\n{VIEW}"
    assert [each.span.row for each in shapefix.check_source(cookie)] == [6]
    (failure,) = shapefix.check_source("import torch\nx = (\n", "broken.py").failures
    assert (failure.row, "was never closed" in failure.message) == (2, True)
    (answer,) = shapefix.check_source(f"{VIEW}reveal(x)\n").answers
    assert answer.message == "f32[4, 5, 8] strides (48, 8, 1)"


def test_check_source_reads_notebooks() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": VIEW}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4})
    (found,) = shapefix.check_source(text, "train.ipynb")
    assert found.span.path.endswith("train.ipynb:cell 1")


def test_shapes_are_listings_with_a_text(folder: Path) -> None:
    (folder / "model.py").write_text(NET)
    (listing,) = shapefix.shapes("model.py:Net", "x: f32[B, 3]")
    assert listing.name == "Net.forward"
    assert [held.values[0].text for row in listing.rows for held in row.held] == ["f32[B, 3]", "f32[B, 4]"]
    assert "return  f32[B, 4]" in str(listing)


def test_diagnose_takes_a_text_or_a_path(folder: Path) -> None:
    (folder / "train.log").write_text(LOG)
    for log in (LOG, folder / "train.log"):
        found = shapefix.diagnose(log)
        assert found is not None
        assert [cause.finding.code for cause in found.causes] == ["SF101"]
        assert "Cause: proved\n" in str(found)
        assert "+y = x.reshape(-1, 8)\n" in str(found)
    assert shapefix.diagnose("loss 0.5\n") is None
    with pytest.raises(FileNotFoundError):
        shapefix.diagnose(folder / "gone.log")


def test_the_examples_of_the_manual_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(shapefix.__file__).parent / "docs" / "api.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    assert len(blocks) >= 4
    (folder / "model.py").write_text(NET.replace("Net", "UNet"))
    (folder / "train.log").write_text(LOG)
    for block in blocks:
        exec(compile(block, "api.md", "exec"), {})
    out = capsys.readouterr().out
    assert "train.py:4 SF101" in out
    assert "Cause: proved" in out
    assert "f32[8, 3]" in out
