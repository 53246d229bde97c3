"""Recognize the repository of a library, copied into a project."""

# Paths are plain strings here, as in discovery.
# ruff: noqa: PTH113, PTH118

from __future__ import annotations

import os
import re
from collections.abc import Collection

from shapefix.sources.text import RefusedFile, Unreadable, read_settings

_PACKAGES = {
    "accelerate": "accelerate",
    "apex": "apex",
    "bitsandbytes": "bitsandbytes",
    "datasets": "datasets",
    "deepspeed": "deepspeed",
    "detectron2": "detectron2",
    "diffusers": "diffusers",
    "einops": "einops",
    "fairseq": "fairseq",
    "lightning": "lightning",
    "mmcv": "mmcv",
    "mmdet": "mmdet",
    "mmsegmentation": "mmseg",
    "open-clip-torch": "open_clip",
    "peft": "peft",
    "pytorch-lightning": "pytorch_lightning",
    "pytorch-transformers": "pytorch_transformers",
    "sentence-transformers": "sentence_transformers",
    "timm": "timm",
    "torch": "torch",
    "torch-geometric": "torch_geometric",
    "torchaudio": "torchaudio",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "trl": "trl",
}
"""Libraries that projects copy, by the names in their setup files, with the names of their packages."""
_SETUP_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_NAME = re.compile(r"""\bname\s*=\s*["']?([\w.-]+)""")
_SEPARATORS = re.compile(r"[-_.]+")
_MOST_CHARACTERS = 100_000


def copied_library(folder: str, names: Collection[str]) -> str | None:
    """Return the library with its repository in a folder; None for other folders. names are those in it.

    Its setup file states its name, and its package is beside the file or in `src`.
    """
    for setup in _SETUP_FILES:
        if setup not in names:
            continue
        for stated in _NAME.findall(_start(os.path.join(folder, setup))):
            library = _SEPARATORS.sub("-", stated).lower()
            package = _PACKAGES.get(library)
            if package is not None and _has_package(folder, package):
                return library
    return None


def _has_package(folder: str, package: str) -> bool:
    places = (os.path.join(folder, package), os.path.join(folder, "src", package))
    return any(os.path.isfile(os.path.join(place, "__init__.py")) for place in places)


def _start(path: str) -> str:
    """Return the start of a text; empty for an unreadable file, such as a pipe."""
    try:
        return read_settings(path).decode("utf-8", errors="replace")[:_MOST_CHARACTERS]
    except (Unreadable, RefusedFile):
        return ""
