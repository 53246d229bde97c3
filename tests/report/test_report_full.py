"""What a person sees in the terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from findings import LABELS, STRIDED, THROWN_AWAY, TRAIN, Source, sources, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Failure, Fix, Severity, Span
from shapefix.report.cells import width_of
from shapefix.report.full import render
from shapefix.report.view import Coverage, View


def shown(
    *findings: Diagnostic,
    files: tuple[Source, ...] = (TRAIN,),
    width: int = 100,
    verbose: bool = True,
) -> str:
    view = View("/project", width=width, sources=sources(*files), verbose=verbose)
    return text_of(render(findings, (), view))


def body(*findings: Diagnostic, files: tuple[Source, ...] = (TRAIN,), width: int = 100) -> str:
    """The report from the first frame on, without the notes and the summary."""
    rows = shown(*findings, files=files, width=width).splitlines()
    start = next(index for index, row in enumerate(rows) if "-->" in row)
    end = next(index for index, row in enumerate(rows) if re.match(r" *= ", row))
    return "\n".join(rows[start:end]) + "\n"


def finding(place: Span, *steps: Evidence, message: str = "it fails") -> Diagnostic:
    return Diagnostic("SF101", "some-rule", Severity.ERROR, message, place, steps)


def test_every_step_of_the_evidence_is_labelled_in_its_place() -> None:
    assert (
        shown(STRIDED)
        == """\
error[SF101] view-across-stride-gap: `shift.view(-1, V)` merges dimensions 0 and 1 of `shift` across
    a stride gap
  --> train.py:10:28
   |
 6 |     shift = logits[:, :-1, :]
   |             ----------------- 1. sliced here: strides become (T*V, V, 1)
...
10 |     loss = F.cross_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
   |                            ^^^^^^^^^^^^^^^^^ 2. merged here: needs stride (T - 1)*V, has T*V
   |
   = fails when: the batch holds more than one sequence
   = fix (safe): shift.reshape(-1, V)
   = view-across-stride-gap: `shapefix explain SF101`

Found 1 error. 1 fixable with `shapefix fix`.
"""
    )


def test_steps_in_one_row_each_have_their_underline() -> None:
    assert (
        body(LABELS)
        == """\
  --> train.py:10:47
   |
10 |     loss = F.cross_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
   |                                               -------------
   |                                               1. sliced here: strides become (T, 1)
   |                                               ^^^^^^^^^^^^^^^^^^^^^^
   |                                               2. merged here: needs stride T - 1, has T
   |
"""
    )


def test_a_narrow_terminal_gets_the_same_in_more_rows() -> None:
    report = shown(STRIDED, LABELS, width=60)
    assert (
        report
        == """\
error[SF101] view-across-stride-gap: `shift.view(-1, V)`
    merges dimensions 0 and 1 of `shift` across a stride gap
  --> train.py:10:28
   |
 6 |     shift = logits[:, :-1, :]
   |             -----------------
   |             1. sliced here: strides become (T*V, V, 1)
