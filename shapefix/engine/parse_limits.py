"""Reject texts beyond libcst's limits: parsing would take minutes, or crash the process."""

from __future__ import annotations

import re
import string

from shapefix.sources.text import SourceText, Unreadable

LARGEST = 1_000_000
"""Characters. libcst parses about 100 kB a second, and uses some hundred bytes for each character."""
MOST_TOKENS = 75_000
"""Words, numbers and operators outside of large literals. A tree takes about 3 kB for each of them."""
DEEPEST_BRACKETS = 200
"""Python's own tokenizer accepts no more."""
LONGEST_CHAIN = 1_000
"""Operators that nest in one another (`a + b + …`, `a.b.c…`, `not not …`); libcst overflows the C stack at
some four thousand, and needs time quadratic in their number."""

MOST_ATTEMPTS = 2_000_000
"""Attempts to parse a token. libcst tries the inside of a bracket in a pattern, or in a `del`, up to four
times, and this again for each bracket around it."""

_OPERATORS = b"+-*/%@&|^~.'\""
_OPENING = b"([{"
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_ALL_BUT_CHAINS = bytes(set(range(256)) - set(_OPERATORS + _OPENING))
_KEYWORDS = (b"and", b"or", b"not", b"if", b"lambda", b"await", b"for")
_WORDS_AND_BLANKS = (string.ascii_letters + string.digits + string.whitespace + "_").encode()
_WORD_OR_OPERATOR = re.compile(r"""\#.*|\"{3}(?s:.*?)\"{3}|\"[^"\n]*"|'[^'\n]*'|\w+|[^\w\s]""")
_LONG_ROW = LONGEST_CHAIN // 2
_LONG_WITHOUT_COMMA = 2 * LONGEST_CHAIN
_MATCH = re.compile(r"^[ \t\f]*match\b(?!\s*[=.,)\]:])", re.MULTILINE)
_CASE = re.compile(r"^[ \t\f]*case\b(?!\s*[=.,)\]:])", re.MULTILINE)
_DEL = re.compile(r"(?:^|[:;])[ \t\f]*del\b", re.MULTILINE)
_MANY_CONTINUED_ROWS = LONGEST_CHAIN // 5

