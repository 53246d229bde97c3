"""The values of both sides of a failed assert."""

from __future__ import annotations

from shapefix.runtime.observations import RaisedException


def asserted_text(failure: RaisedException) -> str:
    """The compared expressions and their values, in words."""
    values = failure.details.get("asserted", ())
    text = ", ".join(f"`{each['text']}` is {each['value']}" for each in values)
    return f"; {text}" if text else ""
