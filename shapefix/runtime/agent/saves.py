"""Redirect saves and loads without Python's `open`: of torch, safetensors, tokenizers and transformers."""

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
    """Redirect the paths of these functions, in later imports, too."""
    write, read = disk.writable, disk.readable
    _map(torch, "save", 1, "f", write)
    _map(torch, "load", 0, "f", read)
    _torch_itself(disk)

    def safetensors(module: ModuleType) -> None:
        _map(module, "save_file", 1, "filename", write)
        _map(module, "load_file", 0, "filename", read)
        _map(module, "safe_open", 0, "filename", read)

    def rust(module: ModuleType) -> None:
        # Later imports get this function; the original is a class, but used as a function only.
        _map(module, "safe_open", 0, "filename", read)
        _map(module, "serialize_file", 1, "filename", write)

    def tokenizers(module: ModuleType) -> None:
        _map(module.Tokenizer, "save", 1, "path", write)
        _map_static(module.Tokenizer, "from_file", 0, "path", read)

    def pretrained(name: str) -> Callable[[ModuleType], None]:
        def wrap(module: ModuleType) -> None:
            kind = getattr(module, name, None)
            if kind is not None:
                _map(kind, "save_pretrained", 1, "save_directory", write)
                _map_loading(kind, read)

        return wrap

    imports.after(
        {
            "tokenizers": tokenizers,
            "safetensors": rust,
            "safetensors.torch": safetensors,
            "transformers.tokenization_utils_base": pretrained("PreTrainedTokenizerBase"),
            "transformers.modeling_utils": pretrained("PreTrainedModel"),
        }
    )


def _torch_itself(disk: Disk) -> None:
    """Redirect files opened by torch in C++: archives, memory-mapped files, traces, stores."""
    write, read = disk.writable, disk.readable
    native: Any = torch._C
    _map(native.PyTorchFileWriter, "__init__", 1, "file_name", write)
    _map(native.PyTorchFileReader, "__init__", 1, "arg0", read)
    _map(native.ScriptModule, "save", 1, "filename", write)
    _map(native.ScriptModule, "_save_for_mobile", 1, "filename", write)
    _map(native.ScriptFunction, "save", 1, "filename", write)
    for name, position in (("_save_jit_module", 1), ("_save_mobile_module", 1), ("_save_parameters", 1)):
        _map(native, name, position, "", write)
    for name, position in (
        ("import_ir_module", 1),
        ("_get_model_extra_files", 0),
        ("_load_for_lite_interpreter", 0),
        ("_load_jit_module_from_file", 0),
        ("_load_mobile_module_from_file", 0),
    ):
        _map(native, name, position, "", read)
    profiled = getattr(getattr(native, "_autograd", None), "_ProfilerResult", None)
    _map(profiled, "save", 1, "", write)
    if torch.distributed.is_available():
        _map(torch.distributed.FileStore, "__init__", 1, "file_name", write)
    _map_shared(torch, disk)
    _map_shared(torch.UntypedStorage, disk)


def _map_shared(owner: Any, disk: Disk) -> None:
    """Redirect the file of a memory-mapped tensor or storage; writes to the tensor change a shared file."""
    original = owner.from_file

    @functools.wraps(original)
    def from_file(filename: Any, *args: Any, **kwargs: Any) -> Any:
        shared = args[0] if args else kwargs.get("shared")
        path = disk.writable(filename, keep=True) if shared else disk.readable(filename)
        return original(path, *args, **kwargs)

    owner.from_file = from_file if owner is torch else staticmethod(from_file)


def _map(owner: Any, name: str, position: int, keyword: str, mapped: Callable[[Any], Any]) -> None:
    """Redirect one argument of a function of owner if it is a path."""
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


def _map_static(kind: Any, name: str, position: int, keyword: str, mapped: Callable[[Any], Any]) -> None:
    """Redirect one argument of a static method."""
    _map(kind, name, position, keyword, mapped)
    setattr(kind, name, staticmethod(vars(kind)[name]))


def _map_loading(kind: Any, read: Callable[[Any], Any]) -> None:
    original = kind.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(name, (str, os.PathLike)) and os.path.isdir(name):  # noqa: PTH112
            name = read(name)
        return original(cls, name, *args, **kwargs)

    kind.from_pretrained = classmethod(from_pretrained)
