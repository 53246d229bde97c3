"""Decide from the bytes of a file whether rules can apply to it."""

from __future__ import annotations

import re

LIBRARIES = frozenset(
    {"torch", "transformers", "datasets", "lightning", "accelerate", "einops", "timm", "trl", "peft"}
)

# "torch" is searched anywhere, for pytorch_lightning and torchvision; the others start a word, or "ctrl"
# would be "trl".
_OTHERS = re.compile(rb"\b(?:%s)" % "|".join(sorted(LIBRARIES - {"torch"})).encode())


def mentions_library(data: bytes) -> bool:
    """Check whether the bytes of a file mention torch or a library for torch tensors.

    A file that does not still matters when such a file imports it.
    """
    return b"torch" in data or _OTHERS.search(data) is not None


_TRAINING = (
    b"__main__",
    b"DataLoader(",
    b"Trainer(",
    b".backward(",
    b".fit(",
    b"load_dataset(",
    b"no_grad(",
    b"inference_mode(",
)


def mentions_training(data: bytes) -> bool:
    """Check whether the bytes of a file look like those of a script that runs a model on batches."""
    return any(text in data for text in _TRAINING)
