from __future__ import annotations

from dataclasses import replace

import pytest

from shapefix.diagnostics import Diagnostic, Severity, Span
from shapefix.sources.suppressions import Suppression, apply_suppressions, suppression_for
from shapefix.sources.text import SourceText, line_starts, offset


def finding(row: int, end_row: int | None = None, *, path: str = "a.py", end_column: int = 9) -> Diagnostic:
    span = Span(path, row, 1, end_row or row, end_column)
    return Diagnostic("SF101", "view-across-stride-gap", Severity.ERROR, "merges", span)


def is_kept(text: str, row: int = 1, end_row: int | None = None) -> bool:
    return apply_suppressions(SourceText("a.py", text), [finding(row, end_row)]).kept != ()


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "#noqa",
        "# NoQA",
        "# noqa because the batch holds one sequence",
        "# noqa: SF101",
        "# noqa:SF101",
        "# noqa : sf101",
        "# noqa: E501,SF101",
        "# noqa: E501 SF101, W291 some words",
        "# noqa: SF1",
        "# noqa: view-across-stride-gap is fine here",
        "# noqa: E501, View-Across-Stride-Gap",
        "# type: ignore  # noqa: SF101",
        "# noqa: E501  # noqa: SF101",
        "# shapefix: ignore",
        "# shapefix:ignore",
        "# shapefix: ignore one sequence only",
        "# shapefix: ignore[SF101]",
        "# shapefix: ignore[ SF103, view-across-stride-gap ]",
        "# shapefix: ignore[SF1]",
        "# noqa: E501  # shapefix: ignore[SF101]",
    ],
)
def test_a_comment_silences(comment: str) -> None:
    assert not is_kept(f"x.view(-1)  {comment}\n")
    assert not is_kept(f"x.view(-1)  {comment}")


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "# noqa: E501",
        "# noqa:E501,W291",
        "# noqa: SF102",
        "# noqa: SF1011",
        "# noqa:",
        "# noqa: view-across-stride-gaps",
        "# noqa: E501 as view-across-stride-gap",
        "# noqa-not-really",
        "# noqas",
        "# flake8: noqa",
        "# ruff: noqa: SF101",
        "# mention noqa",
        "# shapefix: ignored",
        "# shapefix: ignore-next",
        "# shapefix: ignore[SF102]",
        "# shapefix: ignore[]",
        "# shapefix: ignore[SF101",
        "# shapefix: ignore[view-across]",
        "# shapefix: ignore[S]",
        "# shapefix: ignore[,]",
        "# shapefix: off",
        "# pyright: ignore[SF101]",
    ],
)
def test_a_comment_that_speaks_of_something_else_does_not(comment: str) -> None:
    assert is_kept(f"x.view(-1)  {comment}\n")


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("# noqa: channels", False),
        ("# noqa: channels, E501", False),
        ("# noqa: E501, channels  # one", False),
        ("# noqa: channels come last here", True),
    ],
)
def test_a_name_of_one_word_needs_an_end(comment: str, kept: bool) -> None:
    named = replace(finding(1), code="SF506", name="channels")
    assert (apply_suppressions(SourceText("a.py", f"x  {comment}\n"), [named]).kept != ()) == kept


@pytest.mark.parametrize(
    "text",
    [
        "x.view(-1), '# noqa'\n",
        'x.view(-1), """\n# noqa\n"""\n',
        "x.view(-1), rb'\\'# noqa: SF101'\n",
        'f"{x.view(-1)} # shapefix: ignore"\n',
    ],
)
def test_a_string_does_not_silence(text: str) -> None:
    assert is_kept(text)


def test_only_comments_on_its_rows_silence() -> None:
    assert is_kept("# noqa\nx.view(-1)\n# noqa\n", row=2)
    assert is_kept("x.view(-1)\ny  # noqa\n")
    assert not is_kept("x.view(-1)\ny  # noqa\n", row=2)


STATEMENT = """\
loss = cross_entropy({}
    shift.view({}
        -1, V{}
    ),
    labels,{}
){}
"""


@pytest.mark.parametrize(("index", "kept"), [(0, False), (1, False), (2, False), (3, True), (4, False)])
def test_in_a_long_statement_its_rows_and_the_ends_of_the_statement_count(index: int, kept: bool) -> None:
    comments = [""] * 5
    comments[index] = "  # noqa: SF101"
    assert is_kept(STATEMENT.format(*comments), row=2, end_row=4) == kept


