"""str: what its methods return, where nothing but that it is a text is known."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.values import NUMBER, TEXT, Constant, Value
from shapefix.library.registry import function

_TO_TEXT = (
    "strip lstrip rstrip lower upper title capitalize casefold swapcase replace format join center ljust "
    "rjust zfill expandtabs translate removeprefix removesuffix format_map"
).split()


@function(*(f"builtins.str.{name}" for name in _TO_TEXT), "builtins.repr", "builtins.chr", "re.sub")
def text(call: Call) -> Value:
    return TEXT


@function("builtins.str")
def as_text(call: Call) -> Value:
    given = call.value(0)
    return given if isinstance(given, Constant) and isinstance(given.value, str) else TEXT


@function(*(f"builtins.str.{name}" for name in ("split", "rsplit", "splitlines")), "re.split", "re.findall")
def parts(call: Call) -> Value:
    """As many as there may be."""
    return ListValue(None, TEXT)


@function(*(f"builtins.str.{name}" for name in ("find", "index", "count", "rfind", "rindex")))
def position(call: Call) -> Value:
    return NUMBER
