"""Find out whether a project uses a GPU: moves to a device, by the code or by a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from itertools import islice

from shapefix.sources.constructions import may_move
from shapefix.sources.importers import ImportStatement, distances, references_of
from shapefix.sources.project import Project, files_below
from shapefix.sources.text import SourceText, Unreadable

_MOST_FILES = 4000
_MOST_USERS = 100
"""Maximum number of files with a use of a GPU whose importers are looked at."""
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
_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel"})
_OF_CUDA = ("amp", "set_device", "Tensor")
"""Ends of the names in torch.cuda that use a GPU; others ask for one, or seed it."""
_SWITCHES = frozenset({"set_default_device", "set_default_tensor_type", "autocast"})
_KEYWORDS = frozenset({"device_map", "device_ids", "gpus", "n_gpu", "devices"})
_HOLDERS = frozenset(
    {"self", "cls", "args", "arg", "opt", "opts", "cfg", "config", "conf", "hparams", "params"}
)
_ON_CPU = {"Trainer": ("accelerator",), "TrainingArguments": ("use_cpu", "no_cuda")}
"""Arguments that keep a training on the CPU, by the class that takes them."""
_WITH_SETTINGS = frozenset({"args", "model"})
"""Arguments of a trainer of transformers, which has its settings in another object."""
_OF_TRAINERS = frozenset({"lightning", "pytorch_lightning", "transformers"})
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
    stays = _trains_on_cpu(nodes)
    return any(_is_use(node, on_cpu) and not (stays and _is_trainer(node)) for node in nodes)


def _trains_on_cpu(nodes: list[ast.AST]) -> bool:
    """Check that each trainer of a file states the CPU: `Trainer(accelerator="cpu")`."""
    made = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and _last(node.func) in _ON_CPU
        and _WITH_SETTINGS.isdisjoint(each.arg for each in node.keywords)
    ]
    return bool(made) and all(
        any(
            each.arg in _ON_CPU[_last(node.func)]
            and isinstance(each.value, ast.Constant)
            and each.value.value in ("cpu", True)
            for each in node.keywords
        )
        for node in made
    )


def _is_trainer(node: ast.AST) -> bool:
    """Check for a trainer, or the import of its library."""
    if isinstance(node, ast.Call):
        return _last(node.func) in _ON_CPU
    if isinstance(node, ast.Import):
        return all(each.name.partition(".")[0] in _OF_TRAINERS for each in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _OF_TRAINERS


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


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_use(node: ast.AST, on_cpu: frozenset[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Attribute(attr="cuda"), attr=name):
            return name.endswith(_OF_CUDA)
        case ast.Attribute(attr=name):
            return name in _WRAPPERS
        case ast.Import(names=names):
            return any(each.name.partition(".")[0] in _LIBRARIES for each in names)
        case ast.ImportFrom(module=module, level=0, names=names):
            top = (module or "").partition(".")[0]
            taken = [each.name for each in names]
            is_trainer = any(name.endswith(("Trainer", "TrainingArguments")) for name in taken)
            return (
                top in _LIBRARIES or not _WRAPPERS.isdisjoint(taken) or (top == "transformers" and is_trainer)
            )
        case ast.Call(func=function, args=given, keywords=keywords):
            if isinstance(function, ast.Attribute) and function.attr in _GPUS:
                return True
            if _last(function) in _SWITCHES and given:
                return not _is_cpu(given[0])
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
        case ast.IfExp(body=body, orelse=other):
            return _is_device(body, on_cpu) or _is_device(other, on_cpu)
        case ast.Name(id=name):
            return name not in on_cpu and any(word in name.lower() for word in _NAMES)
        case ast.Attribute(value=ast.Name(id=holder), attr=name):
            return holder in _HOLDERS and any(word in name.lower() for word in _NAMES)
        case ast.Call(func=function, args=[first, *_]):
            return _last(function) == "device" and _is_device(first, on_cpu)
    return False


def is_script(text: str) -> bool:
    """Check whether a file computes something when it is run, and not only on import."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(
        isinstance(node, (ast.For, ast.While, ast.With))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.If) and "__name__" in {_last(each) for each in ast.walk(node.test)})
        for node in body
    )


