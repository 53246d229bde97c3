"""Find out whether a project uses a GPU: moves to a device, by the code or by a library."""

# Paths are plain strings here, as in the other modules that list folders.
# ruff: noqa: PTH118

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shapefix.sources.notebooks import cells
from shapefix.sources.text import SourceText, Unreadable, read_bytes

_MOST_FILES = 4000
_OTHER_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})
_GPUS = ("cuda", "mps", "xpu", "npu", "hpu")
_WORDS = re.compile(
    r"\.to\(\s*\d|cuda|\bmps\b|\bxpu\b|\bnpu\b|\bhpu\b|device|gpu|Trainer|TrainingArguments|DataParallel|accelerat"
    r"|apex|bitsandbytes|catalyst|composer|deepspeed|fastai|horovod|ignite|lightning|skorch|trl|unsloth"
)
"""A text without any of these words uses no GPU."""
_LIBRARIES = frozenset(
    {
        "accelerate",
        "apex",
        "bitsandbytes",
        "catalyst",
        "composer",
        "deepspeed",
        "fastai",
        "horovod",
        "ignite",
        "lightning",
        "lightning_fabric",
        "pytorch_lightning",
        "skorch",
        "trl",
        "unsloth",
    }
)
"""Libraries that choose the device, a GPU if there is one."""
_ATTRIBUTES = frozenset({*_GPUS, "DataParallel", "DistributedDataParallel"})
_KEYWORDS = frozenset({"device_map", "device_ids", "gpus", "n_gpu", "devices"})
_HOLDERS = frozenset(
    {"self", "cls", "args", "arg", "opt", "opts", "cfg", "config", "conf", "hparams", "params"}
)
_TRAINERS = ("Trainer", "TrainingArguments")
_NAMES = ("device", "dev", "gpu", "rank")


def uses_gpu(text: str) -> bool:
    """Check whether code, or a library used by it, moves something to a device other than the CPU."""
    if _WORDS.search(text) is None:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    nodes = list(ast.walk(tree))
    on_cpu = _only_the_cpu(nodes)
    return any(_is_use(node, on_cpu) for node in nodes)


def _only_the_cpu(nodes: list[ast.AST]) -> frozenset[str]:
    """Names bound by the code to the CPU and to nothing else."""
    found: dict[str, bool] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            found[name] = found.get(name, True) and _is_cpu(node.value)
        elif isinstance(node, ast.arg):
            found[node.arg] = False
    return frozenset(name for name, is_cpu in found.items() if is_cpu)


def _is_cpu(node: ast.expr) -> bool:
    """`"cpu"`, or `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and node.args and _last(node.func) == "device":
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_use(node: ast.AST, on_cpu: frozenset[str]) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in _ATTRIBUTES
        case ast.Constant(value=str(text)):
            return text.partition(":")[0] in _GPUS
        case ast.Import(names=names):
            return any(each.name.partition(".")[0] in _LIBRARIES for each in names)
        case ast.ImportFrom(module=module, level=0, names=names):
            top = (module or "").partition(".")[0]
            taken = [each.name for each in names]
            is_trainer = any(name.endswith(("Trainer", "TrainingArguments")) for name in taken)
            return (
                top in _LIBRARIES
                or not _ATTRIBUTES.isdisjoint(taken)
                or (top == "transformers" and is_trainer)
            )
        case ast.Call(func=function, args=given, keywords=keywords):
            named = {each.arg: each.value for each in keywords if each.arg is not None}
            moved = [*given, *([named["device"]] if "device" in named else [])]
            is_move = _last(function) == "to"
            is_placed = is_move or "device" in named
            return not _KEYWORDS.isdisjoint(named) or (
                is_placed and any(_is_device(each, on_cpu) for each in (moved if is_move else moved[-1:]))
            )
    return False


def _is_device(node: ast.expr, on_cpu: frozenset[str]) -> bool:
    """Check for a device chosen by the code, other than the CPU; `x.device` follows another tensor."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int or (isinstance(value, str) and value.partition(":")[0] in _GPUS)
        case ast.Name(id=name):
            return name not in on_cpu and any(word in name.lower() for word in _NAMES)
        case ast.Attribute(value=ast.Name(id=holder), attr=name):
            return holder in _HOLDERS and any(word in name.lower() for word in _NAMES)
        case ast.Call(func=function, args=[first, *_]):
            return _last(function) == "device" and _is_device(first, on_cpu)
    return False


@dataclass(slots=True)
class GpuUse:
    """Use of a GPU by the files of one project, looked up once.

    read returns the text of a file and may raise Unreadable.
    """

    root: str
    read: Callable[[str], SourceText]
    _found: str | None = None
    _is_known: bool = False

    def file(self) -> str | None:
        """Return a file of the project with uses of a GPU; None without one.

        In a project of too many files, the first one that is not read counts as one that does.
        """
        if not self._is_known:
            self._found = next((path for path, is_use in self._files() if is_use), None)
            self._is_known = True
        return self._found

    def _files(self) -> Iterator[tuple[str, bool]]:
        count = 0
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(each for each in folders if each not in _OTHER_FOLDERS and each[0] != ".")
            for name in sorted(names):
                if not name.endswith((".py", ".ipynb")):
                    continue
                path = os.path.join(folder, name)
                count += 1
                if count > _MOST_FILES:
                    yield path, True
                    return
                yield path, any(uses_gpu(text) for text in self._texts(path))

    def _texts(self, path: str) -> Iterator[str]:
        try:
            if path.endswith(".ipynb"):
                for cell in cells(read_bytes(path)):
                    yield cell.text
            else:
                yield self.read(path).text
        except Unreadable:
            return
