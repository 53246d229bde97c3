"""Tokenizers of the tokenizers library, the origin of the pad token of a fast tokenizer."""

from __future__ import annotations

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.values import NONE, LibraryObject, Unknown, Value
from shapefix.library.registry import declare, function, method

BACKEND = "tokenizers.Tokenizer"
_PADDING = "_padding"
"""Field for the padding that the object has been set to: None at first."""
declare(BACKEND, "builtins.object")


@function(BACKEND)
def made(call: Call) -> Value:
    """Tokenizer of a model such as BPE: it does not pad."""
    return LibraryObject(BACKEND, {}, call.place, {_PADDING: NONE})


@function(*(f"{BACKEND}.{name}" for name in ("from_file", "from_pretrained", "from_str", "from_buffer")))
def loaded(call: Call) -> Value:
    return LibraryObject(BACKEND, {}, call.place, {_PADDING: Unknown()})


@method(BACKEND, "enable_padding")
def enable_padding(call: Call) -> Value:
    return _set(call, Unknown())


@method(BACKEND, "no_padding")
def disable_padding(call: Call) -> Value:
    return _set(call, NONE)


def _set(call: Call, padding: Value) -> Value:
    if isinstance(call.receiver, LibraryObject):
        call.ev.journal.write(call.receiver.fields, _PADDING, padding)
    return NONE


@hooks.escape
def _invalidate(ev: Evaluator, value: Value) -> None:
    if isinstance(value, LibraryObject) and value.kind == BACKEND:
        ev.journal.write(value.fields, _PADDING, Unknown())


def never_pads(value: Value | None) -> bool:
    """Check for a tokenizer made by this program and never set to pad."""
    return isinstance(value, LibraryObject) and value.kind == BACKEND and value.fields.get(_PADDING) is NONE
