"""str: results of methods on texts without known contents."""

from __future__ import annotations

import re

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.texts import spelled_out
from shapefix.interpreter.values import NONE, NUMBER, TEXT, Constant, Value
from shapefix.library.registry import function

_PLACE = re.compile(r"\{(\d{0,2})\}")
_TO_TEXT = (
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "capitalize",
    "casefold",
    "swapcase",
    "replace",
    "join",
    "center",
    "ljust",
    "rjust",
    "zfill",
    "expandtabs",
    "translate",
    "removeprefix",
    "removesuffix",
    "format_map",
)


@function(*(f"builtins.str.{name}" for name in _TO_TEXT), "builtins.repr", "builtins.chr", "re.sub")
def text(call: Call) -> Value:
    return TEXT


@function("builtins.str")
def as_text(call: Call) -> Value:
    given = call.value(0)
    if isinstance(given, Constant) and isinstance(given.value, str):
        return given
    return TEXT if given is None else spelled_out((given,)) or TEXT


@function("builtins.str.format")
def formatted(call: Call) -> Value:
    """Result of `"layer{}".format(3)`: only plain fields are filled in, in order or by number."""
    template = call.receiver.value if isinstance(call.receiver, Constant) else None
    if not isinstance(template, str) or call.arguments.keywords or call.arguments.open:
        return TEXT
    pieces: list[Value] = []
    for number, part in enumerate(_PLACE.split(template)):
        if number % 2 == 0:
            if "{" in part or "}" in part:
                return TEXT
            pieces.append(Constant(part))
        else:
            given = call.value(int(part) if part else number // 2)
            if given is None:
                return TEXT
            pieces.append(given)
    return spelled_out(pieces) or TEXT


@function(*(f"builtins.str.{name}" for name in ("split", "rsplit", "splitlines")), "re.split", "re.findall")
def parts(call: Call) -> Value:
    """List of the parts; their number is only known for a known text and separator."""
    whole, last = call.receiver, call.name.rpartition(".")[2]
    given = [*call.arguments.positional, *call.arguments.keywords.values()]
    if last == "split" and len(given) <= 1 and not call.arguments.open:
        separator = call.value(0, "sep") if given else NONE
        if isinstance(whole, Constant) and isinstance(whole.value, str) and isinstance(separator, Constant):
            try:
                return ListValue(tuple(map(Constant, whole.value.split(separator.value))))
            except (TypeError, ValueError):
                pass
    return ListValue(None, TEXT)


@function(*(f"builtins.str.{name}" for name in ("find", "index", "count", "rfind", "rindex")))
def position(call: Call) -> Value:
    return NUMBER
