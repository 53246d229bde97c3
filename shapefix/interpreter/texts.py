"""Texts built from parts: the values of the code in them."""

from __future__ import annotations

from collections.abc import Iterable

from shapefix.interpreter.values import TEXT, Constant, Text, Unknown, Value

MOST_PARTS = 16
LONGEST_NAME = 100
LARGEST_NUMBER = 10**18


class JoinedText(Text):
    """Text made of others, in unknown order; parts are the known ones."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Value, ...]) -> None:
        self.parts = parts


class OneOfTexts(Text):
    """Arbitrary one of several known texts: any item of a list of names."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[str, ...]) -> None:
        self.values = values


def joined(pieces: Iterable[Value]) -> Text:
    """Join pieces to a text."""
    parts: dict[int, Value] = {}
    for piece in pieces:
        for part in piece.parts if isinstance(piece, JoinedText) else (piece,):
            if part is not TEXT and isinstance(part, (Text, Unknown, Constant)):
                parts[id(part)] = part
    return JoinedText(tuple(parts.values())) if 0 < len(parts) <= MOST_PARTS else TEXT


def spelled_out(pieces: Iterable[Value]) -> Constant | None:
    """Join pieces to a constant if all of them are known and short, as names are: `f"layer{i}"`."""
    known: list[str] = []
    for piece in pieces:
        if not isinstance(piece, Constant) or not isinstance(piece.value, (str, int)):
            return None
        if isinstance(piece.value, int) and abs(piece.value) > LARGEST_NUMBER:
            return None
        known.append(str(piece.value))
    text = "".join(known)
    return Constant(text) if len(text) <= LONGEST_NAME else None


def contains(text: Value, part: Value) -> bool:
    """Check whether the text certainly contains part."""
    if isinstance(part, Constant):
        pieces = text.parts if isinstance(text, JoinedText) else (text,)
        known = [piece.value for piece in pieces if isinstance(piece, Constant)]
        return any(isinstance(one, str) and str(part.value) in one for one in known)
    return isinstance(text, JoinedText) and any(one is part for one in text.parts)
