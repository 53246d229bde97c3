"""shapefix finds the crash, or the silent corruption, in PyTorch training code before the run does."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import Report

__version__ = "0.1.0"

_Value = TypeVar("_Value")


def reveal(value: _Value) -> _Value:
    """value itself, so that a run goes on as ever; `shapefix check` shows what it knows of it."""
    return value


def probe(model: Any, batch: Any, loss: Callable[[Any, Any], Any] | str | None = None) -> Report:
    """Call a model with a batch, and backward of its loss, here and now; returns a report of what happened.

    A mapping is handed over by its keys, a tuple or list by position, anything else alone. loss is a function
    of the output and the batch, the name of a key or attribute of the output, or None for `output.loss` or a
    number among the outputs; with a function, what forward does not ask for is left to it. What the model
    raises is in the report (`report.error`), and is not raised. Afterwards everything is as before. Raises
    TypeError for what is no model.
    """
    # By name: torch and the rules are loaded by nobody who does not ask.
    report: Report = import_module("shapefix.runtime.inprocess").probe(model, batch, loss)
    return report
