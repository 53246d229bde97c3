"""Mutants of real files: tokens, lines and statements deleted, doubled, swapped, nested or replaced."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

_TOKEN = re.compile(r"\s+|\w+|\"[^\"\n]*\"|'[^'\n]*'|.", re.DOTALL)
_NUMBERS = (
    "0",
    "1",
    "-1",
    "2**63",
    "10**9",
    "1.5",
    "1e400",
    "True",
    "None",
    "()",
    "[]",
    "''",
    "n",
    "0x7fffffff",
)
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "<",
    "==",
    "and",
    "or",
    "is",
    "in",
    ",",
    ".",
    "=",
    "+=",
    ":=",
)
_WRAPPERS = (
    "[{0}] * 999",
    "({0}, {0})",
    "{{'a': {0}}}",
    "(lambda: {0})()",
    "[{0} for _ in range(9)]",
    "f'{{{0}}}'",
)
_LARGEST = 200_000
_Mutation = Callable[[str, str, random.Random], str]


def mutated(text: str, other: str, chooser: random.Random) -> str:
    """Apply one to three mutations to a text; other is a text to take lines from."""
    for _ in range(chooser.randint(1, 3)):
        text = chooser.choice(_MUTATIONS)(text, other, chooser)[:_LARGEST]
    return text


def _with_token(text: str, chooser: random.Random, change: Callable[[str], str]) -> str:
    tokens = _TOKEN.findall(text)
    places = [place for place, token in enumerate(tokens) if not token.isspace()]
    if places:
        place = chooser.choice(places)
        tokens[place] = change(tokens[place])
    return "".join(tokens)


def _delete_token(text: str, other: str, chooser: random.Random) -> str:
    return _with_token(text, chooser, lambda token: "")


def _double_token(text: str, other: str, chooser: random.Random) -> str:
    return _with_token(text, chooser, lambda token: f"{token} {token}")


def _other_token(text: str, other: str, chooser: random.Random) -> str:
    words = [token for token in _TOKEN.findall(chooser.choice((text, other))) if not token.isspace()] or ["x"]
    return _with_token(text, chooser, lambda token: chooser.choice(words))


def _other_number(text: str, other: str, chooser: random.Random) -> str:
    numbers = list(re.finditer(r"\b\d+\b", text))
    if not numbers:
        return text
    found = chooser.choice(numbers)
    return text[: found.start()] + chooser.choice(_NUMBERS) + text[found.end() :]


def _other_operator(text: str, other: str, chooser: random.Random) -> str:
    operators = list(re.finditer(r"(?<=[\w)\] ])(\+|-|\*|/|@|==|<|,|=)(?=[\w(\[ ])", text))
    if not operators:
        return text
    found = chooser.choice(operators)
    return f"{text[: found.start()]} {chooser.choice(_OPERATORS)} {text[found.end() :]}"


def _wrapped(text: str, other: str, chooser: random.Random) -> str:
    values = list(re.finditer(r"(?<=[=(,] )[A-Za-z_][\w.]*(?=[,)\n])|(?<=\()[a-z_]\w*(?=[,)])", text))
    if not values:
        return text
    found = chooser.choice(values)
    return text[: found.start()] + chooser.choice(_WRAPPERS).format(found[0]) + text[found.end() :]


def _other_name(text: str, other: str, chooser: random.Random) -> str:
    names = sorted(set(re.findall(r"\b[a-z_]\w+\b", text)))
    if len(names) < 2:
        return text
    return re.sub(rf"\b{chooser.choice(names)}\b", chooser.choice(names), text)


def _with_lines(change: Callable[[list[str], int, int, str, random.Random], None]) -> _Mutation:
    def mutate(text: str, other: str, chooser: random.Random) -> str:
        lines = text.split("\n")
        first = chooser.randrange(len(lines))
        change(lines, first, first + chooser.randint(1, 5), other, chooser)
        return "\n".join(lines)

    return mutate


def _delete_lines(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    del lines[first:end]


def _double_lines(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    lines[end:end] = lines[first:end] * chooser.choice((1, 2, 50))


def _move_lines(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    moved = lines[first:end]
    del lines[first:end]
    place = chooser.randrange(len(lines) + 1)
    lines[place:place] = moved


def _indent_lines(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    header = chooser.choice(
        ("for _ in range(9):", "while x:", "if x:", "try:", "with x:", "def f():", "class A:")
    )
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    inner = [f"    {line}" for line in lines[first:end]]
    handler = [f"{indent}except E:", f"{indent}    pass"] if header == "try:" else []
    lines[first:end] = [f"{indent}{header}", *inner, *handler]


def _foreign_lines(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    from_other = other.split("\n")
    start = chooser.randrange(len(from_other))
    lines[first:first] = from_other[start : start + 5]


def _cut(lines: list[str], first: int, end: int, other: str, chooser: random.Random) -> None:
    del lines[first:]


_MUTATIONS: tuple[_Mutation, ...] = (
    _delete_token,
    _double_token,
    _other_token,
    _other_number,
    _other_number,
    _other_operator,
    _other_operator,
    _wrapped,
    _wrapped,
    _wrapped,
    _other_name,
    _other_name,
    *map(_with_lines, (_delete_lines, _double_lines, _move_lines, _indent_lines, _foreign_lines, _cut)),
)


def real_files(root: Path, number: int, largest: int = 30_000) -> list[Path]:
    """A fixed sample of the training-like files below a folder: each mentions torch and a batch or a loss."""
    found = []
    for path in sorted(root.rglob("*.py")):
        if path.stat().st_size <= largest:
            text = path.read_text("utf-8", "replace")
            if "torch" in text and ("loss" in text or "batch" in text or "forward" in text):
                found.append(path)
    return random.Random(1).sample(found, min(number, len(found)))
