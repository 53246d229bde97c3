"""Code of several lines on one line."""

from __future__ import annotations

import io
import keyword
import tokenize

_LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER})


def on_one_line(code: str) -> str:
    """Join the lines of code without its comments, and without spaces inside of brackets.

    A comma at the end of a line is dropped if it is the last one of a call.
    """
    if "\n" not in code:
        return " ".join(code.split())
    try:
        # In brackets, line breaks need no backslash and indentation has no meaning.
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({code}\n)").readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return " ".join(code.split())
    parts: list[str] = []
    calls: list[bool] = []
    before: tokenize.TokenInfo | None = None
    for token in tokens[1:]:
        if token.type in _LAYOUT:
            continue
        text = " ".join(token.string.split()) if "\n" in token.string else token.string
        closes = text in (")", "]", "}")
        if before is not None and before.end[0] == token.start[0]:
            gap = " " if before.end[1] < token.start[1] else ""
        else:
            if closes and parts and parts[-1] == "," and calls and calls[-1]:
                parts.pop()
            joins = before is None or before.string in ("(", "[", "{") or closes or text == "."
            gap = "" if joins else " "
        if text in ("(", "[", "{"):
            calls.append(text == "(" and before is not None and _is_called(before))
        elif closes and calls:
            calls.pop()
        parts += [gap, text] if gap else [text]
        before = token
    return "".join(parts).removesuffix(")") if parts and parts[-1] == ")" else "".join(parts)


def _is_called(token: tokenize.TokenInfo) -> bool:
    """Whether a bracket after this token is that of a call."""
    if token.type == tokenize.NAME:
        return not keyword.iskeyword(token.string)
    return token.string in (")", "]")
