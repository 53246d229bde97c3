"""Docstrings, comments, messages and documents use plain words and American spelling."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BANNED = {
    "nobody": "say who does not do it",
    "somebody": "say who does it",
    "whoever": "say who does it",
    "whom": "name the person or the tool",
    "whatever": "name the cases",
    "told": "reported, shown, known",
    "tells": "reports, shows",
    "stands(?! out)": "is",
    "handed": "passed",
    "behind": "after",
    "thrown away": "discarded, unused",
    "meets? here": "combined here",
    "the like": "name the things",
    "their kin": "name the things",
    "anew": "again",
    "as before": "unchanged",
    "what is more": "also",
    "(?-i:is none)": "there is none",
    "(?<!there )is no(?! longer| more)": "is not a",
    "rooms|every room": "packages",
    "asked": "requested",
    "learnt": "learned",
    r"\w*colour\w*": "color",
    r"\w*behaviour\w*": "behavior",
    r"\w*neighbour\w*": "neighbor",
    r"\w*(?:normal|initial|recogn|optim|synchron|organ|summar|serial)is(?:e|ed|es|er|ing|ation)": "-ize",
    r"analys(?:e|ed|ing|er)": "analyze",
    r"centred?": "center",
}


@dataclass(frozen=True)
class Allowed:
    """A banned word that is right in one file."""

    file: str
    word: str
    reason: str


ALLOWED: tuple[Allowed, ...] = (
    Allowed("shapefix/cli/group.py", "colour", "the British spelling of --color is accepted"),
    Allowed("shapefix/domains/tokens.py", "asked", "the name of a field"),
    Allowed("shapefix/library/transformers/pad_tokens.py", "asked", "the name of a parameter"),
    Allowed("shapefix/library/transformers/tokenized_texts.py", "asked", "the name of a parameter"),
    Allowed("shapefix/runtime/confirmation/run_record.py", "asked", "a key of the probe's JSON document"),
    Allowed("shapefix/runtime/report/json_document.py", "asked", "a key of the probe's JSON document"),
)


def texts_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the row and text of every comment and string; identifiers and numbers are skipped."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            text = token.string
            if token.type == tokenize.STRING and re.match(r"\w*f", text, re.IGNORECASE):
                text = re.sub(r"\{[^{}\n]*\}", "{}", text)  # the expressions of an f-string
            yield from enumerate(text.splitlines(), token.start[0])


def texts_of_markdown(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the row and text of every line outside of code blocks, without inline code."""
    fenced = metadata = False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line == "---":
            metadata = not metadata and number == 1
        elif line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not metadata and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


def files() -> list[Path]:
    """Return every file that people read."""
    documents = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [
        *sorted((ROOT / "shapefix").rglob("*.py")),
        *documents,
        *sorted((ROOT / "shapefix/docs").glob("*.md")),
        *sorted(ROOT.glob("rules/**/*.md")),
    ]


def banned_words(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the row of every banned word in a file, the word, and what to write instead."""
    read = texts_of_python if path.suffix == ".py" else texts_of_markdown
    for number, line in read(path):
        for word, better in BANNED.items():
            for found in re.finditer(rf"\b(?:{word})\b", line, re.IGNORECASE):
                yield number, found[0].lower(), better


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_uses_plain_words(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    allowed = {each.word for each in ALLOWED if each.file == name}
    wrong = [
        f"{name}:{row}: {word!r}; write: {better}"
        for row, word, better in banned_words(path)
        if word not in allowed
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("each", ALLOWED, ids=lambda each: f"{each.file}-{each.word}")
def test_every_exception_is_still_needed(each: Allowed) -> None:
    assert each.word in {word for _, word, _ in banned_words(ROOT / each.file)}, each.reason


def test_the_list_finds_what_it_bans(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text(
        '"""Nobody is told."""\nasked = f"the colour {asked}"  # is no longer bad, is no good\n'
    )
    assert [(row, word) for row, word, _ in banned_words(source)] == [
        (1, "nobody"),
        (1, "told"),
        (2, "colour"),
        (2, "is no"),
    ]


RELATIVE = re.compile(
    r"\b(?:which|where|who|whose|whom|what)\b|(?P<before>[\w-]+ )?\b(?P<that>that)\b(?! of\b)", re.IGNORECASE
)
"""Words at the start of relative clauses; for `that` with the word before it."""

BEFORE_CONTENT = re.compile(r"assum(?:e|ing)|check|means?|note|record|report|says?|shows?|so")
"""Words before a stated fact: `Check that x is dense`."""

BEFORE_PRONOUN = re.compile(r"after|at|by|for|from|if|in|is|of|on|or|than|to|unless|until|whether|with")
"""Words before `that` as a pronoun: `False if that is impossible`, `after one pass of that loop`."""

ALLOWED_FIRST_LINES = ("shapefix/cli/commands/reading.py: Explain a rule: what it does, why, how to fix it",)


def first_lines(source: str) -> Iterator[str]:
    """Yield the first lines of the docstrings of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield text.splitlines()[0]


def has_relative_clause(line: str) -> bool:
    """Check for a relative clause outside of code."""
    for match in RELATIVE.finditer(re.sub(r"`[^`]*`", "code", line)):
        before = (match["before"] or "").strip().lower()
        accepted = BEFORE_CONTENT.fullmatch(before) or BEFORE_PRONOUN.fullmatch(before)
        if match["that"] is None or (before and not accepted):
            return True
    return False


def with_relative_clause(source: str) -> list[str]:
    """Return the first lines with a relative clause."""
    return [line for line in first_lines(source) if has_relative_clause(line)]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "shapefix").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_first_lines_of_docstrings_are_short_phrases(path: Path) -> None:
    name = path.relative_to(ROOT)
    found = [f"{name}: {line}" for line in with_relative_clause(path.read_text("utf-8"))]
    assert not [line for line in found if not line.startswith(ALLOWED_FIRST_LINES)]


@pytest.mark.parametrize("line", ALLOWED_FIRST_LINES)
def test_every_allowed_first_line_is_still_needed(line: str) -> None:
    name, _, start = line.partition(": ")
    found = with_relative_clause((ROOT / name).read_text("utf-8"))
    assert any(each.startswith(start) for each in found)


@pytest.mark.parametrize(
    "line",
    [
        "What it knows.",
        "Layers whose sizes differ.",
        "Return the loop that accumulates.",
        "Findings, without those that a comment suppresses.",
        "The arguments of `forward` that a batch lacks.",
        "Place where a module was constructed.",
        "A tensor, which may be on a GPU.",
        "Check that each symbol that occurs is known.",
    ],
)
def test_relative_clauses_are_found(line: str) -> None:
    assert with_relative_clause(f'"""{line}"""\n') == [line]


@pytest.mark.parametrize(
    "line",
    [
        "Check that `x` is dense.",
        "Sort two sizes, so that their order does not matter.",
        "Write a file; return False if that is impossible.",
        "The excerpts of a finding, that of its own file first.",
        "Parse the field `what`.",
    ],
)
def test_clauses_of_content_and_pronouns_are_accepted(line: str) -> None:
    assert not with_relative_clause(f'"""{line}"""\n')


def test_first_lines_come_from_every_definition() -> None:
    source = (
        '"""A module.\n\nWhat it does."""\nclass A:\n    """A class."""\n'
        'def _f():\n    """A private function."""\n"""`what` is a name."""\n'
    )
    assert sorted(first_lines(source)) == ["A class.", "A module.", "A private function."]
