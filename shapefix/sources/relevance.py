"""Decide from the bytes of a file whether rules can apply to it."""

from __future__ import annotations

import re
from pathlib import PurePath

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
    """Check whether the bytes of a file look like a training or evaluation script."""
    return any(text in data for text in _TRAINING)


_TEST_FILE = re.compile(r"(?:^test_.*|_test|unittests?)\.(?:py|ipynb)$")


def is_test_file(path: str) -> bool:
    """Check the name of a file for one of tests; a `test.py` may well evaluate a model."""
    return _TEST_FILE.search(PurePath(path).name) is not None


_PLACES = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:async[ \t]+)?def|(?P<class>class))[ \t]+(?P<name>\w+)"
    r"|\.backward\(|\bDataLoader\(|Trainer\(|\bload_dataset\(|\.fit\(|\.zero_grad\(|loader\b",
    re.MULTILINE,
)
_STEPS = re.compile(r"(?:training|validation|test)_step|compute_loss")


_PARTS = (
    *("loader", "DataLoader(", "Trainer(", "_step", "compute_loss"),
    *(".backward(", "load_dataset(", ".fit(", ".zero_grad("),
)
"""Parts of all places, and of all names of steps, one of them in each."""


def _indent(text: str, at: int) -> int:
    """Return the number of blanks at the start of the line around an index."""
    line = text[text.rfind("\n", 0, at) + 1 : at + 1]
    return len(line) - len(line.lstrip())


def training_functions(text: str) -> frozenset[str]:
    """Return the names of functions probably training, loading batches, or making a trainer.

    This only decides what is run first.
    """
    # Most files have none of them, and the pattern is slow.
    if not any(part in text for part in _PARTS):
        return frozenset()
    open_functions: list[tuple[int, str]] = []
    found: set[str] = set()
    for place in _PLACES.finditer(text):
        name = place["name"]
        indent = len(place["indent"]) if name else _indent(text, place.start())
        while open_functions and open_functions[-1][0] >= indent:
            open_functions.pop()
        if name is not None:
            open_functions.append((indent, "" if place["class"] else name))
            if _STEPS.fullmatch(name):
                found.add(name)
        else:
            found.update(name for _, name in open_functions if name)
    return frozenset(found)
