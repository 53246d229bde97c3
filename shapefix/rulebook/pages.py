"""Finds the pages of the rule book, and reads what they say about their rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shapefix.diagnostics import Severity

_IN_WHEEL = Path(__file__).parent / "pages"
_IN_CHECKOUT = Path(__file__).parents[2] / "rules"


class MissingPages(Exception):
    """The rule book is not where it was installed."""


@dataclass(frozen=True)
class Page:
    """The front matter of a rule's page. fix is "safe", "unsafe", "sometimes" (safe) or "none"."""

    code: str
    name: str
    severity: Severity
    fix: str
    since: str
    path: Path
    summary: str = ""

    def text(self) -> str:
        """The page as Markdown, without its front matter."""
        _, _, body = self.path.read_text("utf-8").split("---\n", 2)
        return body.lstrip("\n")


@cache
def pages() -> tuple[Page, ...]:
    """Every page, in the order of the codes. Raises MissingPages."""
    folder = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT
    found = tuple(_page(path) for path in sorted(folder.glob("SF*.md")))
    if not found:
        raise MissingPages(f"the rule book is missing from {folder}; install shapefix again")
    return found


def page_of(rule: str) -> Page | None:
    """The page of the rule with this code or name, however it is capitalised."""
    wanted = rule.strip().lower()
    return next((page for page in pages() if wanted in (page.code.lower(), page.name)), None)


def _page(path: Path) -> Page:
    with path.open(encoding="utf-8") as file:
        next(file)
        head: dict[str, str] = {}
        for line in file:
            if line.strip() == "---":
                break
            key, _, value = line.partition(":")
            head[key.strip()] = value.strip()
    severity = Severity(head["severity"])
    summary = head.get("summary", "")
    return Page(head["code"], head["name"], severity, head["fix"], head["since"], path, summary)
