"""Find the argument or the numbers in a script for the size of a batch or a sequence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BATCH = re.compile(r"(^|[-_.])(train|device|micro|mini|gpu)?[-_]?(batch|bs|bsz)([-_]?size)?($|[-_.])", re.I)
_LENGTH = re.compile(
    r"(^|[-_.])(max|seq|sequence|context|block|ctx|input)[-_]?((seq|sequence|target|source)[-_]?)?"
    r"(len|length|size|tokens|window)($|[-_.])|^(n_positions|n_ctx|seq_?len)$",
    re.I,
)
_NOT = re.compile(r"eval|val(id)?[-_]|test|accum|num|total|global|effective", re.I)


@dataclass(frozen=True)
class SourceNumber:
    """A number in the script: its name, its row from 1, and its offsets in bytes from 0."""

    name: str
    row: int
    start: int
    end: int


@dataclass(frozen=True)
class BatchSetting:
    """The setting of a size: an argument, numbers in the script, or, with neither, its loaders."""

    name: str
    value: int
    argument: int | None = None
    numbers: tuple[SourceNumber, ...] = ()

    @property
    def is_implicit(self) -> bool:
        """Whether neither the arguments nor the script set it explicitly."""
        return self.argument is None and not self.numbers

    def arguments(self, given: Sequence[str], new: int) -> list[str]:
        """The arguments of the script for another size."""
        changed = list(given)
        if self.argument is not None:
            head, separator, _ = changed[self.argument].rpartition("=")
            changed[self.argument] = f"{head}{separator}{new}"
        return changed

    def options(self, new: int) -> list[str]:
        """The options of the agent for another size."""
        if self.argument is not None:
            return []
        if self.numbers:
            edits = (f"{each.row}:{each.start}:{each.end}:{new}" for each in self.numbers)
            return [part for edit in edits for part in ("--rewrite", edit)]
        return ["--batch", str(self.value), str(new)]


def batch_setting(arguments: Sequence[str], source: str, size: int) -> BatchSetting:
    """The setting of the batch size; the loaders if nothing with such a name sets it."""
    return _setting(arguments, source, _BATCH, (size,)) or BatchSetting("batch_size", size)


def length_setting(arguments: Sequence[str], source: str, size: int) -> BatchSetting | None:
    """The setting of the sequence length, or of a length larger or smaller by 1, if there is one."""
    return _setting(arguments, source, _LENGTH, (size, size + 1, size - 1))


def _setting(
    arguments: Sequence[str], source: str, names: re.Pattern[str], sizes: Sequence[int]
) -> BatchSetting | None:
    for size in sizes:
        for number, name in _given(arguments, size):
            if _matches(name, names):
                return BatchSetting(name, size, argument=number)
        numbers = tuple(each for each in _numbers(source, size) if _matches(each.name, names))
        if numbers:
            return BatchSetting(numbers[0].name, size, numbers=numbers)
    return None


def _matches(name: str, names: re.Pattern[str]) -> bool:
    bare = name.lstrip("-")
    return names.search(bare) is not None and _NOT.search(bare) is None


def _given(arguments: Sequence[str], size: int) -> Iterator[tuple[int, str]]:
    """The arguments equal to a size: the position, and the name of the option as written."""
    for number, argument in enumerate(arguments):
        name, separator, value = argument.partition("=")
        if separator and value == str(size):
            yield number, name
        elif argument == str(size) and number and arguments[number - 1].startswith("-"):
            yield number, arguments[number - 1]


def _numbers(source: str, size: int) -> Iterator[SourceNumber]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        for name, value in _named(node):
            if isinstance(value, ast.Constant) and type(value.value) is int and value.value == size:
                assert value.end_col_offset is not None
                yield SourceNumber(name, value.lineno, value.col_offset, value.end_col_offset)


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The values assigned to names in a node."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, (ast.Name, ast.Attribute)):
                yield target.id if isinstance(target, ast.Name) else target.attr, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.Call):
        yield from ((each.arg, each.value) for each in node.keywords if each.arg)
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield from ((first.value, each.value) for each in node.keywords if each.arg == "default")
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        yield from zip(
            (each.arg for each in named[len(named) - len(node.defaults) :]), node.defaults, strict=True
        )
        pairs = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in pairs if value)