...
10 |     loss = F.cross_entropy(shift.view(-1, V), labels[:…
   |                            ^^^^^^^^^^^^^^^^^
   |         2. merged here: needs stride (T - 1)*V, has T*V
   |
   = fails when: the batch holds more than one sequence
   = fix (safe): shift.reshape(-1, V)
   = view-across-stride-gap: `shapefix explain SF101`

error[SF101] view-across-stride-gap: `labels[:,
    1:].view(-1)` merges across a stride gap
  --> train.py:10:47
   |
10 | …oss_entropy(shift.view(-1, V), labels[:, 1:].view(-1))
   |                                 -------------
   |                   1. sliced here: strides become (T, 1)
   |                                 ^^^^^^^^^^^^^^^^^^^^^^
   |               2. merged here: needs stride T - 1, has T
   |
   = no automatic fix
   = view-across-stride-gap: `shapefix explain SF101`

Found 2 errors. 1 fixable with `shapefix fix`.
"""
    )


def test_rows_close_together_are_shown_with_what_is_between() -> None:
    near = finding(TRAIN.at("mask.sum()"), Evidence(TRAIN.at("labels != -100"), "made here"))
    assert (
        body(near)
        == """\
 --> train.py:9:13
  |
7 |     mask = labels != -100
  |            -------------- made here
8 |
9 |     count = mask.sum()
  |             ^^^^^^^^^^
  |
"""
    )


def test_places_in_other_files_have_their_own_frames() -> None:
    model = Source(
        "lib/model.py", "class Net:\n    def forward(self, x):\n        return x.transpose(1, 2)\n"
    )
    step = Evidence(model.at("x.transpose(1, 2)"), "transposed here")
    merged = Evidence(TRAIN.at("model(batch)"), "called here")
    assert (
        body(finding(TRAIN.at("model(batch)"), step, merged), files=(TRAIN, model))
        == """\
 --> train.py:5:14
  |
5 |     logits = model(batch).logits
  |              ^^^^^^^^^^^^ 2. called here
 ::: lib/model.py:3:16
  |
3 |         return x.transpose(1, 2)
  |                ----------------- 1. transposed here
  |
"""
    )


def test_steps_at_one_place_share_its_underline() -> None:
    place = TRAIN.at("mask.sum()")
    assert (
        body(finding(place, Evidence(place, "an int"), Evidence(place, "and no float")))
        == """\
 --> train.py:9:13
  |
9 |     count = mask.sum()
  |             ^^^^^^^^^^ 1. an int
  |                        2. and no float
  |
"""
    )


def test_a_place_of_several_rows_is_underlined_to_the_end_of_its_first() -> None:
    call = Source("train.py", "loss = F.cross_entropy(  \n    x,\n)\n")
    assert (
        body(finding(call.at("F.cross_entropy(  \n    x,\n)")), files=(call,))
        == """\
 --> train.py:1:8
  |
1 | loss = F.cross_entropy(
  |        ^^^^^^^^^^^^^^^^
  |
"""
    )


def test_tabs_and_wide_characters_keep_the_underline_under_its_code() -> None:
    source = Source("train.py", 'def f():\n\tx = "損失 😀 👩‍👧", y.view(-1)\t# 合併\n')
    assert (
        body(finding(source.at("y.view(-1)"), Evidence(source.at("y.view(-1)"), "merged")), files=(source,))
        == """\
 --> train.py:2:18
  |
2 |     x = "損失 😀 👩‍👧", y.view(-1)    # 合併
  |                       ^^^^^^^^^^ merged
  |
"""
    )


def test_a_long_row_is_cut_on_both_sides_of_its_place() -> None:
    source = Source("train.py", f"x = [{'1, ' * 50}y.view(-1), {'2, ' * 50}]\n")
    report = body(
        finding(source.at("y.view(-1)"), Evidence(source.at("y.view(-1)"), "merged")),
        files=(source,),
        width=60,
    )
    assert (
        report
        == """\
 --> train.py:1:156
  |
1 | …, 1, 1, 1, 1, y.view(-1), 2, 2, 2, 2, 2, 2, 2, 2, 2, 2…
  |                ^^^^^^^^^^ merged
  |
"""
    )


def test_places_far_apart_in_one_row_get_a_piece_of_it_each() -> None:
    source = Source("train.py", f"f(a[:, 1:], {'1, ' * 50}a.view(-1))\n")
    two = finding(
        source.at("a.view(-1)"),
        Evidence(source.at("a[:, 1:]"), "sliced"),
        Evidence(source.at("a.view(-1)"), "merged"),
    )
    assert (
        body(two, files=(source,), width=60)
        == """\
 --> train.py:1:163
  |
1 | f(a[:, 1:], 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1…
  |   -------- 1. sliced
1 | …, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, a.view(-1))
  |                                              ^^^^^^^^^^
  |                                              2. merged
  |
"""
    )


def test_a_row_of_a_megabyte_is_shown_in_a_moment() -> None:
    source = Source("data.py", f"x = [{'1, ' * 400_000}y.view(-1), {'2, ' * 400_000}]\n")
    report = body(finding(source.at("y.view(-1)")), files=(source,), width=60)
    assert "1, y.view(-1), 2" in report
    assert max(map(width_of, report.splitlines())) <= 60


def test_without_its_source_a_finding_still_tells_its_steps() -> None:
    report = shown(STRIDED, files=())
    assert "   | 6:13: 1. sliced here: strides become (T*V, V, 1)\n" in report
    assert "   | 10:28: 2. merged here: needs stride (T - 1)*V, has T*V\n" in report


def test_a_finding_can_have_several_fixes_or_none() -> None:
    by_hand = Fix(Applicability.DISPLAY, "call `.contiguous()` where it is made", ())
    assert "   = fix (unsafe): count = count.float()\n" in shown(THROWN_AWAY)
    both = shown(replace(THROWN_AWAY, fixes=(*THROWN_AWAY.fixes, by_hand)))
    assert "   = or (by hand): call `.contiguous()` where it is made\n" in both
    assert "   = no automatic fix\n" in shown(replace(THROWN_AWAY, fixes=()))


def test_files_that_could_not_be_checked_have_a_line_each() -> None:
    failures = (
        Failure("/project/old.py", "`print x` is Python 2", 3, 7),
        Failure("data.bin", "holds a NUL byte"),
    )
    assert (
        text_of(render((), failures, View("/project", coverage=Coverage(1))))
        == """\
error: old.py:3:7: `print x` is Python 2
error: data.bin: holds a NUL byte

1 file checked, 2 errors.
"""
    )


def test_nothing_found_is_one_line() -> None:
    assert shown() == "All checks passed.\n"


@pytest.mark.parametrize(
    ("coverage", "summary"),
    [
        (Coverage(2), "All checks passed."),
        (Coverage(2, irrelevant=1), "All checks passed. Skipped 1 file without torch."),
        (Coverage(1, irrelevant=1), "Checked 1 file; none uses torch."),
        (Coverage(2, 2), "Checked 2 files; none uses torch."),
        (Coverage(0), "Nothing was checked."),
    ],
)
def test_checks_pass_only_where_something_was_checked(coverage: Coverage, summary: str) -> None:
    assert text_of(render((), (), View("/project", coverage=coverage))) == f"{summary}\n"


@pytest.mark.parametrize(
    ("unsafe_fixes", "findings", "summary"),
    [
        (
            False,
            [STRIDED, LABELS, THROWN_AWAY],
            "1 fixable with `shapefix fix` (1 more with --unsafe-fixes).",
        ),
        (True, [STRIDED, LABELS, THROWN_AWAY], "2 fixable with `shapefix fix --unsafe-fixes`."),
        (False, [THROWN_AWAY], "1 fixable with `shapefix fix --unsafe-fixes`."),
        (True, [STRIDED], "1 fixable with `shapefix fix`."),
        (False, [LABELS], "Found 1 error."),
    ],
)
def test_the_summary_says_what_fix_would_do(
    unsafe_fixes: bool, findings: list[Diagnostic], summary: str
) -> None:
    view = View("/project", width=200, unsafe_fixes=unsafe_fixes, sources=sources(TRAIN))
    assert text_of(render(findings, (), view)).splitlines()[-1].endswith(summary)


def test_the_summary_counts_by_severity() -> None:
    advice = replace(LABELS, severity=Severity.INFO)
    report = shown(STRIDED, LABELS, THROWN_AWAY, advice, advice, width=200)
    assert "\nFound 2 errors, 1 warning, 2 info. " in report


def test_nothing_that_a_source_holds_reaches_the_terminal_as_a_command() -> None:
    source = Source("train.py", 'x = "\x1b[2J\x07\u202e"; y.view()\n')
    bad = finding(source.at("y.view()"), message="\x1b]0;owned\x07 `x`\nand more")
    report = shown(bad, files=(source,))
    assert 'x = "␛[2J␇�"; y.view()' in report
    assert "␛]0;owned␇ `x` and more" in report


def test_colors_change_nothing_but_the_colors() -> None:
    view = View("/project", color=True, sources=sources(TRAIN))
    colored = text_of(render([STRIDED], (), view))
    assert "\x1b[1;31merror[SF101]\x1b[0m" in colored
    assert "\x1b[1;31m^^^^^^^^^^^^^^^^^\x1b[0m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == text_of(render([STRIDED], (), replace(view, color=False)))


ROWS = st.lists(
    st.text(alphabet=st.sampled_from("ab. ()\t日😀\u0301\x1b\u200d"), max_size=120), min_size=1, max_size=8
)
PLACES = st.tuples(st.integers(1, 9), st.integers(1, 130), st.integers(0, 2), st.integers(1, 130))


@settings(max_examples=200, deadline=None)
@given(
    ROWS,
    st.lists(st.tuples(PLACES, st.text("word 日", max_size=80)), min_size=1, max_size=5),
    st.integers(40, 200),
)
def test_whatever_the_source_no_row_is_wider_than_the_terminal(
    rows: list[str], steps: list[tuple[tuple[int, int, int, int], str]], width: int
) -> None:
    source = Source("a.py", "\n".join(rows))
    evidence = [
        Evidence(Span("a.py", row, column, row + more, end if more else column + end), text)
        for (row, column, more, end), text in steps
    ]
    report = shown(finding(evidence[-1].span, *evidence), files=(source,), width=width)
    assert max(map(width_of, report.splitlines())) <= width
    words = "".join("".join(text for _, text in steps).split())
    assert all(character in report for character in words)
