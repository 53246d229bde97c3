"""The formats of CI systems and coding agents, each read the way its reader does."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from findings import LABELS, STRIDED, THROWN_AWAY, TRAIN, text_of

from shapefix.diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Failure,
    Fix,
    Severity,
    Span,
    Unchecked,
)
from shapefix.report.edited_text import edited_text, joined_edit
from shapefix.report.fingerprints import fingerprints
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View

ODD_PATH = "ünï ;],%:&<x>.py"
ODD_CODE = "é = '日本'; x.view(-1)"
ODD = Diagnostic(
    "SF101",
    "view-across-stride-gap",
    Severity.ERROR,
    "<b>&\"'100%;] \x1b[31m\r\n::日本 🙂 ]]> \ud800",
    Span(ODD_PATH, 1, 11, 1, 21),
    fixes=(Fix(Applicability.SAFE, "use `.reshape`", (Edit(Span(ODD_PATH, 1, 13, 1, 17), "reshape"),)),),
)
CELL = replace(LABELS, span=replace(LABELS.span, path="n.ipynb:cell 3"), evidence=())
FAILURES = (
    Failure("old.py", "`print x` is Python 2", 3, 7),
    Failure("n.ipynb:cell 2", "invalid syntax", 1, 2),
    Failure("gone.py", "does not exist"),
)
ALL = (STRIDED, THROWN_AWAY, ODD, CELL)
VIEW = View("/project", sources={"train.py": TRAIN.text, ODD_PATH: ODD_CODE}.get)
MACHINES = ("agent", "azure", "gitlab", "junit", "pylint", "rdjson", "sarif")


def shown(name: str, *findings: Diagnostic, failures: tuple[Failure, ...] = (), view: View = VIEW) -> str:
    return text_of(FINDING_FORMATS[name].render(findings, failures, view))


@pytest.mark.parametrize("name", MACHINES)
def test_no_format_writes_a_control_character_or_an_unpaired_surrogate(name: str) -> None:
    text = shown(name, *ALL, failures=FAILURES)
    assert not {each for each in text if (ord(each) < 32 or 127 <= ord(each) < 160) and each not in "\n\t"}
    if name in ("gitlab", "junit", "rdjson", "sarif"):
        text.encode()


def test_agent_lines_have_the_fix_as_a_patch() -> None:
    assert shown("agent", STRIDED, THROWN_AWAY, ODD, CELL, failures=FAILURES) == (
        """\
train.py:10:28 SF101 error `shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap
  when: the batch holds more than one sequence
  producer: train.py:6:13 sliced here: strides become (T*V, V, 1)
  fix (safe): use `.reshape`
--- train.py
+++ train.py
@@ -9,3 +9,3 @@
     count = mask.sum()
-    loss = F.cross_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
+    loss = F.cross_entropy(shift.reshape(-1, V), labels[:, 1:].view(-1))
     count.float()
train.py:11:5 SF105 warning the result of `count.float()` is unused
  fix (unsafe): assign it to `count`
--- train.py
+++ train.py
@@ -10,3 +10,3 @@
     loss = F.cross_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
-    count.float()
+    count = count.float()
     return loss / count
ünï ;],%:&<x>.py:1:11 SF101 error <b>&"'100%;] ␛[31m ::日本 🙂 ]]> \ud800
  fix (safe): use `.reshape`
--- ünï ;],%:&<x>.py
+++ ünï ;],%:&<x>.py
@@ -1 +1 @@
-é = '日本'; x.view(-1)
\\ No newline at end of file
+é = '日本'; x.reshape(-1)
\\ No newline at end of file
n.ipynb:cell 3:10:47 SF101 error `labels[:, 1:].view(-1)` merges across a stride gap
error: old.py:3:7: `print x` is Python 2
error: n.ipynb:cell 2:1:2: invalid syntax
error: gone.py: does not exist
"""
    )
    assert shown("agent") == "no findings\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_patch_of_the_agent_format_applies(tmp_path: Path, newline: str, end: str) -> None:
    text = newline.join(TRAIN.text.splitlines()) + end
    (tmp_path / "train.py").write_bytes(text.encode())
    for finding in (STRIDED, replace(THROWN_AWAY, span=replace(THROWN_AWAY.span, row=11))):
        view = View(str(tmp_path), sources={"train.py": text}.get)
        patch = shown("agent", finding, view=view)
        patch = patch[patch.index("--- ") :]
        applied = ["git", "apply", "-p0", "--whitespace=nowarn", "-"]
        subprocess.run(applied, input=patch.encode(), cwd=tmp_path, check=True)
        assert finding.fix is not None
        assert (tmp_path / "train.py").read_bytes().decode() == edited_text(finding.fix, text)
        (tmp_path / "train.py").write_bytes(text.encode())


def test_azure_escapes_what_would_end_a_property_or_the_command() -> None:
    assert shown("azure", STRIDED, THROWN_AWAY, ODD, CELL, failures=FAILURES) == (
        "##vso[task.logissue type=error;sourcepath=/project/train.py;linenumber=10;columnnumber=28;"
        "code=SF101;]`shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap;"
        " fails when: the batch holds more than one sequence\n"
        "##vso[task.logissue type=warning;sourcepath=/project/train.py;linenumber=11;columnnumber=5;"
        "code=SF105;]the result of `count.float()` is unused\n"
        "##vso[task.logissue type=error;sourcepath=/project/ünï %3B%5D,%AZP25:&<x>.py;linenumber=1;"
        "columnnumber=11;code=SF101;]<b>&\"'100%AZP25;] ␛[31m%0D%0A::日本 🙂 ]]> \ud800\n"
        "##vso[task.logissue type=error;sourcepath=/project/n.ipynb;code=SF101;]"
        "cell 3, row 10: `labels[:, 1:].view(-1)` merges across a stride gap\n"
        "##vso[task.logissue type=error;sourcepath=/project/old.py;linenumber=3;columnnumber=7;]"
        "`print x` is Python 2\n"
        "##vso[task.logissue type=error;sourcepath=/project/n.ipynb;]cell 2, row 1: invalid syntax\n"
        "##vso[task.logissue type=error;sourcepath=/project/gone.py;]does not exist\n"
    )
    assert shown("azure") == ""


