"""Saves and loads that pass Python's `open` by: torch's, safetensors', and transformers' tokenizers'."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from . import imports
from .disk import Disk


def install(disk: Disk) -> None:
    """Map their paths from now on, and once they are imported."""
    write, read = disk.writable, disk.readable
    _map(torch, "save", 1, "f", write)
    _map(torch, "load", 0, "f", read)

    def safetensors(module: ModuleType) -> None:
        _map(module, "save_file", 1, "filename", write)
        _map(module, "load_file", 0, "filename", read)
        _map(module, "safe_open", 0, "filename", read)

    def rust(module: ModuleType) -> None:
        # Whoever imports it later gets this one; a class, but used as a function only.
        _map(module, "safe_open", 0, "filename", read)

    def pretrained(name: str) -> Callable[[ModuleType], None]:
        def wrap(module: ModuleType) -> None:
            kind = getattr(module, name, None)
            if kind is not None:
                _map(kind, "save_pretrained", 1, "save_directory", write)
                _map_loading(kind, read)

        return wrap

    imports.after(
        {
            "safetensors": rust,
            "safetensors.torch": safetensors,
            "transformers.tokenization_utils_base": pretrained("PreTrainedTokenizerBase"),
            "transformers.modeling_utils": pretrained("PreTrainedModel"),
        }
    )


def _map(owner: Any, name: str, position: int, keyword: str, mapped: Callable[[Any], Any]) -> None:
    """Map one argument of a function of owner, where it is a path."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > position and isinstance(args[position], (str, os.PathLike)):
            args = (*args[:position], mapped(args[position]), *args[position + 1 :])
        elif isinstance(kwargs.get(keyword), (str, os.PathLike)):
            kwargs[keyword] = mapped(kwargs[keyword])
        return original(*args, **kwargs)

    setattr(owner, name, function)


def _map_loading(kind: Any, read: Callable[[Any], Any]) -> None:
    original = kind.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(name, (str, os.PathLike)) and os.path.isdir(name):  # noqa: PTH112
            name = read(name)
        return original(cls, name, *args, **kwargs)

    kind.from_pretrained = classmethod(from_pretrained)
