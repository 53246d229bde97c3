"""Classifiers of sequences with the architecture of a decoder: they need a pad token for several rows.

They read the scores of the last token before the padding. tests/library/test_classifier_padding.py compares
the classes with the installed version of transformers.
"""

from __future__ import annotations

import re

import libcst as cst

from shapefix.domains.tokens import Checkpoint, PadIdMissing
from shapefix.interpreter.calls import Call
from shapefix.interpreter.modules import called_name
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, InstanceValue, LibraryObject, Value
from shapefix.library.transformers.added_tokens import Resized
from shapefix.library.transformers.architectures import class_of
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchSize

WITHOUT_DEFAULT = frozenset(
    f"{name}ForSequenceClassification"
    for name in (
        *("GPT2", "GPTNeo", "GPTNeoX", "GPTJ", "GPTBigCode", "OpenAIGPT", "CTRL", "Bloom", "Falcon", "Mpt"),
        *("Llama", "Mistral", "Mixtral", "Qwen2", "Qwen2Moe", "Qwen3", "Phi", "StableLm", "Persimmon"),
        "Starcoder2",
    )
)
"""Classes with a configuration without a pad token by default."""
_WITHOUT_TOKEN = re.compile(r"(openai-community/)?gpt2(-medium|-large|-xl)?|(distilbert/)?distilgpt2")
"""Checkpoints with a configuration without a pad token."""


def note_classified(call: Call, model: Value | None, rows: Size | None, is_trained: bool = False) -> None:
    """Report a classifier without a pad token for a batch of several rows."""
    if not isinstance(model, LibraryObject) or not _are_several(rows) or Resized in model.facts:
        # Code that is not followed may have set the pad token.
        return
    config, name = model.fields.get("config"), (class_of(model) or "").rpartition(".")[2]
    if not name.endswith("ForSequenceClassification"):
        return
    if not isinstance(config, LibraryObject) or not _is_missing(config.fields.get("pad_token_id")):
        return
    checkpoint = model.facts.known(Checkpoint)
    if checkpoint is not None:
        stored = checkpoint.name.value if isinstance(checkpoint.name, Constant) else None
        is_known = isinstance(stored, str) and _WITHOUT_TOKEN.fullmatch(stored) is not None
        node = model.place.node if model.place is not None else None
        # A configuration of its own may come from anywhere.
        is_plain = config.place is not None and config.place.node is node
        if not is_known or not is_plain or not _is_stated(node):
            return
        name = "GPT2ForSequenceClassification" if name.startswith("Auto") else name
    elif name not in WITHOUT_DEFAULT or not _is_constructed(config):
        return
    call.ev.emit(PadIdMissing(call.place, call.ev.calls, name, config.place, is_trained))


def rows_of(ids: Value | None) -> Size | None:
    """Number of rows of a batch of ids; None if unknown."""
    return (
        ids.layout.sizes[0] if isinstance(ids, TensorValue) and ids.layout and ids.layout.rank == 2 else None
    )


def note_trained(call: Call) -> None:
    """Report `trainer.train()` of such a classifier."""
    fields = call.receiver.fields if isinstance(call.receiver, (LibraryObject, InstanceValue)) else {}
    arguments = fields.get("args")
    stated = arguments.fields if isinstance(arguments, LibraryObject) else {}
    size = stated.get("per_device_train_batch_size", Constant(8))
    if isinstance(arguments, (LibraryObject, Constant)) and isinstance(size, Constant):
        rows = Size.of(size.value) if type(size.value) is int else None
        note_classified(call, fields.get("model"), rows, is_trained=True)


def _are_several(rows: Size | None) -> bool:
    full = rows.only_symbol if rows is not None else None
    number = full.full.value if isinstance(full, BatchSize) else rows.value if rows is not None else None
    return number is not None and number > 1


def _is_missing(value: Value | None) -> bool:
    return value is None or (isinstance(value, Constant) and value.value is None)


def _is_constructed(config: LibraryObject) -> bool:
    """Check for a configuration with its settings written out: `GPT2Config(n_layer=2)`."""
    node = config.place.node if config.place is not None else None
    if not isinstance(node, cst.Call) or not _is_stated(node):
        return False
    return called_name(node).endswith("Config")


def _is_stated(node: cst.CSTNode | None) -> bool:
    """Check for a call with all of its arguments in the code, and without a pad token."""
    return isinstance(node, cst.Call) and not any(
        given.star
        or (given.keyword is not None and given.keyword.value == "pad_token_id" and not _is_none(given))
        for given in node.args
    )


def _is_none(given: cst.Arg) -> bool:
    return isinstance(given.value, cst.Name) and given.value.value == "None"