def test_pylint_has_a_line_for_everything() -> None:
    assert shown("pylint", STRIDED, ODD, CELL, failures=FAILURES) == (
        "train.py:10: [SF101] `shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap\n"
        "ünï ;],%:&<x>.py:1: [SF101] <b>&\"'100%;] ␛[31m ::日本 🙂 ]]> \ud800\n"
        "n.ipynb:cell 3:10: [SF101] `labels[:, 1:].view(-1)` merges across a stride gap\n"
        "old.py:3: [error] `print x` is Python 2\n"
        "n.ipynb:cell 2:1: [error] invalid syntax\n"
        "gone.py:1: [error] does not exist\n"
    )
    assert shown("pylint") == ""


def test_gitlab_has_what_its_report_needs() -> None:
    strided, thrown, odd, cell, old, second_cell, gone = json.loads(shown("gitlab", *ALL, failures=FAILURES))
    assert strided == {
        "description": "SF101: `shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap;"
        " fails when: the batch holds more than one sequence",
        "check_name": "SF101",
        "fingerprint": fingerprints([STRIDED], VIEW)[0],
        "severity": "critical",
        "location": {"path": "train.py", "lines": {"begin": 10, "end": 10}},
    }
    assert thrown["severity"] == "major"
    assert odd["location"]["path"] == ODD_PATH
    assert odd["description"] == f"SF101: {ODD.message[:-1]}\ufffd"
    assert cell["location"] == {"path": "n.ipynb", "lines": {"begin": 1, "end": 1}}
    assert cell["description"].startswith("cell 3, row 10: SF101: ")
    assert (old["severity"], old["location"]["lines"]["begin"]) == ("blocker", 3)
    assert second_cell["location"]["path"] == "n.ipynb"
    assert gone["location"] == {"path": "gone.py", "lines": {"begin": 1, "end": 1}}
    marks = [each["fingerprint"] for each in (strided, thrown, odd, cell, old, second_cell, gone)]
    assert len(set(marks)) == len(marks)
    assert json.loads(shown("gitlab")) == []


