"""Layers not replaced after `__init__`, as far as the project can show."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH119

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from shapefix.guards.handlers import first_handler
from shapefix.guards.tracing import ImportGraph, Tracing, tracing_in
from shapefix.interpreter.modules import called_name, children
from shapefix.light_dataclasses import dataclass
from shapefix.sources.project import files_below, project_root
from shapefix.sources.text import Unreadable, read_bytes

_MOST_FILES = 2_000
_MOST_BYTES = 30_000_000
_LONGEST_ROW = 5_000
"""Longer rows of a notebook are images in its outputs."""

_REPLACES_LAYERS = re.compile(
    rb"(?<![\w.])(?!self\.)\w[\w.]*\.(?:add_module|register_module)\(\s*(?![\"'])|init_inference"
    rb"|\bpeft\b|\bloralib\b|fuse_modules|fuse_conv_bn|register_forward_pre_hook|_modules\s*\["
    rb"|setattr\(\s*(?!self\b|\w*(?:args|opts?|options|cfg|config|hparams|params|namespace)\b)"
    rb"[\w.\[\]]+\s*,\s*(?![rb]?[\"'])"
    rb"|(?<![\w.])(?!self\b)\w+\.weight(?:\.data)?\s*=[^=]"
)
_DYNAMIC_ACCESS = frozenset({"__getattr__", "__getattribute__", "__setattr__"})


@dataclass(frozen=True)
class ProjectTexts:
    """The texts of the project of a file by path; None if there are too many to read."""

    path: str
    texts: tuple[tuple[str, bytes], ...] | None

    @classmethod
    def around(cls, path: str) -> ProjectTexts:
        """Read the Python files and notebooks of the project of a file."""
        found: list[tuple[str, bytes]] = []
        left = _MOST_BYTES
        for at in files_below(project_root(path, _folder(path))):
            if not at.endswith((".py", ".ipynb")):
                continue
            try:
                data = read_bytes(at, left)
            except Unreadable:
                return cls(path, None)
            left -= len(data)
            found.append((at, data))
            if len(found) > _MOST_FILES:
                return cls(path, None)
        return cls(path, tuple(found))

    @cached_property
    def obstacle(self) -> str | None:
        """The reason why this file gets no asserts; None if it may get some."""
        if self.texts is None:
            return "the project is too large to look for code that rejects asserts"
        for path, tracing in self._tracing.items():
            if tracing.mention is not None and self._graph.are_used_together(self.path, path):
                mention = f"{os.path.basename(path)} mentions `{tracing.mention}`"
                return f"{mention}: traced or scripted code may reject asserts"
        return next(self._handlers(), None)

    @cached_property
    def _graph(self) -> ImportGraph:
        return ImportGraph(project_root(self.path, _folder(self.path)), dict(self.texts or ()))

    @cached_property
    def _tracing(self) -> dict[str, Tracing]:
        return {
            path: found for path, data in self.texts or () if (found := tracing_in(path, data)) is not None
        }

    def is_scripted(self, name: str, is_function: bool) -> bool:
        """Check for a class named in scripted code, or a function within its reach: it compiles all calls."""
        return any(
            name in tracing.scripted or (is_function and self._graph.are_used_together(self.path, path))
            for path, tracing in self._tracing.items()
            if tracing.scripted
        )

    def _handlers(self) -> Iterator[str]:
        """Yield the handlers of RuntimeError within reach of this file."""
        for path, data in self.texts or ():
            row = first_handler(path, data)
            if row is not None and self._graph.are_used_together(self.path, path):
                yield f"{os.path.basename(path)}:{row} catches RuntimeError, but not AssertionError"

    @cached_property
    def layer_obstacle(self) -> str | None:
        """The reason why asserts of this project cannot name layers; None if they can."""
        return self._mention(_REPLACES_LAYERS, "has `{}`: it may replace layers")

    def _mention(self, pattern: re.Pattern[bytes], text: str) -> str | None:
        for path, data in self.texts or ():
            match = pattern.search(data)
            if match is not None:
                return (
                    f"{os.path.basename(path)} {text.format(match[0].decode('utf-8', 'replace').strip(' ='))}"
                )
        return None

    def may_replace(self, owner: str, name: str) -> bool:
        """Check for code with another layer, or another weight, for an attribute of a class."""
        quoted, cls = re.escape(name.encode()), re.escape(owner.encode())
        other = re.compile(
            rb"(?<![\w.])(?!self\." + quoted + rb"\s*=)[\w.\[\]()]+\." + quoted + rb"\s*(?::[^=\n]+)?=[^=]"
            rb"|\b"
            + quoted
            + rb"\b[^\n=]*\.(?:weight|in_features|in_channels|num_features|num_channels)\b[^\n=]*=[^=]"
            rb"|\b" + quoted + rb"\s*\[[^\n=]*\]\s*=[^=]"
            rb"|[\"']" + quoted + rb"[\"']\s*,"
            rb"|\." + quoted + rb"\.(?:append|insert|extend|pop|add_module|register_module)\("
            rb"|\bdel\s+[^\n]*\." + quoted + rb"\b"
        )
        derived = re.compile(rb"class\s+\w+\s*\([^)]*\b" + cls + rb"\b")
        own = re.compile(rb"\bself\." + quoted + rb"\s*(?::[^=\n]+)?=[^=]")
        rows = list(self._rows_with(name.encode()))
        if any(other.search(row) for row in rows):
            return True
        if sum(len(own.findall(row)) for row in rows) <= 1:
            return False
        return any(owner.encode() in data and derived.search(data) for _, data in self.texts or ())

    def _rows_with(self, word: bytes) -> Iterator[bytes]:
        """Yield the rows of all texts with a word, or a part of one, in them."""
        for _, data in self.texts or ():
            at = data.find(word)
            while at >= 0:
                start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                end = len(data) if end < 0 else end
                if end - start <= _LONGEST_ROW:
                    yield data[start:end]
                at = data.find(word, end)


def _folder(path: str) -> str | None:
    """Return the current folder for a file below it: the project of a file without a repository."""
    here = os.path.realpath(os.curdir)
    return here if os.path.realpath(path).startswith(here.rstrip(os.sep) + os.sep) else None


def constructions(cls: cst.ClassDef) -> dict[str, cst.Call]:
    """Return the attributes set by one statement only, `self.name = Layer(…)` at the top of `__init__`."""
    methods = [each for each in cls.body.body if isinstance(each, cst.FunctionDef)]
    if any(each.name.value in _DYNAMIC_ACCESS for each in methods) or any(
        _uses_setattr(each) for each in methods
    ):
        return {}
    initializers = [each for each in methods if each.name.value == "__init__"]
    if len(initializers) != 1:
        return {}
    found: dict[str, cst.Call] = {}
    for line in initializers[0].body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
                name = _own_attribute(statement.targets[0].target)
                if name is not None and isinstance(statement.value, cst.Call):
                    found[name] = statement.value
    written = list(_written(cls))
    return {name: call for name, call in found.items() if written.count(name) == 1}


def _own_attribute(target: cst.CSTNode) -> str | None:
    if (
        isinstance(target, cst.Attribute)
        and isinstance(target.value, cst.Name)
        and target.value.value == "self"
    ):
        return target.attr.value
    return None


def _written(node: cst.CSTNode) -> Iterator[str]:
    """Yield the attributes assigned below a node, and the methods defined there."""
    if isinstance(node, cst.FunctionDef):
        yield node.name.value
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.AsName)):
        target = node.name if isinstance(node, cst.AsName) else node.target
        yield from _names(target)
    if isinstance(node, cst.NamedExpr):
        yield from _names(node.target)
    if isinstance(node, cst.Del):
        yield from _names(node.target)
    for child in children(node):
        yield from _written(child)


def _names(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Attribute):
        yield target.attr.value
    elif isinstance(target, cst.Subscript):
        yield from _names(target.value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _names(element.value)


def _uses_setattr(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        if called_name(node) in ("setattr", "__setattr__", "add_module", "register_module"):
            return True
    if isinstance(node, cst.Attribute) and node.attr.value in ("__dict__", "_modules"):
        return True
    return any(_uses_setattr(child) for child in children(node))
