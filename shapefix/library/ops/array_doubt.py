"""Results of values with a kind in doubt: arrays of numpy have operators, slices and methods, too."""

from __future__ import annotations

from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value

_OF_ARRAYS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "cumsum", "flatten", "max", "mean", "min", "prod"}
    | {"ravel", "repeat", "reshape", "round", "sort", "squeeze", "std", "sum", "swapaxes", "var"}
)
"""Methods of tensors and of arrays."""


@after_call
def keep_doubt(call: Call, made: Value) -> None:
    """Make the result of an operator or method as doubtful as its operands are."""
    owner, _, name = call.name.rpartition(".")
    if owner != "operator" and (owner != "torch.Tensor" or name not in _OF_ARRAYS):
        return
    if not isinstance(made, TensorValue) or not made.certain:
        return
    given = (call.receiver, *call.arguments.positional)
    tensors = [each for each in given if isinstance(each, TensorValue)]
    if tensors and made not in tensors and not any(each.certain for each in tensors):
        made.certain = False