def test_junit_is_a_suite_per_file_and_a_test_per_finding() -> None:
    info = replace(THROWN_AWAY, severity=Severity.INFO)
    root = ElementTree.fromstring(shown("junit", *ALL, info, failures=FAILURES).encode())
    assert (root.tag, root.attrib) == (
        "testsuites",
        {"name": "shapefix", "tests": "8", "failures": "4", "errors": "3"},
    )
    assert [
        (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in root
    ] == [
        ("train.py", "3", "2", "0"),
        (ODD_PATH, "1", "1", "0"),
        ("n.ipynb", "2", "1", "1"),
        ("old.py", "1", "0", "1"),
        ("gone.py", "1", "0", "1"),
    ]
    first = root[0][0]
    assert first.attrib == {
        "classname": "train.py",
        "name": "SF101 at train.py:10:28",
    }
    failure = first[0]
    assert (failure.tag, failure.get("type"), failure.get("message")) == (
        "failure",
        STRIDED.name,
        STRIDED.message,
    )
    assert failure.text == (
        f"{STRIDED.message}\n"
        "fails when: the batch holds more than one sequence\n"
        "train.py:6:13: sliced here: strides become (T*V, V, 1)\n"
        "train.py:10:28: merged here: needs stride (T - 1)*V, has T*V\n"
        "fix (safe): use `.reshape`"
    )
    assert root[0][2][0].tag == "system-out"  # severity info: a passed test
    assert root[1][0][0].get("message") == "<b>&\"'100%;] ␛[31m␍\n::日本 🙂 ]]> \ufffd"
    assert [case.get("name") for case in root[2]] == [
        "SF101 at n.ipynb:cell 3:10:47",
        "not checked at n.ipynb:cell 2:1:2",
    ]
    assert root[2][1][0].tag == "error"


def test_junit_without_findings_is_one_passed_test() -> None:
    root = ElementTree.fromstring(shown("junit").encode())
    assert root.get("tests") == "1"
    assert [case.tag for case in root[0]] == ["testcase"]
    assert not list(root[0][0])


def test_rdjson_counts_bytes_and_joins_the_edits_of_a_fix() -> None:
    two = Fix(
        Applicability.UNSAFE,
        "both",
        (Edit(Span("train.py", 11, 5, 11, 5), "count = "), Edit(Span("train.py", 10, 34, 10, 38), "reshape")),
    )
    found = json.loads(shown("rdjson", STRIDED, ODD, CELL, replace(STRIDED, fixes=(two,)), failures=FAILURES))
    assert found["source"] == {"name": "shapefix"}
    strided, odd, cell, both, old, _, gone = found["diagnostics"]
    assert strided == {
        "message": f"{STRIDED.message}\nfails when: the batch holds more than one sequence",
        "severity": "ERROR",
        "code": {"value": "SF101"},
        "location": {
            "path": "train.py",
            "range": {"start": {"line": 10, "column": 28}, "end": {"line": 10, "column": 45}},
        },
        "suggestions": [
            {
                "range": {"start": {"line": 10, "column": 34}, "end": {"line": 10, "column": 38}},
                "text": "reshape",
            }
        ],
    }
    (suggestion,) = odd["suggestions"]
    start, end = (suggestion["range"][each]["column"] - 1 for each in ("start", "end"))
    assert ODD_CODE.encode()[start:end] == b"view"
    assert (cell["location"], "suggestions" in cell) == ({"path": "n.ipynb"}, False)
    (suggestion,) = both["suggestions"]
    assert suggestion["range"] == {"start": {"line": 10, "column": 34}, "end": {"line": 11, "column": 5}}
    assert suggestion["text"] == "reshape(-1, V), labels[:, 1:].view(-1))\n    count = "
    assert old["location"] == {"path": "old.py", "range": {"start": {"line": 3, "column": 7}}}
    assert gone["location"] == {"path": "gone.py"}
    assert json.loads(shown("rdjson"))["diagnostics"] == []


def sarif(*findings: Diagnostic, failures: tuple[Failure, ...] = (), view: View = VIEW) -> Any:
    """Return the run of a log that the models of the official schema accept."""
    from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log

    text = shown("sarif", *findings, failures=failures, view=view)
    Log.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    return run


def test_sarif_has_rules_code_flows_fixes_and_fingerprints() -> None:
    run = sarif(*ALL, failures=FAILURES)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["SF101", "SF105"]
    assert "## Why is this bad?" in rules[0]["help"]["markdown"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///project/"}}
    strided, thrown, odd, cell = run["results"]
    train = {"uri": "train.py", "uriBaseId": "SRCROOT"}
    region = {"startLine": 10, "startColumn": 28, "endLine": 10, "endColumn": 45}
    assert (strided["ruleId"], strided["ruleIndex"], strided["level"]) == ("SF101", 0, "error")
    assert strided["locations"] == [{"physicalLocation": {"artifactLocation": train, "region": region}}]
    ((flow,),) = [each["threadFlows"] for each in strided["codeFlows"]]
    assert [step["location"]["message"]["text"] for step in flow["locations"]] == [
        "sliced here: strides become (T*V, V, 1)",
        "merged here: needs stride (T - 1)*V, has T*V",
    ]
    assert [step["importance"] for step in flow["locations"]] == ["important", "essential"]
    assert strided["fixes"] == [
        {
            "description": {"text": "use `.reshape`"},
            "artifactChanges": [
                {
                    "artifactLocation": train,
                    "replacements": [
                        {
                            "deletedRegion": {
                                "startLine": 10, "startColumn": 34, "endLine": 10, "endColumn": 38,
                            },
                            "insertedContent": {"text": "reshape"},
                        }
                    ],
                }
            ],
        }
    ]  # fmt: skip
    assert strided["partialFingerprints"] == {"shapefix/v1": fingerprints([STRIDED], VIEW)[0]}
    assert strided["properties"] == {
        "condition": "the batch holds more than one sequence",
        "applicability": "safe",
    }
    assert thrown["level"] == "warning"
    uri = odd["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "%C3%BCn%C3%AF%20%3B%5D%2C%25%3A%26%3Cx%3E.py"
    assert cell["locations"][0] == {
        "physicalLocation": {
            "artifactLocation": {"uri": "n.ipynb", "uriBaseId": "SRCROOT"},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"name": "cell 3", "fullyQualifiedName": "n.ipynb:cell 3:10:47"}],
    }
    assert "fixes" not in sarif(replace(STRIDED, span=CELL.span, fixes=(_in_cell(STRIDED),)))["results"][0]


def _in_cell(finding: Diagnostic) -> Fix:
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    return replace(finding.fix, edits=(replace(edit, span=replace(edit.span, path="n.ipynb:cell 3")),))


def test_sarif_reports_what_was_not_checked_as_notifications() -> None:
    view = replace(VIEW, unchecked=(Unchecked("train.py", "the limit of analysis was reached", 4, 1),))
    (invocation,) = sarif(failures=FAILURES, view=view)["invocations"]
    assert not invocation["executionSuccessful"]
    notes = invocation["toolExecutionNotifications"]
    assert [(each["level"], each["message"]["text"]) for each in notes] == [
        ("error", "`print x` is Python 2"),
        ("error", "cell 2, row 1: invalid syntax"),
        ("error", "does not exist"),
        ("note", "the limit of analysis was reached"),
    ]
    assert notes[0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
    empty = sarif()
    assert (empty["results"], empty["invocations"][0]["executionSuccessful"]) == ([], True)


def test_sarif_of_a_file_outside_has_an_absolute_uri() -> None:
    (result,) = sarif(replace(LABELS, evidence=(), span=replace(LABELS.span, path="/other/a b.py")))[
        "results"
    ]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "file:///other/a%20b.py"}


def test_fingerprints_do_not_depend_on_the_line_and_differ_for_repetitions() -> None:
    moved = replace(THROWN_AWAY.span, row=13, end_row=13)
    below = View("/project", sources={"train.py": "\n\n" + TRAIN.text}.get)
    assert fingerprints([THROWN_AWAY], VIEW) == fingerprints([replace(THROWN_AWAY, span=moved)], below)
    first, second = fingerprints([THROWN_AWAY, THROWN_AWAY], VIEW)
    assert first != second
    assert fingerprints([replace(THROWN_AWAY, code="SF601")], VIEW)[0] != first
    cells = [replace(CELL, span=replace(CELL.span, path=f"n.ipynb:cell {number}")) for number in (3, 4)]
    assert fingerprints(cells[:1], VIEW) == fingerprints(cells[1:], VIEW)
    edited = View("/project", sources={"train.py": TRAIN.text.replace("count.float()", "count.half()")}.get)
    assert fingerprints([THROWN_AWAY], edited)[0] != first


def test_an_edit_outside_of_the_text_has_no_patch() -> None:
    for span in (Span("a.py", 4, 1, 4, 1), Span("a.py", 1, 9, 1, 9), Span("a.py", 1, 2, 1, 1)):
        fix = Fix(Applicability.SAFE, "?", (Edit(span, "x"),))
        assert edited_text(fix, "ab\n") is None
        assert joined_edit(fix, "ab\n") is None
    overlapping = Fix(
        Applicability.SAFE,
        "?",
        (Edit(Span("a.py", 1, 1, 1, 3), "x"), Edit(Span("a.py", 1, 2, 1, 3), "y")),
    )
    assert edited_text(overlapping, "ab\n") is None
    at_the_end = Fix(Applicability.SAFE, "?", (Edit(Span("a.py", 2, 1, 2, 1), "cd\n"),))
    assert edited_text(at_the_end, "ab\n") == "ab\ncd\n"
