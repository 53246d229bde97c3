"""shapefix finds the crash, or the silent corruption, in PyTorch training code before the run does."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import ProbeReport

__version__ = "0.1.0"

_Value = TypeVar("_Value")


def reveal(value: _Value) -> _Value:
    """Return value unchanged; `shapefix check` shows its known facts."""
    return value


def probe(model: Any, batch: Any, loss: Callable[[Any, Any], Any] | str | None = None) -> ProbeReport:
    """Run one forward and backward of a model in this process, and return a report.

    A mapping is passed by its keys, a tuple or list by position, anything else as one argument. loss is a
    function of the output and the batch, the name of a key or attribute of the output, or None for
    `output.loss` or a scalar among the outputs. With a function, parts of the batch that forward has no
    parameter for are not passed to it. An exception of the model is in `report.error`, and is not raised. The
    state of the model, random numbers and the batch are restored. Raises TypeError for an object
    that is not a model.
    """
    # Imported here, so that `import shapefix` loads neither torch nor the rules.
    report: ProbeReport = import_module("shapefix.runtime.inprocess").probe(model, batch, loss)
    return report


def load_ipython_extension(shell: Any) -> None:
    """Add `%shapefix`, `%%check` and `%%shapes` to IPython, for `%load_ext shapefix`."""
    import_module("shapefix.ipython.extension").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away, for `%unload_ext shapefix`."""
    import_module("shapefix.ipython.extension").unload(shell)
