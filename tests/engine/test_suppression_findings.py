"""Fixes of suppression comments in random rows: only words of shapefix go, and no code changes."""

from __future__ import annotations

import ast
import re
import tokenize
from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.engine.suppression_findings import SuppressionRules
from shapefix.repair.fixpoint import repair
from shapefix.rulebook.pages import pages
from shapefix.sources.suppressions import apply_suppressions
from shapefix.sources.text import SourceText

RULES = SuppressionRules(frozenset(page.code for page in pages()), is_certain=True)
OURS = ("SF101", "sf5", "SF999", "SF1O1", "ragged-labels", "in-features")
FOREIGN = ("E501", "F401", "SFS101", "ACME7")
WORDS = st.lists(st.sampled_from((*OURS, *FOREIGN)), min_size=1, max_size=4)
REASONS = st.sampled_from(("", " as in the paper", " # é", "  # type: ignore", "\t"))


@st.composite
def comments(draw: st.DrawFn) -> str:
    """Draw a comment with codes in one of its notations."""
    words = draw(WORDS)
    separator = draw(st.sampled_from((",", ", ", " , ")))
    if draw(st.booleans()):
        return f"#{draw(st.sampled_from(('', ' ')))}shapefix: ignore[{separator.join(words)}]{draw(REASONS)}"
    colon = draw(st.sampled_from((":", ": ", " : ")))
    return f"# {draw(st.sampled_from(('noqa', 'NoQA')))}{colon}{separator.join(words)}{draw(REASONS)}"


CODE = st.sampled_from(("x = 1", "y = '# noqa: SF101'", "", "if x: pass", "f(", ")", "z = '''", "'''"))
ROWS = st.lists(st.tuples(CODE, st.lists(comments(), max_size=2)), min_size=1, max_size=6)


def findings(text: str) -> list[str]:
    source = SourceText("a.py", text)
    return [each.code for each in RULES.findings(source, apply_suppressions(source, ()))]


def foreign_words(text: str) -> list[str]:
    """The codes of other tools in the comments of a text, in their order."""
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    found = " ".join(token.string for token in tokens if token.type == tokenize.COMMENT)
    return re.findall(rf"\b(?:{'|'.join(FOREIGN)})\b", found)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(("\n", "\r\n")), st.booleans())
def test_random_comments(rows: list[tuple[str, list[str]]], newline: str, ends: bool) -> None:
    text = newline.join("  ".join((code, *added)).strip() for code, added in rows) + (newline if ends else "")
    try:
        before = ast.dump(ast.parse(text))
        words = foreign_words(text)
    except (SyntaxError, tokenize.TokenError):
        return
    source = SourceText("a.py", text)

    def found(changed: str) -> list[object]:
        current = SourceText("a.py", changed)
        return list(RULES.findings(current, apply_suppressions(current, ())))

    result = repair(source.text, found, lambda fix, finding: True)  # type: ignore[arg-type]
    assert ast.dump(ast.parse(result.text)) == before
    assert not result.rejected
    assert foreign_words(result.text) == words
    assert not findings(result.text)
