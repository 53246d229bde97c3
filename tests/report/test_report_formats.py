"""The formats that programs read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from findings import LABELS, STRIDED, THROWN_AWAY, text_of

from shapefix.diagnostics import Diagnostic, Failure, Severity, Span
from shapefix.report import statistics
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View, wants_color

VIEW = View("/project")
FAILURE = Failure("old.py", "`print x` is Python 2", 3, 7)


def shown(name: str, *findings: Diagnostic, failures: tuple[Failure, ...] = (), view: View = VIEW) -> str:
    return text_of(FINDING_FORMATS[name].render(findings, failures, view))


def test_concise_is_a_line_per_finding_and_marks_what_fix_repairs() -> None:
    assert (
        shown("concise", STRIDED, LABELS, THROWN_AWAY, failures=(FAILURE,))
        == """\
train.py:10:28: SF101 [*] `shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap
train.py:10:47: SF101 `labels[:, 1:].view(-1)` merges across a stride gap
train.py:11:5: SF105 the result of `count.float()` is unused
error: old.py:3:7: `print x` is Python 2
"""
    )


def test_unsafe_fixes_are_marked_when_they_are_asked_for() -> None:
    assert " SF105 [*] " in shown("concise", THROWN_AWAY, view=replace(VIEW, unsafe_fixes=True))


def test_a_message_never_takes_a_second_line() -> None:
    assert (
        shown("concise", replace(LABELS, message="one\r\n  two\x1b[31m"))
        == "train.py:10:47: SF101 one two␛[31m\n"
    )


def test_paths_are_relative_inside_the_folder_and_absolute_outside_it() -> None:
    def path(given: str) -> str:
        place = replace(LABELS.span, path=given)
        return shown("concise", replace(LABELS, span=place)).partition(":")[0]

    assert path("/project/src/a.py") == "src/a.py"
    assert path("./src/../a.py") == "a.py"
    assert path("/projects/a.py") == "/projects/a.py"
    assert path("../a.py") == "/a.py"
    assert path("-") == "-"


def test_json_is_ruffs_list_of_objects_with_evidence_and_condition() -> None:
    [entry] = json.loads(shown("json", STRIDED))
    assert entry == {
        "code": "SF101",
        "name": "view-across-stride-gap",
        "message": "`shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap",
        "severity": "error",
        "filename": "/project/train.py",
        "location": {"row": 10, "column": 28},
        "end_location": {"row": 10, "column": 45},
        "error": None,
        "cause": {
            "code": "SF101",
            "filename": "/project/train.py",
            "location": {"row": 10, "column": 28},
            "end_location": {"row": 10, "column": 45},
        },
        "evidence": [
            {
                "filename": "/project/train.py",
                "location": {"row": 6, "column": 13},
                "end_location": {"row": 6, "column": 30},
                "message": "sliced here: strides become (T*V, V, 1)",
                "role": "producer",
            },
            {
                "filename": "/project/train.py",
                "location": {"row": 10, "column": 28},
                "end_location": {"row": 10, "column": 45},
                "message": "merged here: needs stride (T - 1)*V, has T*V",
                "role": "failure",
            },
        ],
        "condition": "the batch holds more than one sequence",
        "reservation": None,
        "fix": {
            "applicability": "safe",
            "message": "use `.reshape`",
            "edits": [
                {
                    "content": "reshape",
                    "location": {"row": 10, "column": 34},
                    "end_location": {"row": 10, "column": 38},
                }
            ],
        },
    }


def test_json_without_condition_and_fix_has_nulls() -> None:
    [entry] = json.loads(shown("json", LABELS))
    assert (entry["condition"], entry["fix"]) == (None, None)


def test_json_of_nothing_is_an_empty_list() -> None:
    assert json.loads(shown("json")) == []


