"""shapefix finds the crash, or the silent corruption, in PyTorch training code before the run does."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from shapefix.api import check, check_source, diagnose, shapes
    from shapefix.runtime.inprocess import ProbeReport

__version__ = "0.1.0"
__all__ = ["check", "check_source", "diagnose", "probe", "reveal", "shapes"]

_Value = TypeVar("_Value")


def __getattr__(name: str) -> Any:
    # Imported on first use, so that `import shapefix` loads neither the syntax tree nor the rules.
    if name in ("check", "check_source", "diagnose", "shapes"):
        return getattr(import_module("shapefix.api"), name)
    raise AttributeError(f"module 'shapefix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


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
