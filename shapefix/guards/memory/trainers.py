"""The setting of transformers' Trainer for a search of the batch size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.keywords import add_keyword
from shapefix.guards.memory.rows import RowEdits, marked
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
        if not is_trainer_arguments(ast.unparse(call.func)):
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


def is_trainer_arguments(function: str) -> bool:
    """Whether a called function is a class for the arguments of a Trainer."""
    return _ARGUMENTS.search(function) is not None


def write_setting(edits: RowEdits, text: str, settings: TrainerSettings) -> None:
    """Add the setting to a call."""
    add_keyword(edits, rows_of(text), settings.call, f"{SETTING}=True", marked)