def test_a_failure_in_json_has_the_same_keys_and_no_code() -> None:
    whole, place = json.loads(shown("json", STRIDED, failures=(FAILURE,)))
    assert list(place) == list(whole)
    assert (place["code"], place["severity"], place["location"]) == (None, "error", {"row": 3, "column": 7})
    [unplaced] = json.loads(shown("json", failures=(Failure("a.py", "holds a NUL byte"),)))
    assert unplaced["location"] is None


@pytest.mark.parametrize("path", ["日本.py", "not-utf8-\udcff.py"])
def test_json_can_be_written_whatever_the_filename(path: str) -> None:
    text = shown("json", failures=(Failure(path, "vanished"),))
    assert json.loads(text.encode().decode())[0]["filename"] == f"/project/{path}"


def test_github_annotates_the_row_by_severity() -> None:
    assert shown(
        "github", STRIDED, THROWN_AWAY, replace(LABELS, severity=Severity.INFO), failures=(FAILURE,)
    ) == (
        "::error title=shapefix (SF101),file=/project/train.py,line=10,col=28,endLine=10,endColumn=45::"
        "`shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across a stride gap"
        "%0Afails when: the batch holds more than one sequence\n"
        "::warning title=shapefix (SF105),file=/project/train.py,line=11,col=5,endLine=11,endColumn=18::"
        "the result of `count.float()` is unused\n"
        "::notice title=shapefix (SF101),file=/project/train.py,line=10,col=47,endLine=10,endColumn=69::"
        "`labels[:, 1:].view(-1)` merges across a stride gap\n"
        "::error title=shapefix,file=/project/old.py,line=3,col=7::`print x` is Python 2\n"
    )


def test_github_escapes_what_would_end_a_property_or_the_message() -> None:
    odd = replace(LABELS, message="100%\r\n::stop", span=replace(LABELS.span, path="a,b:c%.py"))
    assert shown("github", odd) == (
        "::error title=shapefix (SF101),file=/project/a%2Cb%3Ac%25.py,"
        "line=10,col=47,endLine=10,endColumn=69::"
        "100%25%0D%0A::stop\n"
    )


def test_github_takes_no_columns_for_several_rows() -> None:
    long = replace(LABELS, span=Span("train.py", 10, 5, 12, 2))
    assert ",line=10,endLine=12::" in shown("github", long)


def test_statistics_count_by_code_the_most_frequent_first() -> None:
    findings = (
        [THROWN_AWAY] + [LABELS, STRIDED] * 5 + [replace(STRIDED, code="SF103", name="view-as-transpose")]
    )
    assert (
        text_of(statistics.render(findings, VIEW))
        == """\
10  SF101  [-] view-across-stride-gap
 1  SF103  [*] view-as-transpose
 1  SF105  [ ] result-thrown-away
"""
    )


@pytest.mark.parametrize("name", ["concise", "json", "github", "sarif", "agent", "full"])
def test_only_colors_and_frames_load_rich(name: str) -> None:
    program = f"""
import sys
from shapefix.diagnostics import *
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View
assert "rich" not in sys.modules and "libcst" not in sys.modules
finding = Diagnostic("SF101", "rule", Severity.ERROR, "it fails", Span("a.py", 1, 1, 1, 2))
print("".join(FINDING_FORMATS[{name!r}].render([finding], [], View("/", sources={{"a.py": "é"}}.get))))
sys.exit("rich" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (int(name == "full"), b"")


@pytest.mark.parametrize(
    ("environ", "terminal", "color"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
    ],
)
def test_color_is_for_terminals_whose_user_wants_it(
    environ: dict[str, str], terminal: bool, color: bool
) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    assert wants_color(Stream(), environ) is color


def test_github_places_what_is_in_a_cell_at_its_notebook() -> None:
    span = Span("/project/train.ipynb:cell 3", 2, 9, 2, 12)
    found = Diagnostic("SF501", "in-features", Severity.ERROR, "does not fit", span)
    assert shown("github", found) == (
        "::error title=shapefix (SF501),file=/project/train.ipynb::cell 3, row 2: does not fit\n"
    )