def test_a_span_over_several_statements_is_silenced_at_its_ends_only() -> None:
    loop = "for x in (\n    xs\n):{}\n    a(x)\n    b(x){}\n    c(x,\n      d){}\n"
    assert not is_kept(loop.format("  # noqa", "", ""), row=1, end_row=6)
    assert is_kept(loop.format("", "  # noqa", ""), row=1, end_row=6)
    assert not is_kept(loop.format("", "", "  # noqa"), row=1, end_row=6)


def test_a_span_that_ends_before_a_row_does_not_reach_it() -> None:
    source = SourceText("a.py", "x.view(-1)\ny  # noqa\n")
    assert apply_suppressions(source, [finding(1, 2, end_column=1)]).kept
    assert not apply_suppressions(source, [finding(1, 2, end_column=2)]).kept


def test_a_backslash_continues_the_statement() -> None:
    assert not is_kept("y = x.view(-1) + \\\n    1  # noqa\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_rows_end_as_everywhere_else(newline: str) -> None:
    text = newline.join(["'''\x0c\x1c\u2028'''", "x.view(-1)  # noqa", "y.view(-1)", ""])
    assert not is_kept(text, row=2)
    assert is_kept(text, row=3)


def test_a_file_can_be_skipped() -> None:
    text = "x.view(-1)\n\ndef f():\n    return 1  # shapefix: skip-file\n"
    assert not is_kept(text)
    assert is_kept(text.replace("# shapefix: skip-file", "'# shapefix: skip-file'"))


def test_used_comments_are_told() -> None:
    text = "x  # noqa\ny  # noqa: E501\nz  # shapefix: ignore[SF101]  # noqa: SF1\nw  # noqa\n"
    first, second, third = finding(1), finding(2), finding(3)
    result = apply_suppressions(SourceText("a.py", text), [first, second, third])
    assert result.kept == (second,)
    assert result.used == (
        Suppression(1, 4, None),
        Suppression(3, 4, ("SF101",)),
        Suppression(3, 31, ("SF1",)),
    )


def test_findings_elsewhere_are_kept() -> None:
    elsewhere = finding(1, path="b.py")
    assert apply_suppressions(SourceText("a.py", "x  # noqa\n"), [elsewhere]).kept == (elsewhere,)


def test_text_that_cannot_be_split_into_tokens_keeps_what_is_behind() -> None:
    text = "x  # noqa\nif y:\n    z\n  w\nv  # noqa\n"
    assert not is_kept(text, row=1)
    assert is_kept(text, row=5)
    assert is_kept("'''\nx  # noqa\n", row=2)


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("x.view(-1)\n", 1, "x.view(-1)  # noqa: SF101\n"),
        ("x.view(-1)", 1, "x.view(-1)  # noqa: SF101"),
        ("x.view(-1)  # flat  \r\ny\r\n", 1, "x.view(-1)  # flat  # noqa: SF101  \r\ny\r\n"),
        ("x.view(-1)  # noqa: E501\n", 1, "x.view(-1)  # noqa: E501, SF101\n"),
        ("x.view(-1)  # noqa: E501, because\n", 1, "x.view(-1)  # noqa: E501, SF101, because\n"),
        ("x.view(-1)  # noqa:E501 W1 # é\n", 1, "x.view(-1)  # noqa:E501 W1, SF101 # é\n"),
        ("x.view(-1)  # shapefix: ignore[SF7]\n", 1, "x.view(-1)  # shapefix: ignore[SF7]  # noqa: SF101\n"),
        ('f("""\n""", x.view(\n  -1))\n', 2, 'f("""\n""", x.view(\n  -1))  # noqa: SF101\n'),
        ("f(x, \\\n  x.view(-1))\n", 1, "f(x, \\\n  x.view(-1))  # noqa: SF101\n"),
        ("if x.view(-1):\n    pass\n", 1, "if x.view(-1):  # noqa: SF101\n    pass\n"),
    ],
)
def test_a_comment_for_a_finding(text: str, row: int, expected: str) -> None:
    edit = suppression_for(SourceText("a.py", text), finding(row))
    assert edit is not None
    starts = line_starts(text)
    at = offset(starts, edit.span.row, edit.span.column)
    assert text[:at] + edit.content + text[at:] == expected


def test_no_comment_fits_into_a_text_that_does_not_end() -> None:
    assert suppression_for(SourceText("a.py", 'f("""\nx.view(-1)\n'), finding(2)) is None
