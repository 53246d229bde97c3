"""Rules by the words of the exception, as the rule pages list them."""

from __future__ import annotations

from functools import cache

from shapefix.rulebook.pages import page_of, pages
from shapefix.runtime.observations import RaisedException

_FAILURES = (
    "SF104", "SF503", "SF504", "SF507", "SF510", "SF511", "SF514", "SF604", "SF901", "SF902", "SF903",
)  # fmt: skip
"""Rules about the failing operation itself; others are about a cause, which may have other consequences."""


def rule_of_failure(failure: RaisedException) -> str | None:
    """The code of the rule for an exception of torch, by the longest text of its page in the message."""
    if failure.type not in ("RuntimeError", "ValueError", "IndexError"):
        return None
    found = [(len(text), code) for text, code in _texts() if text in failure.message]
    return max(found)[1] if found else None


def is_error_of(code: str, message: str) -> bool:
    """Whether the page of a rule has a text of a message."""
    page = page_of(code)
    return page is not None and any(each in message for each in page.errors)


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return tuple((text, page.code) for page in pages() if page.code in _FAILURES for text in page.errors)
