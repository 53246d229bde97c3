"""Handlers of exhausted memory for one file, and notes on the steps without."""

from __future__ import annotations

import ast
import re

from shapefix.guards.memory.accelerated import accelerated_function, write_accelerated
from shapefix.guards.memory.retries import HALVED_BATCH, scaling_obstacle, write_retries
from shapefix.guards.memory.rows import RowEdits
from shapefix.guards.memory.steps import StepLeftAlone, StepToRetry, training_steps
from shapefix.guards.memory.trainers import TrainerSettings, trainer_settings, write_setting
from shapefix.light_dataclasses import dataclass

_RANKS = re.compile(
    r"\b(DistributedDataParallel|init_process_group|FullyShardedDataParallel|fully_shard|deepspeed)\b"
)
_LIGHTNING = re.compile(r"^\s*(?:import|from)\s+(?:pytorch_)?lightning\b", re.MULTILINE)


@dataclass(frozen=True)
class MemoryHandler:
    """A handler in the new text: the function around it, the row of its step, and its kind."""

    function: str
    row: int
    kind: str


@dataclass(frozen=True)
class HandledText:
    """A text with handlers, and notes on steps without one."""

    text: str
    handlers: tuple[MemoryHandler, ...]
    notes: tuple[str, ...]


def with_handlers(text: str, name: str, fitting: int | None = None) -> HandledText:
    """Return a text with handlers around its training steps, or those of the function called name.

    fitting is the number of rows to begin with. Raises SyntaxError and tokenize.TokenError.
    """
    tree = ast.parse(text)
    edits = RowEdits()
    handlers: list[MemoryHandler] = []
    notes: list[str] = []
    for settings in trainer_settings(tree):
        if isinstance(settings, TrainerSettings):
            write_setting(edits, text, settings)
            handlers.append(MemoryHandler(settings.function, settings.row, "auto_find_batch_size"))
            notes.append(
                "the Trainer starts again with a smaller batch; the effective batch gets smaller, too, "
                "since `gradient_accumulation_steps` stays the same"
            )
        else:
            notes.append(f"line {settings.row}: {settings.reason}")
    unit = _unit(text)
    steps = [each for each in training_steps(tree) if _is_wanted(each, name)]
    accelerated = accelerated_function(tree)
    if accelerated is not None and isinstance(accelerated, StepLeftAlone):
        notes.append(_note(accelerated))
    elif accelerated is not None:
        write_accelerated(edits, text, accelerated, unit)
        handlers.append(MemoryHandler(accelerated.function, accelerated.row, "find_executable_batch_size"))
    elif found := _RANKS.search(text):
        if steps:
            notes.append(
                f"no handler: the file uses {found.group()}, and a rank that repeats its step would keep the "
                "others waiting"
            )
    else:
        retried: list[StepToRetry] = []
        for each in steps:
            obstacle = _obstacle(each)
            if isinstance(each, StepLeftAlone) or obstacle:
                notes.append(_note(StepLeftAlone(each.row, obstacle)))
            else:
                retried.append(each)
        if retried:
            write_retries(edits, text, tree, retried, unit, fitting)
            handlers += (MemoryHandler(each.function, each.row, HALVED_BATCH) for each in retried)
    if not handlers and not notes and _LIGHTNING.search(text):
        notes.append(
            "Lightning runs the step; its own search is `Tuner(trainer).scale_batch_size(model)` of "
            "lightning.pytorch.tuner"
        )
    return HandledText(edits.applied(text), tuple(handlers), tuple(dict.fromkeys(notes)))


def _obstacle(step: StepToRetry | StepLeftAlone) -> str:
    if isinstance(step, StepLeftAlone):
        return step.reason
    return scaling_obstacle(step.backward) if step.is_mean else ""


def _note(left: StepLeftAlone) -> str:
    return f"no handler for the step at line {left.row}: {left.reason}"


def _is_wanted(step: StepToRetry | StepLeftAlone, name: str) -> bool:
    return not name or step.function == name or step.function.startswith(f"{name}.")


def _unit(text: str) -> str:
    """Return the indentation of the first indented row after a header."""
    found = re.search(r":[ \t]*(?:#.*)?\r?\n([ \t]+)\S", text)
    return found[1] if found else "    "
