"""`probe` offers the fixes that `check` offers for the same finding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from probing import probed

from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Severity, Span
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.repair.offered import with_static_fixes

ROOT = Path(__file__).resolve().parents[2]
VIEW = """\
import torch

logits = torch.zeros(4, 6, 8)
shift = logits[:, :-1, :]
flat = shift.view(-1, 8)
"""


def found(path: Path, code: str = "SF101", row: int = 5, *fixes: Fix) -> ProbeFindings:
    finding = Diagnostic(
        code,
        "view-across-stride-gap",
        Severity.ERROR,
        "RuntimeError",
        Span(str(path), row, 1, row, 5),
        (Evidence(Span(str(path), 3, 1, 3, 2), "made here"),),
        fixes=fixes,
    )
    return ProbeFindings((finding,), None)


@pytest.fixture(name="script")
def script_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(VIEW)
    return path


def fixes(findings: ProbeFindings, script: Path) -> list[str]:
    (finding,) = with_static_fixes(findings, str(script)).diagnostics
    return [edit.content for fix in finding.fixes for edit in fix.edits]


def test_the_fix_at_the_same_place_is_offered(script: Path) -> None:
    assert fixes(found(script), script) == ["reshape"]


@pytest.mark.parametrize(("code", "row"), [("SF102", 5), ("SF101", 4)])
def test_fixes_of_other_findings_are_not(script: Path, code: str, row: int) -> None:
    assert fixes(found(script, code, row), script) == []


def test_the_other_findings_of_executed_files_are_static_ones(script: Path) -> None:
    script.write_text(VIEW + "\nshift.reshape(-1)\nprint(shift)\n")
    nothing = with_static_fixes(ProbeFindings((), None), str(script), [str(script)])
    assert [(each.code, each.span.row) for each in nothing.static] == [("SF101", 5), ("SF105", 7)]
    assert nothing.diagnostics == ()
    some = with_static_fixes(found(script), str(script), [str(script)])
    assert [(each.code, each.span.row) for each in some.static] == [("SF105", 7)]
    assert with_static_fixes(ProbeFindings((), None), str(script)).static == ()


def test_a_silent_effect_elsewhere_gets_the_fix_of_the_only_cause(script: Path) -> None:
    script.write_text(VIEW + "shift.reshape(-1)\nprint(shift)\n")
    assert fixes(found(script, "SF105", 3), script) == ["shift = "]
    script.write_text(VIEW + "shift.reshape(-1)\nlogits.reshape(-1)\nprint(shift, logits)\n")
    assert fixes(found(script, "SF105", 3), script) == []


def test_a_fix_from_measured_values_comes_after_it_and_equal_ones_are_one(script: Path) -> None:
    at = Span(str(script), 5, 1, 5, 5)
    measured = Fix(Applicability.UNSAFE, "measured", (Edit(at, "whole"),))
    assert fixes(found(script, "SF101", 5, measured), script) == ["reshape", "whole"]
    (known,) = with_static_fixes(found(script), str(script)).diagnostics[0].fixes
    assert fixes(found(script, "SF101", 5, known), script) == ["reshape"]


def test_rules_that_the_configuration_ignores_offer_nothing(script: Path) -> None:
    script.with_name("shapefix.toml").write_text('ignore = ["SF101"]\n')
    assert fixes(found(script), script) == []
    script.with_name("shapefix.toml").write_text("selct = 1\n")
    assert fixes(found(script), script) == []


def test_the_fix_may_be_in_an_imported_file(script: Path) -> None:
    model = script.with_name("model.py")
    model.write_text("import torch\n\n\ndef flatten(x):\n    return x.view(-1, x.size(-1))\n")
    script.write_text("import torch, model\n\nmodel.flatten(torch.zeros(4, 6, 8)[:, :-1])\n")
    assert fixes(found(model), script) == ["reshape"]


def answers(*arguments: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-m", "shapefix", *arguments, "--output-format", "json"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    return json.loads(ran.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "larger-images",
        "sliced-logits-eval",
        pytest.param("embedding-projection", marks=pytest.mark.long),
        pytest.param("unet-skips", marks=pytest.mark.long),
    ],
)
def test_check_and_probe_offer_the_same_for_a_broken_project(name: str) -> None:
    script = str(ROOT / "fixtures" / name / "before" / "train.py")
    checked = answers("check", "--isolated", "--no-cache", script)
    (probed,) = answers("probe", "--python", sys.executable, script)["findings"]
    offered = [each["fix"] for each in checked if each["code"] == probed["code"]]
    assert offered
    # They are ordered by place, and a run ends at the first one.
    assert probed["fix"] == offered[0]


def test_columns_tell_two_findings_of_a_row_apart(script: Path) -> None:
    script.write_text(VIEW + "x = (shift.view(-1, 8), shift.view(-1))\n")
    at = found(script, row=6).diagnostics[0]
    second = replace(at, span=Span(str(script), 6, 25, 6, 39))
    (fix,) = with_static_fixes(ProbeFindings((second,), None), str(script)).diagnostics[0].fixes
    assert [edit.span.column for edit in fix.edits] == [31]


def test_an_index_of_a_number_becomes_item(tmp_path: Path) -> None:
    script = (
        "import torch\nfrom torch import nn\nmodel = nn.Linear(2, 1)\nloss = model(torch.ones(1, 2)).sum()\n"
    )
    (found,) = probed(tmp_path, f"{script}print(loss.data[0] / 2)\n").found
    (fix,) = found.fixes
    assert [each.content for each in fix.edits] == ["loss.item()"]


def test_async_arguments_are_renamed(tmp_path: Path) -> None:
    script = "import torch\nx = torch.zeros(3)\ny = x.cuda(async=True)\nz = x.cpu(async = True)\n"
    (found,) = probed(tmp_path, script).found
    assert "`async` is a keyword since Python 3.7" in found.message
    (fix,) = found.fixes
    assert [(each.span.row, each.span.column, each.content) for each in fix.edits] == [
        (3, 12, "non_blocking"),
        (4, 11, "non_blocking"),
    ]
