"""Explain the message of an exception with the error pages of the rule book."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.error_pages import ErrorPage, error_pages

_FIELD = re.compile(r"\{(\w+)(:int|:value)?\}")
_LIST = re.compile(r"\[?(?:'[^']*'(?:, )?)+\]?")
"""A list of names in a message."""
_NAME = re.compile(r"'([^']*)'")
_LONGEST = 4_000
"""Characters of a message that are compared with templates."""
_LONGEST_VALUE = 120
"""Characters of a field in an explanation."""


@dataclass(frozen=True)
class MessageExplanation:
    """The meaning of a message: a sentence, usual causes, and places to look at.

    message is the one that was raised; fields are its values by name. is_general is true for an error of any
    Python program.
    """

    name: str
    message: str
    fields: Mapping[str, str]
    what: str
    causes: tuple[str, ...]
    look: str
    is_general: bool = False


def explain_message(message: str, error_type: str = "") -> MessageExplanation | None:
    """Return the explanation of a message; None if no error page has it.

    A page for one type of exceptions needs that type, and has the whole message.
    """
    message = message[:_LONGEST]
    found = [
        (weight, page, match)
        for weight, pattern, page in _patterns()
        if page.error_type in ("", error_type)
        and (match := (pattern.fullmatch if page.error_type else pattern.search)(message))
    ]
    if not found:
        return None
    _, page, _ = max(found, key=lambda each: each[0])
    # A page may have a template for each part of a message: the first one is certainly whole.
    match = min((match for _, of, match in found if of is page), key=lambda each: each.start())
    fields = {name: value.strip().rstrip(".") for name, value in match.groupdict().items()}

    def filled(text: str) -> str:
        return _FIELD.sub(
            lambda field: _shown(
                fields.get(field[1], field[0]), field[2], is_code=text[: field.start()].endswith("`")
            ),
            text,
        )

    return MessageExplanation(
        page.name,
        message,
        fields,
        filled(page.what),
        tuple(map(filled, page.causes)),
        filled(page.look),
        page.is_general,
    )


def _shown(value: str, kind: str | None, *, is_code: bool) -> str:
    """Return the text of a field; the kind `:value` is a value of a type, `None` for the type of None."""
    if kind == ":value":
        return "`None`" if value == "NoneType" else f"A value of type {value}"
    if not is_code and _LIST.fullmatch(value):
        return _shortened(", ".join(f"`{name}`" for name in _NAME.findall(value)))
    return _shortened(_in_code(value))


def _in_code(value: str) -> str:
    """Return `a` and `b` without the outer ticks for 'a' and 'b'; a field is in ticks as a whole."""
    names = value.removesuffix("'").removeprefix("'")
    return names.replace("', '", "`, `").replace("', and '", "` and `").replace("' and '", "` and `")


def _shortened(value: str) -> str:
    """Cut a long list of names after its first ones."""
    if len(value) <= _LONGEST_VALUE:
        return value
    kept, comma, _ = value[:_LONGEST_VALUE].rpartition(",")
    return f"{kept} and more" if comma else f"{value[:_LONGEST_VALUE]}…"


def template_pattern(template: str) -> re.Pattern[str]:
    """Compile a template of a message; whitespace in it matches any whitespace.

    The first text that ends a field ends it for good: trying the others takes time, and leads no further.
    `...` at the end of a template is for any further text, also none.
    """
    is_open = template.endswith("...")
    parts = _FIELD.split(template.removesuffix("..."))
    pattern = _literal(parts[0])
    for number in range(1, len(parts), 3):
        name, kind, literal = parts[number : number + 3]
        if kind:
            value = r"-?\d+"
        elif not literal and number + 3 == len(parts):
            value = r".+"
        else:
            value = r".+?" if parts[0] or number > 1 else r"(?<!\S)\S+?"
        pattern += f"(?>(?P<{name}>{value}){_literal(literal)})"
    return re.compile(pattern + (r"[\s\S]*" if is_open else ""))


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


@cache
def _patterns() -> tuple[tuple[int, re.Pattern[str], ErrorPage], ...]:
    """Every template with the length of its fixed text."""
    return tuple(
        (len(_FIELD.sub("", template)), template_pattern(template), page)
        for page in error_pages()
        for template in (*page.errors, *page.older)
    )
