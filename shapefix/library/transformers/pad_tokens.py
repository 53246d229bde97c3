"""Pad token of a tokenizer: its presence, and the calls requiring it."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.tokens import PadTokenMissing
from shapefix.interpreter.calls import Call
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Reference, Value

PAD, PAD_ID = "pad_token", "pad_token_id"

_STRATEGIES = {
    True: "longest",
    False: "none",
    "longest": "longest",
    "max_length": "max_length",
    "do_not_pad": "none",
    "LONGEST": "longest",
    "MAX_LENGTH": "max_length",
    "DO_NOT_PAD": "none",
}


def strategy(padding: Value) -> str | None:
    """Padding requested by an argument `padding`: "longest", "max_length" or "none"; None if unknown."""
    if isinstance(padding, Reference) and ".PaddingStrategy." in padding.name:
        return _STRATEGIES.get(padding.name.rpartition(".")[2])
    if isinstance(padding, Constant) and isinstance(padding.value, (bool, str)):
        return _STRATEGIES.get(padding.value)
    return None


def lacks_pad_token(value: Value | None) -> bool:
    """Check for a tokenizer certain to be without a pad token now."""
    if not isinstance(value, LibraryObject) or PAD not in value.fields:
        return False
    return all(_is_none(value.fields[name]) for name in (PAD, PAD_ID) if name in value.fields)


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def asks_for_pad_token(tokenizer: LibraryObject, padding: Value, max_length: Value) -> bool:
    """Check whether this padding needs a pad token: "longest" always, a length if it is known."""
    asked = strategy(padding)
    if asked == "max_length":
        # Without max_length, and without a maximum of its own, a tokenizer does not pad.
        limit = tokenizer.fields.get("model_max_length") if _is_none(max_length) else max_length
        return isinstance(limit, Integer) or (isinstance(limit, Constant) and isinstance(limit.value, int))
    return asked == "longest"


def note_padding(
    call: Call,
    tokenizer: Value | None,
    asked: str,
    place: Place | None = None,
    subject: cst.CSTNode | None = None,
    *,
    later: bool = False,
) -> None:
    """Report padding by a tokenizer without a pad token at this moment.

    asked is the code that needs it, place is its place (None: this call); later is True if it
    raises with the first batch only.
    """
    if isinstance(tokenizer, LibraryObject) and lacks_pad_token(tokenizer):
        at = place or call.place
        call.ev.emit(PadTokenMissing(at, call.ev.calls, tokenizer, subject, asked, later))
