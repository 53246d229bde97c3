"""Large literals: summarized from the text before parsing, as length, kind of element and shape.

A node of the tree takes a kilobyte, and a table of numbers in the code has thousands. In the text to parse,
each such literal has one name in its brackets, and white space up to its end: all positions stay the same.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from functools import lru_cache
from typing import Literal

import libcst as cst

from shapefix.light_dataclasses import dataclass
from shapefix.tensors.symbols import UNBOUNDED

LEAST_CHARACTERS = 20_000
LEAST_IN_LARGE_FILES = 4_000
LARGE_FILE = 100_000
LEAST_LEAVES = 256
"""A literal is large with as many characters (fewer in a large file), and as many numbers and texts."""
MOST_KEPT = 16
"""Maximum length of rows with items that are known one by one: those of a table have their own kinds."""
_WINDOW = LEAST_IN_LARGE_FILES // 2
_COMMAS = 60
"""Least number of commas in such a part of a text with a large literal."""
_NAME = "__large_literal_%d__"

_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n\r]* )
    | (?P<string> (?:[rRuU]?[bB]?|[bB][rR]) (?: \"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?'''
                                    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) )
    | (?P<format> [rR]?[fFtT][rR]? (?: \"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?'''
                                    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) )
    | (?P<number> 0[xXoObB][0-9a-fA-F_]+ | (?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?[jJ]? )
    | (?P<word> [^\W\d]\w* )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<comma> , )
    | (?P<space> [^\S\n]+ | \n | \\\r?\n )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"True": "bool", "False": "bool", "None": "none"}
_BEFORE_LITERAL = frozenset(
    ("and", "assert", "elif", "else", "if", "in", "is", "not", "or", "return", "yield")
)
"""Keywords: a bracket after any other word belongs to a call, a subscript or a pattern."""
Kind = Literal["int", "float", "number", "bool", "text", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class LeafSummary:
    """Any of some numbers, texts or constants; least is the smallest of ints."""

    kind: Kind
    least: int = 0


@dataclass(frozen=True, slots=True)
class RowSummary:
    """Any of some lists or tuples: their number of items, None if it differs, and the items or any item."""

    bracket: str
    length: int | None
    items: tuple[Summary, ...] | None
    element: Summary | None


Summary = LeafSummary | RowSummary
_UNKNOWN = LeafSummary("unknown")


@dataclass(slots=True)
class _Open:
    """Open bracket: its literal so far, and the large literals inside of it."""

    bracket: str
    start: int
    row: int
    pure: bool
    leaves: int = 0
    length: int = 0
    commas: int = 0
    items: list[Summary] = field(default_factory=list)
    element: Summary | None = None
    is_after_value: bool = False
    inner: list[_Found] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    """Large literal: the text between its brackets, and its rows."""

    start: int
    end: int
    rows: int
    summary: RowSummary


@lru_cache(maxsize=1)
def condensed(text: str) -> tuple[str, dict[str, RowSummary]]:
    """Replace the contents of large literals by names; return the text and the summaries by name."""
    if not _may_have_large_literals(text):
        return text, {}
    parts: list[str] = []
    names: dict[str, RowSummary] = {}
    end = 0
    for found in _large_literals(text):
        if found.rows and "\r" in text:
            # Rows are counted by line feeds.
            return text, {}
        name = _NAME % len(names)
        if name in text:
            return text, {}
        names[name] = found.summary
        parts.append(text[end : found.start])
        # With a comma, the brackets of a tuple remain those of a tuple.
        filled = f"{name}," if found.summary.bracket == "(" else name
        if found.rows:
            # A continued line is one node of white space, an empty one several.
            last = found.end - text.rfind("\n", 0, found.end) - 1
            parts.append(f"{filled} " + "\\\n" * found.rows + " " * last)
        else:
            parts.append(filled.ljust(found.end - found.start))
        end = found.end
    return "".join((*parts, text[end:])), names


def name_in(node: cst.Tuple | cst.List | cst.Set | cst.Dict) -> str:
    """Name of a large literal in the brackets of a node; empty for any other node."""
    if len(node.elements) == 1:
        value = node.elements[0].value
        if type(value) is cst.Name and value.value.startswith("__large_literal_"):
            return value.value
    return ""


def _may_have_large_literals(text: str) -> bool:
    """Find a part with more commas than code has; tokenizing every file would take too long."""
    return len(text) >= LEAST_CHARACTERS and any(
        text.count(",", start, start + _WINDOW) >= _COMMAS for start in range(0, len(text), _WINDOW)
    )


def _large_literals(text: str) -> list[_Found]:
    """Outermost large literals of a text, in their order."""
    stack = [_Open("", 0, 0, pure=False)]
    is_large = len(text) >= LARGE_FILE
    least = LEAST_IN_LARGE_FILES if is_large else LEAST_CHARACTERS
    row = 0
    before = ""
    is_negative = False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "space" or kind == "comment":
            row += token[0].count("\n")
            continue
        top = stack[-1]
        match kind:
            case "number" if top.pure:
                _add(top, _number(token[0], is_negative), 1)
            case "string" if top.pure:
                _add(top, _UNKNOWN if "b" in token[0][:2].lower() else LeafSummary("text"), 1)
            case "open":
                is_literal = before != "value" and not top.is_after_value
                stack.append(_Open(token[0], token.end(), row, is_literal))
            case "close" if len(stack) > 1:
                stack.pop()
                if top.bracket == "{:" and not is_large:
                    # The keys of dictionaries in a table matter.
                    _spoil(stack)
                _close(stack, top, token.start(), row, least)
            case "comma":
                top.commas += 1
                top.is_after_value = False
            case "word" if token[0] in _CONSTANTS and top.pure:
                _add(top, LeafSummary("bool" if token[0] != "None" else "none"), 1)
            case "other" if token[0] in "-+" and not top.is_after_value:
                pass
            case "other" if token[0] == ":" and top.bracket[:1] == "{" and top.is_after_value:
                top.bracket = "{:"
                top.is_after_value = False
            case _:
                _spoil(stack)
        if kind == "string" or kind == "format":
            row += token[0].count("\n")
        is_value = kind in ("number", "string", "format", "close") or (
            kind == "word" and token[0] not in _BEFORE_LITERAL
        )
        before = "value" if is_value else token[0]
        is_negative = kind == "other" and token[0] == "-"
    # A text with an unclosed bracket cannot be parsed anyway.
    return stack[0].inner


def _spoil(stack: list[_Open]) -> None:
    for each in reversed(stack):
        if not each.pure:
            break
        each.pure = False


def _add(top: _Open, value: Summary, leaves: int) -> None:
    """Add an item to the literal of an open bracket."""
    if top.is_after_value:
        # Two texts in a row are one.
        top.pure = False
        return
    top.is_after_value = True
    top.leaves += leaves
    if top.bracket == "{:":
        return
    top.length += 1
    if top.length <= MOST_KEPT:
        top.items.append(value)
    top.element = value if top.element is None else _merged(top.element, value)


def _close(stack: list[_Open], closed: _Open, end: int, row: int, least: int) -> None:
    """Note the literal of closed brackets in those around it, as a large one from least characters."""
    around = stack[-1]
    is_row = closed.pure and (closed.bracket != "(" or closed.commas > 0 or not closed.length)
    if not is_row:
        for each in reversed(stack):
            each.pure = False
        around.inner += closed.inner
        around.is_after_value = True
        return
    items = tuple(closed.items) if closed.length <= MOST_KEPT else None
    summary = RowSummary(closed.bracket, closed.length, items, closed.element)
    inner = closed.inner
    if end - closed.start >= least and closed.leaves >= LEAST_LEAVES:
        inner = [_Found(closed.start, end, row - closed.row, replace(summary, items=None))]
    around.inner += inner
    if around.pure:
        _add(around, summary, closed.leaves)
    else:
        around.is_after_value = True


def _number(token: str, is_negative: bool) -> LeafSummary:
    if token[-1] in "jJ" and token[:2] not in ("0x", "0X"):
        return _UNKNOWN
    if token[:2] in ("0x", "0X", "0o", "0O", "0b", "0B") or token.isdigit():
        is_positive = not is_negative and token.strip("0xXoObB_") != ""
        return LeafSummary("int", 1 if is_positive else UNBOUNDED if is_negative else 0)
    return LeafSummary("float") if any(each in token for each in ".eE") else _UNKNOWN


def _merged(one: Summary, other: Summary) -> Summary:
    """Summary of any of two items."""
    if one is other or one == other:
        return one
    if isinstance(one, LeafSummary) and isinstance(other, LeafSummary):
        if one.kind == other.kind == "int":
            return LeafSummary("int", min(one.least, other.least))
        if {one.kind, other.kind} <= {"int", "float", "number"}:
            return LeafSummary("number")
        return _UNKNOWN
    if isinstance(one, RowSummary) and isinstance(other, RowSummary) and one.bracket == other.bracket:
        if one.length != other.length:
            # No tensor can be made of such rows.
            return RowSummary(one.bracket, None, None, None)
        items = None
        if one.items is not None and other.items is not None:
            items = tuple(_merged(a, b) for a, b in zip(one.items, other.items, strict=True))
        return RowSummary(one.bracket, one.length, items, _merged_or_none(one.element, other.element))
    return _UNKNOWN


def _merged_or_none(one: Summary | None, other: Summary | None) -> Summary | None:
    return None if one is None or other is None else _merged(one, other)
