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
    """Return the value unchanged; `shapefix check` shows what it knows about it."""
    return value


def probe(model: Any, batch: Any, loss: Callable[[Any, Any], Any] | str | None = None) -> Report:
    """Run forward and backward of a model with one batch in this process, and report what happens.

    A mapping is passed as keyword arguments, a tuple or list as positional arguments, anything else as one
    argument. loss is a function of the output and the batch, the name of a key or attribute of the output, or
    None for `output.loss` or a number among the outputs; with a function, batch keys that forward does not
    accept are left to it. An exception of the model is in the report (`report.error`) and is not raised. The
    state of the model is restored. Raises TypeError if model is not a module.
    """
    # Imported by name and late: `import shapefix` does not load torch or the rules.
    report: Report = import_module("shapefix.runtime.inprocess").probe(model, batch, loss)
    return report
