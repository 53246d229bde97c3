"""Precision: the default dtype, and contexts with automatic casts."""

from __future__ import annotations

from shapefix.domains.gradients import NO_GRAD
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.values import OpenedFile, Value
from shapefix.light_dataclasses import dataclass

_WITHOUT_CASTS = NO_GRAD | {
    "contextlib.suppress",
    "pytest.raises",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "tqdm.tqdm",
}
"""Contexts without casts; any other one may enter `torch.autocast`."""


@dataclass(eq=False, slots=True)
class Precision:
    """State of dtypes at this moment of a run."""

    default_dtype: str | None = "float32"
    """Dtype of floats created by torch, None if the code changed it."""
    casting: int = 0
    """Number of open contexts with possible casts, such as `torch.autocast`."""


@hooks.enter_context
def _enter(ev: Evaluator, value: Value) -> hooks.Exit | None:
    if (
        isinstance(value, OpenedFile)
        or (getattr(value, "kind", None) or getattr(value, "name", None)) in _WITHOUT_CASTS
    ):
        return None
    state = ev.state[Precision]
    state.casting += 1

    def leave() -> None:
        state.casting -= 1

    return leave
