"""Whether a file can concern us at all, told from its bytes."""

from __future__ import annotations

import re

LIBRARIES = frozenset(
    {"torch", "transformers", "datasets", "lightning", "accelerate", "einops", "timm", "trl", "peft"}
)

# "torch" is looked for anywhere, for pytorch_lightning and torchvision; the others start a word, or "ctrl"
# would be "trl".
_OTHERS = re.compile(rb"\b(?:%s)" % "|".join(sorted(LIBRARIES - {"torch"})).encode())


def mentions_library(data: bytes) -> bool:
    """Tell whether the bytes of a file mention torch or a library that works on its tensors.

    A file that does not still matters when such a file imports it.
    """
    return b"torch" in data or _OTHERS.search(data) is not None
