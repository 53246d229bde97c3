"""The setting of transformers' Trainer for a search of the batch size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.rows import RowEdits, indent_of, marked
from shapefix.light_dataclasses import dataclass

SETTING = "auto_find_batch_size"
_ARGUMENTS = re.compile(r"(?:^|\.)(?:\w*TrainingArguments|(?:SFT|DPO|Reward|ORPO|KTO|CPO)Config)$")


@dataclass(frozen=True)
class TrainerSettings:
    """A call of a class for the arguments of a Trainer."""

    call: ast.Call
    function: str
    row: int


@dataclass(frozen=True)
class SettingsLeftAlone:
    """Unchanged arguments of a Trainer, with the reason."""

    row: int
    reason: str


def trainer_settings(tree: ast.Module) -> Iterator[TrainerSettings | SettingsLeftAlone]:
    """Return the calls in a module for the arguments of a Trainer."""
    for function, call in _calls(tree, ""):
        if not _ARGUMENTS.search(ast.unparse(call.func)):
            continue
        if any(each.arg == SETTING for each in call.keywords):
            continue
        if any(each.arg is None for each in call.keywords):
            yield SettingsLeftAlone(call.lineno, f"pass `{SETTING}=True` among the unpacked arguments")
        else:
            yield TrainerSettings(call, function, call.lineno)


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for each in ast.iter_child_nodes(node):
        named = isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        inner = f"{function}.{each.name}".lstrip(".") if named else function  # type: ignore[attr-defined]
        if isinstance(each, ast.Call):
            yield function, each
        yield from _calls(each, inner)


def write_setting(edits: RowEdits, text: str, settings: TrainerSettings) -> None:
    """Add the setting to a call: in a row of its own if the keywords have rows of their own."""
    rows, call = rows_of(text), settings.call
    first = call.keywords[0] if call.keywords else None
    if first is not None and first.lineno > call.lineno:
        indent = indent_of(rows, first.lineno)
        if len(indent.encode()) == first.col_offset:
            edits.insert_above(first.lineno, marked(f"{indent}{SETTING}=True,"))
            return
    row = call.end_lineno or call.lineno
    data, end = rows[row - 1].rstrip("\r\n").encode(), call.end_col_offset or 0
    is_empty = not call.args and not call.keywords
    added = f"{SETTING}=True" if is_empty else f", {SETTING}=True"
    code = (data[: end - 1] + added.encode() + data[end - 1 :]).decode()
    edits.replace(row, marked(code))
