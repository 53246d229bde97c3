"""What is not given to libcst, because it would take minutes or the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shapefix.engine import parse_limits
from shapefix.engine.parse_limits import LARGEST, check_parse_limits
from shapefix.sources.text import SourceText, Unreadable


def nested(kind: str, depth: int) -> str:
    return {
        "parentheses": "x = " + "(" * depth + "1" + ")" * depth,
        "lists": "x = " + "[" * depth + "]" * depth,
        "unclosed": "x = " + "(" * depth,
        "dictionaries": "x = " + "{1: " * depth + "1" + "}" * depth,
        "sums": "x = " + "1 + " * depth + "1",
        "sums on many rows": "x = (\n" + "    f(a, b)\n    + " * depth + "1\n)",
        "attributes": "x = a" + ".b" * depth,
        "calls": "x = a" + "()" * depth,
        "negations": "x = " + "not " * depth + "1",
        "signs": "x = " + "-" * depth + "1",
        "powers": "x = " + "2**" * depth + "2",
        "lambdas": "x = " + "lambda: " * depth + "1",
        "choices": "x = " + "1 if a else " * depth + "2",
        "branches": "if a:\n    pass\n" + "elif f(a, b):\n    pass\n" * depth,
        "strings": "x = (" + '"a"\n' * depth + ")",
        "fields": 'x = f"{' + "(" * depth + "1" + ")" * depth + '}"',
        "sums in a field": 'x = f"{' + "1 + " * depth + '1}"',
    }[kind] + "\n"


KINDS = [
    *(
        "parentheses",
        "lists",
        "unclosed",
        "dictionaries",
        "sums",
        "attributes",
        "calls",
        "negations",
        "signs",
        "powers",
        "lambdas",
    ),
    *("choices", "branches", "strings", "fields"),
    "sums on many rows",
    "sums in a field",
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_nests_ten_thousand_deep_is_refused(kind: str) -> None:
    with pytest.raises(Unreadable, match="nested too deeply"):
        check_parse_limits(SourceText("x.py", nested(kind, 10_000)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_people_write_is_not(kind: str) -> None:
    check_parse_limits(SourceText("x.py", nested(kind, 150)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_let_through_does_not_end_the_process(kind: str) -> None:
    """The deepest text that passes is parsed, in a process of its own because libcst may take it down."""
    allowed, refused = 1, 10_000
    while refused - allowed > 1:
        middle = (allowed + refused) // 2
        try:
            check_parse_limits(SourceText("x.py", nested(kind, middle)))
            allowed = middle
        except Unreadable:
            refused = middle
    script = (
        "import sys, libcst\n"
        "try: libcst.parse_module(sys.stdin.read())\n"
        "except (libcst.ParserSyntaxError, RecursionError): pass"
    )
    subprocess.run([sys.executable, "-c", script], input=nested(kind, allowed), text=True, check=True)


def test_long_flat_texts_are_not_refused() -> None:
    check_parse_limits(SourceText("x.py", "x = [" + "1.5, " * 100_000 + "]\n"))
    check_parse_limits(SourceText("x.py", "y = x + 1\n" * 14_000))
    check_parse_limits(SourceText("x.py", "x = 1 " + "< 2 " * 10_000 + "\n"))
    check_parse_limits(SourceText("x.py", f'x = """{"(" * 5_000}"""  # {"(" * 5_000}\n'))


@pytest.mark.parametrize(
    "text", ["x.y(1)\n" * 20_000, "x = [" + "f(1), " * 20_000 + "]\n", "x + 1;" * 30_000]
)
def test_code_with_too_many_words_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="words and operators; the limit is 75,000"):
        check_parse_limits(SourceText("x.py", text))


NESTED_PATTERNS = {
    "class": ("A(", ")"),
    "sequence": ("[", "]"),
    "tuple": ("(", ",)"),
    "mapping": ("{'a': ", "}"),
    "alternative": ("(1 | ", ")"),
    "mixed": ("A(a=[(", ",)])"),
}


@pytest.mark.parametrize("kind", NESTED_PATTERNS)
def test_patterns_that_libcst_tries_too_often_are_refused(kind: str) -> None:
    """Each bracket multiplies the time of libcst; 12 of some kinds take more than 4 s."""
    before, after = NESTED_PATTERNS[kind]

    def nested(depth: int) -> SourceText:
        pattern = before * depth + "x" + after * depth
        return SourceText("a.py", f"match y:\n    case 1:\n        pass\n    case {pattern}:\n        pass\n")

    with pytest.raises(Unreadable) as refused:
        check_parse_limits(nested(60))
    assert refused.value.row == 4
    check_parse_limits(nested(2))


def test_many_nested_patterns_and_deletions_are_refused_together() -> None:
    one = "    case ((((((((x,),),),),),),),):\n        pass\n"
    check_parse_limits(SourceText("a.py", f"match y:\n{one}"))
    with pytest.raises(Unreadable):
        check_parse_limits(SourceText("a.py", f"match y:\n{one * 100}"))
    with pytest.raises(Unreadable):
        check_parse_limits(SourceText("a.py", f"del {'(' * 40}x{',)' * 40}\n"))


def test_case_may_be_a_name() -> None:
    table = "case = " + "[" * 12 + "1, " * 3_000 + "]" * 12
    check_parse_limits(SourceText("a.py", f"match y:\n    case 1:\n        pass\n{table}\n"))


def test_the_row_is_named() -> None:
    with pytest.raises(Unreadable) as caught:
        check_parse_limits(SourceText("x.py", 'a = """\n\n"""\n\n' + nested("parentheses", 300)))
    assert caught.value.row == 5


def test_a_large_file_is_refused_in_words_that_help() -> None:
    with pytest.raises(Unreadable) as caught:
        check_parse_limits(SourceText("x.py", "x = 1\n" * (LARGEST // 3)))
    assert caught.value.message == (
        "is too large to be analyzed (2.0 MB; the limit is 1 MB); exclude it if it is generated"
    )


@pytest.mark.parametrize(
    "path", sorted(Path(parse_limits.__file__).parent.glob("*.py")), ids=lambda each: each.stem
)
def test_no_text_has_more_tokens_than_estimated(path: Path) -> None:
    text = path.read_text()
    for part in (text, "a+" * 100, "x = é, 1.5e-3\n", "'' \"\" # ''", ""):
        tokens = sum(1 for _ in parse_limits._WORD_OR_OPERATOR.finditer(part))
        assert tokens <= parse_limits._most_tokens(part)


@pytest.mark.parametrize("statement", ["del ({})", "if x:\n\tdel({})", "x = 1;del\\\n ({})"])
def test_deep_brackets_are_found_in_each_form_of_a_statement(statement: str) -> None:
    deep = "(" * 60 + "x" + ")" * 60
    with pytest.raises(Unreadable, match="nested too deeply"):
        check_parse_limits(SourceText("x.py", statement.format(deep) + "\n"))
