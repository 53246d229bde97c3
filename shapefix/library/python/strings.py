"""str: results of methods, computed for short known texts."""

from __future__ import annotations

import re

from shapefix.interpreter.any_items import any_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.texts import LONGEST_NAME, OneOfTexts, spelled_out
from shapefix.interpreter.values import NONE, TEXT, Constant, Integer, Unknown, Value
from shapefix.library.python.random_numbers import drawn_number
from shapefix.library.registry import Handler, function
from shapefix.tensors.polynomials import Size

LONGEST_TEXT = 10_000
"""Texts up to this length are joined."""
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


_COMPUTED = frozenset(
    {"strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "swapcase"}
    | {"replace", "removeprefix", "removesuffix"}
)
"""Methods with results hardly longer than the text and the arguments."""
_TESTS = ("startswith", "endswith", "isdigit", "isalpha", "isalnum", "isupper", "islower", "isspace")


@function("builtins.repr", "builtins.chr", "re.sub")
def text(call: Call) -> Value:
    return TEXT


@function(*(f"builtins.str.{name}" for name in _TO_TEXT))
def changed(call: Call) -> Value:
    """Result of `mode.lower()`: it decides branches."""
    name = call.name.rpartition(".")[2]
    if name == "join":
        return _joined(call) or TEXT
    return (_computed(call, name) if name in _COMPUTED else None) or _pointwise(call, changed) or TEXT


def _pointwise(call: Call, handler: Handler) -> Value | None:
    """Result of a method for any one of several texts; None for other texts."""
    if not isinstance(call.receiver, OneOfTexts):
        return None
    results = [
        handler(Call(call.ev, call.name, call.place, call.arguments, Constant(text)))
        for text in call.receiver.values
    ]
    return any_of(results)


def _joined(call: Call) -> Constant | None:
    """Text of known parts: `" ".join(sentences)`."""
    between, parts_ = call.receiver, elements(call.value(0))
    if not isinstance(between, Constant) or not isinstance(between.value, str) or parts_ is None:
        return None
    texts = [part.value for part in parts_ if isinstance(part, Constant) and isinstance(part.value, str)]
    if len(texts) < len(parts_) or sum(len(text) + len(between.value) for text in texts) > LONGEST_TEXT:
        return None
    return Constant(between.value.join(texts))


@function(*(f"builtins.str.{name}" for name in _TESTS))
def tested(call: Call) -> Value:
    """Result of `name.startswith("resnet")`."""
    return _computed(call, call.name.rpartition(".")[2]) or Unknown()


def _computed(call: Call, name: str) -> Constant | None:
    """Compute a method of a text; None if the text or an argument is unknown or long."""
    held = call.receiver.value if isinstance(call.receiver, Constant) else None
    if not isinstance(held, str) or call.arguments.open or call.arguments.keywords:
        return None
    given = [
        tuple(map(_known, each.items)) if isinstance(each, TupleValue) else _known(each)
        for each in call.arguments.positional
    ]
    if sum(len(each) for each in (held, *given) if isinstance(each, str)) > LONGEST_NAME:
        return None
    try:
        return Constant(getattr(held, name)(*given))
    except (TypeError, ValueError):
        # An unknown argument has another type than the method takes.
        return None


def _known(value: Value) -> object:
    """Return the Python value of a constant, the value itself otherwise."""
    return value.value if isinstance(value, Constant) else value


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
    return _pointwise(call, parts) or ListValue(None, TEXT)


@function(*(f"builtins.str.{name}" for name in ("find", "index", "count", "rfind", "rindex")))
def position(call: Call) -> Value:
    """Position in a text, or a count: any one within its length."""
    name = call.name.rpartition(".")[2]
    known = _computed(call, name)
    if known is not None:
        return known
    least = -1 if "find" in name else 0
    held = call.receiver.value if isinstance(call.receiver, Constant) else None
    if isinstance(held, str) and name == "index" and len(held) > 1:
        return drawn_number(call, 0, len(held) - 1)
    return Integer(Size.symbol("position", least=least))
