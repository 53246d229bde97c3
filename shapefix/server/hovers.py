"""Hovers: the value of a name with its origin, and the page of a rule in a comment."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from shapefix.displayed_values import DisplayedValue, HeldName
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import page_of
from shapefix.server.inlay_hints import short
from shapefix.server.open_texts import MovedRows
from shapefix.sources.text import rows_of

_RULE = re.compile(r"\bSF\d{3}\b|\b[a-z]+(?:-[a-z]+)+\b", re.IGNORECASE)
_MOST_VALUES = 4
_NOT_WORTH_SHOWING = frozenset({"unknown", "str", "function", "number"})
"""Values known better by other language servers."""
_ASSIGNMENTS = frozenset({"=", ":=", "+=", "-=", "*=", "/=", "@=", "//=", "%=", "**=", "&=", "|=", "^="})


@dataclass(frozen=True)
class PointedName:
    """A name of a text, with the names before its dots: `self.conv`; columns count from 1, end exclusive.

    is_assigned is whether its row assigns it there; a later column of the row has the new value as well.
    """

    name: str
    row: int
    column: int
    end_column: int
    is_assigned: bool


@dataclass(frozen=True)
class PointedRule:
    """A rule in a comment."""

    text: str
    row: int
    column: int
    end_column: int


def pointed(text: str, row: int, column: int) -> PointedName | PointedRule | None:
    """Return the name at a place of a text, or the rule in a comment; None for anything else."""
    line: list[tokenize.TokenInfo] = []
    found: int | None = None
    for token in _tokens(text):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if found is not None:
                break
            line = []
            continue
        is_here = token.start <= (row, column - 1) <= token.end and token.start[0] == token.end[0] == row
        if is_here and token.type == tokenize.COMMENT:
            return _rule(token, column)
        if is_here and token.type == tokenize.NAME:
            found = len(line)
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            line.append(token)
        elif found == len(line):
            found = None
    return None if found is None or found >= len(line) else _name(line, found)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    rows = (row.rstrip("\r\n") + "\n" for row in rows_of(text))
    try:
        yield from tokenize.generate_tokens(lambda: next(rows, ""))
    except (tokenize.TokenError, SyntaxError):
        return


def _name(line: list[tokenize.TokenInfo], at: int) -> PointedName:
    first = at
    while first >= 2 and line[first - 1].string == "." and line[first - 2].type == tokenize.NAME:
        first -= 2
    name = ".".join(token.string for token in line[first : at + 1 : 2])
    depth = 0
    assigned = len(line)
    for place, token in enumerate(line):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
        is_in = line[0].string == "for" and token.string == "in"
        if is_in or (depth == 0 and token.string in _ASSIGNMENTS):
            assigned = place
            break
    is_assigned = assigned < len(line) and at < assigned
    token = line[at]
    return PointedName(name, token.start[0], line[first].start[1] + 1, token.end[1] + 1, is_assigned)


def _rule(comment: tokenize.TokenInfo, column: int) -> PointedRule | None:
    start = comment.start[1]
    for found in _RULE.finditer(comment.string):
        if found.start() <= column - 1 - start <= found.end() and page_of(found[0]) is not None:
            return PointedRule(found[0], comment.start[0], start + found.start() + 1, start + found.end() + 1)
    return None


def held_name(pointed: PointedName, values: Iterable[HeldName], moved: MovedRows) -> tuple[HeldName, ...]:
    """Return the value of a pointed name, in its parts; moved leads to the present text."""
    now = [(row, held) for held in values if (row := moved.row(held.row)) is not None]
    named = [(row, held) for row, held in now if held.whole == pointed.name]
    before = [
        each for each in named if each[0] < pointed.row or (pointed.is_assigned and each[0] == pointed.row)
    ]
    scopes = [held.function for row, held in now if _is_inside(held, pointed.row, moved)]
    around = max(scopes, key=len, default="")
    for candidates in (
        [each for each in before if each[1].function == around],
        # A parameter in its own row, and an attribute of another method.
        [each for each in named if each[1].function == around],
        [each for each in named if "." in pointed.name and _same_class(each[1].function, around)],
        [each for each in before if each[1].function == ""],
    ):
        if candidates:
            last = max(row for row, _ in candidates) if candidates[0] in before else candidates[0][0]
            return tuple(held for row, held in candidates if row == last)
    return ()


def last_of_top_level(name: str, values: Iterable[HeldName]) -> tuple[HeldName, ...]:
    """Return the last value of a name at the top level, in its parts."""
    named = [held for held in values if held.whole == name and held.function == ""]
    return tuple(held for held in named if held.row == named[-1].row)


def _is_inside(held: HeldName, row: int, moved: MovedRows) -> bool:
    first = moved.row(held.first_row)
    last = moved.row(held.last_row)
    return held.function != "" and first is not None and first <= row <= (last or row)


def _same_class(one: str, other: str) -> bool:
    return one.rpartition(".")[0] == other.rpartition(".")[0] != ""


def value_text(name: str, held: Iterable[HeldName], rows: Sequence[str], moved: MovedRows) -> str | None:
    """Return the values of a name and the row of its assignment, as Markdown; None without known ones."""
    lines: list[str] = []
    details: list[str] = []
    where: HeldName | None = None
    for each in held:
        known = [value for value in each.values if value.text not in _NOT_WORTH_SHOWING]
        where = where or each
        for value in known[:_MOST_VALUES]:
            lines.append(f"{each.name}: {short(value)}")
            details += _details(value)
        if len(known) > _MOST_VALUES:
            lines.append(f"{each.name}: … {len(known) - _MOST_VALUES} more")
    if not lines or where is None:
        return None
    row = moved.row(where.row)
    code = rows[row - 1].strip() if row is not None and row <= len(rows) else ""
    origin = [] if not code else [f"line {row}: `{code.replace('`', chr(39))}`"]
    facts = "\n".join(f"- {each}" for each in (*dict.fromkeys(details), *origin))
    return "```text\n" + "\n".join(dict.fromkeys(lines)) + f"\n```\n{facts}"


def _details(value: DisplayedValue) -> Iterator[str]:
    if value.sizes is None:
        return
    dtype = value.dtype or "unknown dtype"
    device = f", on {value.device}" if value.device else ""
    yield f"{dtype}{device}"
    if value.strides is not None:
        yield f"not contiguous: strides ({', '.join(map(str, value.strides))})"
    if all(isinstance(size, int) for size in value.sizes):
        count = 1
        for size in value.sizes:
            count *= int(size)
        yield f"{count:,} element{'' if count == 1 else 's'}"