class GpuUse:
    """Use of a GPU by the files of one project, each read once.

    read returns the text of a file and may raise Unreadable.
    """

    def __init__(self, project: Project, read: Callable[[str], SourceText]) -> None:
        self._project = project
        self._read = read
        self._texts: dict[str, str] = {}
        self._uses: dict[str, bool] = {}
        self._files: tuple[str, ...] | None = None
        self._references: dict[str, tuple[ImportStatement, ...]] | None = None

    def forget(self, path: str) -> None:
        """Drop the text of a changed file."""
        self._texts.pop(path, None)
        self._uses.pop(path, None)
        if self._references is not None and path in self._project_files():
            self._references.pop(path, None)
            self._references.update(references_of((path,), lambda each: self._text(each).encode()))

    def user(self, path: str, text: str, read_with: Collection[str]) -> str | None:
        """Return a file with a use of a GPU for the file at path; None without one.

        text is that of the file. The result is the file itself, one of read_with, the files that it imports,
        or one that imports it. For a file that is neither a script nor imported by another one it may be any
        file: some are loaded by name.
        """
        if uses_gpu(text):
            return path
        files = self._project_files()
        if len(files) > _MOST_FILES:
            return path
        related = [each for each in sorted(read_with) if each.endswith(".py")]
        importing = distances(self._project, (path,), self._imports()).keys() - {path}
        if not importing and not is_script(text):
            importing = set(files)
        return next((each for each in (*related, *sorted(importing)) if self._uses_gpu(each)), None)

    def mover(self, path: str, text: str, name: str) -> str | None:
        """Return a file with a possible move of objects of a class to a GPU; None without one.

        path and text are those of the file with the class. The file itself is the result, too, if no file
        constructs one: a class may be there for other projects.
        """
        files = self._project_files()
        if len(files) > _MOST_FILES:
            return path
        moves = {path: may_move(text, name, is_own=True)}
        for each in files:
            if each not in moves:
                moves[each] = may_move(self._text(each), name, is_own=False)
        moving = [each for each, moved in moves.items() if moved]
        if moving:
            return path if path in moving and uses_gpu(text) else self._user_of(moving)
        return path if all(moved is None for moved in moves.values()) else None

    def _user_of(self, moving: list[str]) -> str | None:
        """Return one of these files with a use of a GPU, or a neighbor of it by import."""
        importing = distances(self._project, moving, self._imports())
        found = next((each for each in (*moving, *sorted(importing)) if self._uses_gpu(each)), None)
        if found is not None:
            return found
        users = (each for each in self._project_files() if self._uses_gpu(each))
        return next(
            (
                each
                for each in islice(users, _MOST_USERS)
                if not distances(self._project, (each,), self._imports()).keys().isdisjoint(importing)
            ),
            None,
        )

    def _imports(self) -> dict[str, tuple[ImportStatement, ...]]:
        if self._references is None:
            self._references = references_of(self._project_files(), lambda each: self._text(each).encode())
        return self._references

    def _project_files(self) -> tuple[str, ...]:
        if self._files is None:
            python = (each for each in files_below(self._project.root) if each.endswith((".py", ".ipynb")))
            self._files = tuple(islice(python, _MOST_FILES + 1))
        return self._files

    def _uses_gpu(self, path: str) -> bool:
        if path not in self._uses:
            self._uses[path] = uses_gpu(self._text(path))
        return self._uses[path]

    def _text(self, path: str) -> str:
        """Return the text of a file; empty for an unreadable file."""
        if path not in self._texts:
            try:
                text = self._read(path).text
            except Unreadable:
                text = ""
            self._texts[path] = text
        return self._texts[path]
