"""Read the error pages: the meaning of a message, its usual causes, places to look at."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import InvalidPage, MissingPages, rules_folder

_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_SECTIONS = ["Usual causes", "What to look at", "Example"]


@dataclass(frozen=True)
class ErrorPage:
    """One error page.

    errors are templates of the message with fields, `index {index:int} is out of bounds`; older are those of
    earlier versions of the libraries. error_type is the type of the exception, if the message alone says too
    little; "" for any. is_general is true for errors of any Python program: `check` leaves them to their
    notebooks. what is a sentence with the same fields; `{type:value}` there is a value of a type, for a type
    with the one value `None` that value. needs is what the example takes: "", "gpu", "unsupported-gpu",
    "broken-gpu", "several-gpus", "several-processes" or the name of a package.
    """

    name: str
    errors: tuple[str, ...]
    older: tuple[str, ...]
    error_type: str
    is_general: bool
    what: str
    causes: tuple[str, ...]
    look: str
    needs: str
    path: Path


@cache
def error_pages() -> tuple[ErrorPage, ...]:
    """Every error page, by name. Raises MissingPages and InvalidPage."""
    folder = rules_folder() / "errors"
    found = tuple(_page(path) for path in sorted(folder.glob("*.md")))
    if not found:
        raise MissingPages(f"the error pages are missing from {folder}; install shapefix again")
    return found


def _page(path: Path) -> ErrorPage:
    try:
        _, front, body = path.read_text("utf-8").split("---\n", 2)
    except ValueError:
        raise InvalidPage(f"{path}: the front matter is missing") from None
    head: dict[str, list[str]] = {}
    key = ""
    for line in front.splitlines():
        if line.startswith("  - ") and key:
            head[key].append(line.removeprefix("  - ").strip())
            continue
        key, _, value = line.partition(":")
        head[key] = [value.strip()] if value.strip() else []
    intro, *sections = _SECTION.split(body)
    if sections[::2] != _SECTIONS:
        raise InvalidPage(f"{path}: the sections must be {', '.join(_SECTIONS)}")
    if head.get("name") != [path.stem] or not head.get("errors"):
        raise InvalidPage(f"{path}: the front matter lacks `name` or `errors`")
    causes, look = sections[1], sections[3]
    return ErrorPage(
        path.stem,
        tuple(head["errors"]),
        tuple(head.get("older", ())),
        "".join(head.get("type", ())),
        head.get("general") == ["true"],
        _joined(intro.partition("\n\n")[2]),
        tuple(_joined(cause) for cause in re.split(r"^- ", causes, flags=re.MULTILINE)[1:]),
        _joined(look),
        "".join(head.get("needs", ())),
        path,
    )


def _joined(text: str) -> str:
    return " ".join(text.split())