_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n\r]* )
    | (?P<string> [rRbBuUfF]{0,2} (?: \"\"\"(?:[^\\]|\\.)*?\"\"\" | '''(?:[^\\]|\\.)*?'''
                                    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) )
    | (?P<keyword> \b(?:and|or|not|if|else|lambda|elif|await|for)\b )
    | (?P<word> \w+ )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<separator> [,;] )
    | (?P<row> \\\r?\n | \n | \r )
    | (?P<operator> \*\* | // | << | >> | -> | [-+*/%@&|^~.] )
    """,
    re.VERBOSE | re.DOTALL,
)


def check_parse_limits(source: SourceText) -> None:
    """Raise Unreadable for a text too large, or nested too deeply, for libcst."""
    text = source.text
    if len(text) > LARGEST:
        raise Unreadable(
            f"is too large to be analyzed ({len(text) / 1e6:.1f} MB; the limit is {LARGEST / 1e6:.0f} MB); "
            "exclude it if it is generated"
        )
    if _may_nest_deeply(text):
        row = _too_deep_row(text)
        if row is not None:
            raise Unreadable("is nested too deeply to be parsed", row)
    row = _row_of_many_attempts(text)
    if row is not None:
        raise Unreadable("is nested too deeply to be parsed", row)
    if len(text) > MOST_TOKENS and _most_tokens(text) > MOST_TOKENS:
        # Imported here: a run with all results in the cache does without libcst.
        from shapefix.interpreter.large_literals import condensed

        tokens = sum(1 for _ in _WORD_OR_OPERATOR.finditer(condensed(text)[0]))
        if tokens > MOST_TOKENS:
            raise Unreadable(
                f"is too large to be analyzed ({tokens:,} words and operators; "
                f"the limit is {MOST_TOKENS:,}); exclude it if it is generated"
            )


def _most_tokens(text: str) -> int:
    """Upper bound of the number of words, numbers and operators: each word follows a blank or an operator."""
    data = text.encode("utf-8", "replace")
    return 2 * len(data.translate(None, _WORDS_AND_BLANKS)) + len(data.split())


def _may_nest_deeply(text: str) -> bool:
    """Estimate whether the exact count is necessary; strings and comments count here, too."""
    data = text.encode("utf-8", "replace")
    brackets = data.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(DEEPEST_BRACKETS // 2):
        before = len(brackets)
        brackets = brackets.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(brackets) == before:
            break
    if len(brackets) > DEEPEST_BRACKETS // 2:
        return True
    links = len(data.translate(None, _ALL_BUT_CHAINS)) + sum(map(data.count, _KEYWORDS))
    if links <= LONGEST_CHAIN:
        return False
    if max(map(len, data.split(b"\n"))) > _LONG_ROW or max(map(len, data.split(b","))) > _LONG_WITHOUT_COMMA:
        return True
    rows = data.translate(None, b" \t\r")
    continued = rows.count(b"\\\n") + sum(rows.count(b"\n%c" % operator) for operator in b"+-*/%@&|^.")
    return continued > _MANY_CONTINUED_ROWS or data.count(b"elif") > LONGEST_CHAIN


def _too_deep_row(text: str) -> int | None:
    """Return the row (from 1) with brackets or operators nested too deeply; None without one."""
    row = 1
    chains = [0]  # operators since the last comma, for each open bracket
    total = 0  # of all of them
    elifs = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "row":
            row += 1
            if len(chains) == 1 and token[0][0] != "\\":
                total = chains[0] = 0
        elif kind == "separator":
            total -= chains[-1]
            chains[-1] = 0
        elif kind == "open":
            chains.append(0)
            if len(chains) > DEEPEST_BRACKETS + 1:
                return row
        elif kind == "close":
            if len(chains) > 1:
                total -= chains.pop()
            chains[-1] += 1
            total += 1
        elif kind in ("operator", "keyword", "string"):
            chains[-1] += 1
            total += 1
            elifs += token[0] == "elif"
            if kind == "string":
                row += token[0].count("\n")
                if _deep_field(token[0]):
                    return row
        if total > LONGEST_CHAIN or elifs > LONGEST_CHAIN:
            return row
    return None


def _row_of_many_attempts(text: str) -> int | None:
    """Return the row of a pattern or a `del` with too many brackets in one another; None without one."""
    attempts = 0
    statements = [_DEL] if _begins_statement("del", text) else []
    if _begins_statement("match", text) and _MATCH.search(text):
        statements.append(_CASE)
    for statement in statements:
        for start in statement.finditer(text):
            depth = 0
            for token in _TOKEN.finditer(text, start.end()):
                kind = token.lastgroup
                if kind == "row" and depth <= 0 and token[0][0] != "\\":
                    break
                depth += (kind == "open") - (kind == "close")
                attempts += 4 ** min(max(depth, 0), DEEPEST_BRACKETS)
                if attempts > MOST_ATTEMPTS:
                    return text.count("\n", 0, token.start()) + 1
    return None


def _begins_statement(keyword: str, text: str) -> bool:
    """Check whether a keyword may begin a statement: plain searches take a tenth of the time of a pattern."""
    return text.startswith(keyword) or any(before + keyword in text for before in "\n\r \t\f:;")


def _deep_field(string: str) -> bool:
    """Check whether the fields of an f-string nest too deeply."""
    if len(string) <= DEEPEST_BRACKETS or "f" not in string[:2].lower():
        return False
    depth = chain = 0
    for character in string:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        # Spaces count as well, and words that are operators do not.
        chain = 0 if depth <= 0 or character == "," else chain + (not character.isalnum())
        if depth > DEEPEST_BRACKETS or chain > 4 * LONGEST_CHAIN:
            return True
    return False
