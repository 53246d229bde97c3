"""Words of torch's exceptions for rejected layers."""

from __future__ import annotations

from shapefix.checks.context import CheckContext
from shapefix.diagnostics import ExpectedError
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import Unknown
from shapefix.tensors.errors import SizeMismatch, WindowTooLarge, WrongRank

_RECURRENT = ("RNN", "LSTM", "GRU")
_OF_FEATURES = {
    "Linear": "mat1 and mat2 shapes cannot be multiplied",
    "NonDynamicallyQuantizableLinear": "mat1 and mat2 shapes cannot be multiplied",
    **dict.fromkeys(_RECURRENT, "input.size(-1) must be equal to input_size"),
    **dict.fromkeys((f"{name}Cell" for name in _RECURRENT), "input has inconsistent input_size"),
}
_KERNEL = ExpectedError("RuntimeError", "Kernel size can't be greater than actual input size")
_OUTPUT = ExpectedError("RuntimeError", "Output size is too small")


def layer_error(event: OpRejected, context: CheckContext) -> ExpectedError | None:
    """Return the exception for a rejected layer; None if its words are not known."""
    error, name = event.error, event.function.rpartition(".")[2]
    if event.layer is None:
        return None
    if isinstance(error, SizeMismatch) and error.operand == 0:
        words = _of_size(event, name, context.text(error.have), context.text(error.want))
        return ExpectedError("RuntimeError", words) if words else None
    if isinstance(error, WrongRank) and error.operand == 0:
        return _of_rank(name, error)
    if isinstance(error, WindowTooLarge):
        return _KERNEL if name.startswith("Conv") else _OUTPUT if name[:7] in ("MaxPool", "AvgPool") else None
    return None


def _of_size(event: OpRejected, name: str, have: str, want: str) -> str:
    if name.startswith("Conv"):
        return f"expected input[...] to have {want} channels, but got {have} channels instead"
    if name.startswith("BatchNorm") and truth(event.settings.get("track_running_stats", Unknown())) is True:
        return f"running_mean should contain {have} elements not {want}"
    if name in ("LayerNorm", "RMSNorm"):
        return "Given normalized_shape=[...], expected input with shape [...]"
    return _OF_FEATURES.get(name, "")


def _of_rank(name: str, error: WrongRank) -> ExpectedError | None:
    wanted = [f"{rank}D" for rank in error.want]
    if name.startswith(("BatchNorm", "InstanceNorm")):
        return ExpectedError("ValueError", f"expected {' or '.join(wanted)} input (got {error.have}D input)")
    if name.startswith("Conv") and len(wanted) == 2:
        function = name.lower().replace("transpose", "_transpose")
        words = f"Expected {wanted[0]} (unbatched) or {wanted[1]} (batched) input to {function}"
        return ExpectedError("RuntimeError", words)
    return None
