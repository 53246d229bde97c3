"""A unified diff in color, for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shapefix.report.view import visible

if TYPE_CHECKING:
    from rich.text import Text

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


def colored(lines: Iterable[str]) -> Text:
    """Color the lines of one file's unified diff; print the result with soft_wrap=True.

    Changes within a line are highlighted if as many similar lines were added as removed. Control characters
    are escaped; carriage returns at line ends are shown where only some lines have them.
    """
    from rich.text import Text

    text = Text(no_wrap=True, end="")
    given = list(lines)
    content = [line for line in given[2:] if line[0] in " +-"]
    mixed = 0 < sum(line.endswith("\r\n") for line in content) < len(content)
    position = 0
    while position < len(given):
        line = given[position]
        if line[0] in "+-" and position >= 2:
            block = _block(given, position)
            _append_block(text, block, mixed)
            position += len(block)
            continue
        style = "bold" if position < 2 else "cyan" if line[0] == "@" else "dim" if line[0] == "\\" else ""
        text.append(_shown(line, mixed), style)
        position += 1
    return text


def _block(lines: Sequence[str], position: int) -> list[str]:
    """Return adjacent removed and added lines at position, with notes on missing newlines."""
    end = position
    while end < len(lines) and lines[end][0] in "+-\\":
        end += 1
    return list(lines[position:end])


def _append_block(text: Text, block: Sequence[str], mixed: bool) -> None:
    removed = [line for line in block if line[0] == "-"]
    added = [line for line in block if line[0] == "+"]
    marks: dict[str, list[tuple[int, int]]] = {"-": [], "+": []}
    for old, new in zip(removed, added, strict=False):
        before, after = _changed(old, new) if len(removed) == len(added) else ((0, 0), (0, 0))
        marks["-"].append(before)
        marks["+"].append(after)
    for line in block:
        sign = line[0]
        if sign == "\\":
            text.append(line, "dim")
            continue
        color = "red" if sign == "-" else "green"
        start, stop = marks[sign].pop(0) if marks[sign] else (0, 0)
        for part, style in ((line[:start], ""), (line[start:stop], "bold reverse "), (line[stop:], "")):
            text.append(_shown(part, mixed), style + color)


def _changed(removed: str, added: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the range of different words in each of two lines; empty if most of the line differs."""
    old, new = _WORDS.findall(removed[1:]), _WORDS.findall(added[1:])
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    lead, trail = "".join(old[:head]), "".join(old[len(old) - tail :])
    if 2 * len((lead + trail).strip()) < len(removed[1:].strip()):
        return (0, 0), (0, 0)
    start = 1 + len(lead)
    return (start, len(removed) - len(trail)), (start, len(added) - len(trail))


def _shown(text: str, mixed: bool) -> str:
    if not mixed and text.endswith("\r\n"):
        text = text[:-2] + "\n"
    return visible(text, keep="\t\n")
