"""os.path: names of files, joined from their parts."""

from __future__ import annotations

import posixpath
from dataclasses import field

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.texts import LONGEST_NAME
from shapefix.interpreter.values import TEXT, Constant, Text, Unknown, Value
from shapefix.library.registry import function
from shapefix.light_dataclasses import dataclass


@dataclass(eq=False, slots=True)
class JoinedPaths:
    """Unknown paths by their parts, one value for each: two calls with the same parts name one file."""

    known: dict[tuple[object, ...], tuple[Value, tuple[Value, ...]]] = field(default_factory=dict)


@function("os.path.join")
def joined(call: Call) -> Value:
    """Path of known parts, or the one and the same unknown path for the same unknown parts."""
    parts = tuple(call.arguments.positional)
    if call.arguments.open or call.arguments.keywords or not parts:
        return Unknown("path")
    texts = [part.value for part in parts if isinstance(part, Constant) and isinstance(part.value, str)]
    if len(texts) == len(parts) and sum(map(len, texts)) <= LONGEST_NAME:
        return Constant(posixpath.join(*texts))
    key = tuple(part.value if isinstance(part, Constant) else id(part) for part in parts)
    known = call.ev.state[JoinedPaths].known
    if key not in known:
        # The parts are kept, so that no other value gets the identity of one.
        known[key] = Text(), parts
    return known[key][0]


@function(
    *(f"os.path.{name}" for name in ("basename", "dirname", "abspath", "realpath", "expanduser", "normpath")),
    *("os.path.relpath", "os.getcwd", "builtins.input"),
)
def one_text(call: Call) -> Value:
    """Name of a file or folder, or input of the user."""
    return TEXT


@function("os.path.splitext", "os.path.split")
def two_texts(call: Call) -> Value:
    return TupleValue((TEXT, TEXT))


@function("os.listdir", "glob.glob", "glob.iglob")
def names(call: Call) -> Value:
    """Names of any number of files."""
    return ListValue(None, TEXT)
