"""Tokens added to a tokenizer, and models without embedding rows for them.

The public checkpoints were looked up: in each of these families the tokenizer has as many tokens as
the model has rows, so that the first added token has none. T5 and GPT-J have spare rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shapefix.domains.tokens import Checkpoint, Tokens, TokensWithoutRow, row_of, sources_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, LibraryObject, Value, as_tensor
from shapefix.library.transformers.pad_tokens import PAD
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resized(Fact):
    """The embedding of a model may have other rows than that of its checkpoint."""


@dataclass(frozen=True, eq=False, slots=True)
class AddedToken(Fact):
    """Token added to a tokenizer; pads is True if it is the pad token."""

    token: str
    place: Place
    pads: bool


_OWN = {
    r"(openai-community/)?gpt2(-medium|-large|-xl)?|(distilbert/)?distilgpt2|EleutherAI/gpt-neo-[\w.]+": (
        "<|endoftext|>",
    ),
    r"meta-llama/Llama-2-\d+b(-chat)?-hf": ("<unk>", "<s>", "</s>"),
    r"(google-bert/)?bert-(base|large)-[\w-]+|(distilbert/)?distilbert-base-[\w-]+|"
    r"google/electra-(small|base|large)-(discriminator|generator)": (
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ),
    r"(FacebookAI/)?roberta-(base|large)|(distilbert/)?distilroberta-base|"
    r"(FacebookAI/)?xlm-roberta-(base|large)|facebook/bart-(base|large)": (
        "<s>",
        "</s>",
        "<pad>",
        "<unk>",
        "<mask>",
    ),
}
"""Special tokens of public checkpoints."""
_MARKED = re.compile(r"<\|?[^<>|]+\|?>|\[[^\[\]]+\]")
_RESERVED = re.compile(r"\[unused\d+\]|<0x..>|<extra_id_\d+>")


def note_added(call: Call, tokenizer: Value | None, given: Mapping[object, Value]) -> None:
    """Record the first token certainly added to a tokenizer by a call, a pad token last.

    given are the tokens, or lists of them, by their role.
    """
    if not isinstance(tokenizer, LibraryObject):
        return
    own = _own_tokens(tokenizer)
    if own is None:
        return
    new = [
        AddedToken(token, call.place, pads)
        for token, pads in _tokens(given)
        if token not in own and _MARKED.fullmatch(token) and not _RESERVED.fullmatch(token)
    ]
    known = tokenizer.facts.known(AddedToken)
    if known is not None and not call.ev.journal.is_maybe_unbound(tokenizer.facts, AddedToken):
        new.append(known)
    if new:
        call.ev.journal.write(tokenizer.facts, AddedToken, min(new, key=lambda token: token.pads))


def _own_tokens(tokenizer: LibraryObject) -> tuple[str, ...] | None:
    name = _checkpoint_of(tokenizer)
    return next((own for names, own in _OWN.items() if name is not None and re.fullmatch(names, name)), None)


def _checkpoint_of(value: LibraryObject) -> str | None:
    """Known name of the checkpoint of a model or a tokenizer."""
    checkpoint = value.facts.known(Checkpoint)
    name = checkpoint.name if checkpoint is not None else None
    return name.value if isinstance(name, Constant) and isinstance(name.value, str) else None


def _tokens(given: Mapping[object, Value]) -> Iterator[tuple[str, bool]]:
    """Known tokens, and whether each is the pad token."""
    for key, value in given.items():
        for part in elements(value) or (value,):
            if isinstance(part, Constant) and isinstance(part.value, str):
                yield part.value, key == PAD


def note_rows_missing(call: Call, model: Value | None, ids: Value | None, padded: bool = False) -> None:
    """Report ids of a tokenizer with added tokens passed to a model without rows for them.

    padded is True for rows padded on their way, regardless of the tokenizer's arguments.
    """
    if not isinstance(model, LibraryObject) or Resized in model.facts:
        return
    checkpoint = _checkpoint_of(model)
    for source in sources_of(row_of(as_tensor(ids))):
        added = _added_to(call, source, checkpoint, padded)
        if added is not None:
            call.ev.emit(
                TokensWithoutRow(
                    call.place, call.ev.calls, model, source.tokenizer, added.token, added.place, added.pads
                )
            )
            return


def _added_to(call: Call, source: Tokens, checkpoint: str | None, padded: bool) -> AddedToken | None:
    """Token added to the tokenizer of these ids, for a model of its checkpoint."""
    tokenizer = source.tokenizer
    added = tokenizer.facts.known(AddedToken)
    if added is None or call.ev.journal.is_maybe_unbound(tokenizer.facts, AddedToken):
        return None
    if checkpoint is None or _checkpoint_of(tokenizer) != checkpoint:
        return None
    is_used = not added.pads or padded or source.padding in ("longest", "max_length")
    return added if is_used else None
