"""Words of torch's exceptions for rejected layers."""

from __future__ import annotations

from shapefix.checks.context import CheckContext
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import Unknown
from shapefix.tensors.errors import SizeMismatch, WindowTooLarge, WrongRank

_RECURRENT = ("RNN", "LSTM", "GRU")
_OF_FEATURES = {
    "Linear": "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    "NonDynamicallyQuantizableLinear": "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    **dict.fromkeys(_RECURRENT, "RuntimeError: input.size(-1) must be equal to input_size"),
    **dict.fromkeys(
        (f"{name}Cell" for name in _RECURRENT), "RuntimeError: input has inconsistent input_size"
    ),
}
_KERNEL = "RuntimeError: Kernel size can't be greater than actual input size"
_OUTPUT = "RuntimeError: Output size is too small"


def with_error(message: str, event: OpRejected, context: CheckContext) -> str:
    """Append the words of torch's exception to a message; without a change if they are unknown."""
    words = error_words(event, context)
    return f"{message}; {words}" if words else message


def error_words(event: OpRejected, context: CheckContext) -> str:
    """Return the type and the words of the exception for a rejected layer, or an empty string."""
    error, name = event.error, event.function.rpartition(".")[2]
    if event.layer is None:
        return ""
    if isinstance(error, SizeMismatch) and error.operand == 0:
        return _of_size(event, name, context.text(error.have), context.text(error.want))
    if isinstance(error, WrongRank) and error.operand == 0:
        return _of_rank(name, error)
    if isinstance(error, WindowTooLarge):
        return _KERNEL if name.startswith("Conv") else _OUTPUT if name[:7] in ("MaxPool", "AvgPool") else ""
    return ""


def _of_size(event: OpRejected, name: str, have: str, want: str) -> str:
    if name.startswith("Conv"):
        return f"RuntimeError: expected input[...] to have {want} channels, but got {have} channels instead"
    if name.startswith("BatchNorm") and truth(event.settings.get("track_running_stats", Unknown())) is True:
        return f"RuntimeError: running_mean should contain {have} elements not {want}"
    if name in ("LayerNorm", "RMSNorm"):
        return "RuntimeError: Given normalized_shape=[...], expected input with shape [...]"
    return _OF_FEATURES.get(name, "")


def _of_rank(name: str, error: WrongRank) -> str:
    wanted = [f"{rank}D" for rank in error.want]
    if name.startswith(("BatchNorm", "InstanceNorm")):
        return f"ValueError: expected {' or '.join(wanted)} input (got {error.have}D input)"
    if name.startswith("Conv") and len(wanted) == 2:
        function = name.lower().replace("transpose", "_transpose")
        return f"RuntimeError: Expected {wanted[0]} (unbatched) or {wanted[1]} (batched) input to {function}"
    return ""
