"""Row edits of handlers: insert and indent rows, and remove marked ones."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import field

from shapefix.guards.lines import rows_of, tokens_of
from shapefix.light_dataclasses import dataclass
from shapefix.repair.edits import newline_of

MARK = "# shapefix: guard --oom"
"""The comment at the end of every statement of a handler."""
_OWN = re.compile(r"[ \t]*" + re.escape(MARK) + r"(?:, was (?P<before>.+))?$")
_BLANK_BELOW_CLASS = 2
_SILENT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE})


@dataclass
class RowEdits:
    """Rows to insert above and below others, rows to indent, and rows with other code; rows count from 1."""

    above: dict[int, list[str]] = field(default_factory=dict)
    below: dict[int, list[str]] = field(default_factory=dict)
    indented: list[tuple[range, str]] = field(default_factory=list)
    replaced: dict[int, str] = field(default_factory=dict)

    def insert_above(self, row: int, *codes: str) -> None:
        """Insert rows above a row, below those already inserted there."""
        self.above.setdefault(row, []).extend(codes)

    def insert_below(self, row: int, *codes: str) -> None:
        """Insert rows below a row, below those already inserted there."""
        self.below.setdefault(row, []).extend(codes)

    def indent(self, rows: range, unit: str) -> None:
        """Indent rows by a unit more."""
        self.indented.append((rows, unit))

    def replace(self, row: int, code: str) -> None:
        """Replace a row; code has its indentation."""
        self.replaced[row] = code

    def applied(self, text: str) -> str:
        """Return a text with the edits."""
        rows, newline, inside = rows_of(text), newline_of(text), rows_inside_strings(text)
        made: list[str] = []
        for number, row in enumerate(rows, 1):
            made += (code + newline for code in self.above.get(number, ()))
            code, end = row.rstrip("\r\n"), row[len(row.rstrip("\r\n")) :]
            code = self.replaced.get(number, code)
            units = "".join(unit for several, unit in self.indented if number in several)
            below = self.below.get(number, [])
            made.append(units + code if code.strip() and number not in inside else code)
            made.append(end or (newline if below else ""))
            made += (code + newline for code in below)
        new = "".join(made)
        # A file without a last newline stays one.
        return new if not rows or rows[-1].endswith(("\r", "\n")) else new.removesuffix(newline)


def marked(code: str, before: str = "") -> str:
    """Return a row with the mark, and the replaced code."""
    return f"{code}  {MARK}, was {before}" if before else f"{code}  {MARK}"


def rows_inside_strings(text: str) -> set[int]:
    """Return the rows with their start inside of a string."""
    found: set[int] = set()
    starts: list[int] = []
    for token in tokens_of(rows_of(text)):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            starts.append(token.start[0])
        elif name == "FSTRING_END":
            found.update(range(starts.pop() + 1, token.end[0] + 1))
        elif name == "STRING":
            found.update(range(token.start[0] + 1, token.end[0] + 1))
    return found


@dataclass(frozen=True)
class _Marked:
    """The rows of a marked statement or of a marked part of it, and the code kept in the mark."""

    rows: range
    before: str


def _marked(text: str) -> Iterator[_Marked]:
    if MARK not in text:
        return
    first: int | None = None
    own: _Marked | None = None
    for token in tokens_of(rows_of(text)):
        if token.type not in _SILENT:
            if own is not None:
                yield own  # inside of a statement
            own = None
            first = token.start[0] if first is None else first
        elif token.type == tokenize.COMMENT and (match := _OWN.search(token.string)) and first is not None:
            row = token.start[0]
            own = _Marked(range(row, row + 1), match["before"] or "")
        elif token.type == tokenize.NEWLINE:
            if own is not None and first is not None:
                yield _Marked(range(first, own.rows[-1] + 1), own.before)
            first = own = None


def without_handlers(text: str) -> tuple[str, int]:
    """Return a text without the handlers of shapefix, and their number.

    Raises SyntaxError and tokenize.TokenError.
    """
    statements = list(_marked(text))
    if not statements:
        return text, 0
    headers = {node.lineno: node for node in _compound(ast.parse(text))}
    rows, inside = rows_of(text), rows_inside_strings(text)
    dropped: set[int] = set()
    less: dict[int, int] = {}
    changed: dict[int, str] = {}
    number = 0
    for each in statements:
        first = each.rows[0]
        node = headers.get(first)
        code = "".join(rows[row - 1] for row in each.rows)
        number += _counts(code, node)
        if isinstance(node, ast.ClassDef):
            dropped |= set(_rows_of_class(node, rows))
        elif node is not None:
            body: Sequence[ast.stmt] = node.body
            dropped |= set(each.rows)
            width = len(indent_of(rows, body[0].lineno)) - len(indent_of(rows, first))
            for row in range(each.rows[-1] + 1, (node.end_lineno or 0) + 1):
                less[row] = less.get(row, 0) + width
        else:
            dropped |= set(each.rows)
            original = _original(code, each.before)
            if original is not None:
                changed.update(enumerate(rows_of(original), first))
    made: list[str] = []
    for number_of_row, row_text in enumerate(rows, 1):
        if number_of_row in dropped and number_of_row not in changed:
            continue
        new = changed.get(number_of_row, row_text)
        width = 0 if number_of_row in inside else min(less.get(number_of_row, 0), len(_indent(new)))
        made.append(new[width:] if new.strip() else new)
    plain = "".join(made)
    return plain if text.endswith(("\r", "\n")) else plain.rstrip("\r\n"), number


_Compound = ast.For | ast.If | ast.With | ast.FunctionDef | ast.ClassDef


def _compound(tree: ast.Module) -> Iterator[_Compound]:
    kinds = (ast.For, ast.If, ast.With, ast.FunctionDef, ast.ClassDef)
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def _counts(code: str, node: ast.AST | None) -> bool:
    """Whether a marked statement counts as a handler; each has one."""
    return isinstance(node, (ast.For, ast.FunctionDef)) or "auto_find_batch_size" in code


def _rows_of_class(node: ast.ClassDef, rows: Sequence[str]) -> range:
    """Return the rows of a class, and the blank ones below."""
    end = node.end_lineno or node.lineno
    last = end
    while last < len(rows) and last < end + _BLANK_BELOW_CLASS and not rows[last].strip():
        last += 1
    return range(node.lineno, last + 1)


_CHANGED = (
    (re.compile(r"(?<![\w\])])\((?P<code>.+) \* \w+\.share\)(?=\.backward\()"), r"\g<code>"),
    (re.compile(r" \* \w+\.share\)"), ")"),
    (re.compile(r",\s*auto_find_batch_size=True(?=,?\s*\))"), ""),
    (re.compile(r"(?<=\()\s*auto_find_batch_size=True,?\s*(?=\))"), ""),
)


def _original(code: str, before: str) -> str | None:
    """Return changed rows as they were; None for inserted ones."""
    bare, end = code.rstrip("\r\n"), code[len(code.rstrip("\r\n")) :]
    bare = _OWN.sub("", bare)
    if before:
        return f"{_indent(code)}{before}{end}"
    for pattern, text in _CHANGED:
        made, times = pattern.subn(text, bare)
        if times:
            return made + end
    return None


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip(" \t\f"))]


def indent_of(rows: Sequence[str], row: int) -> str:
    """Return the indentation of a row, counted from 1."""
    return _indent(rows[row - 1])
