"""Operations saving their result, or an operand, for the backward pass.

The tables were executed with torch 2.13: after a write into a listed tensor, `backward()` raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.saved_tensors import SavedTensor, note_saved, note_used_once
from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import Value, as_tensor

SAVED_RESULTS = frozenset(
    {
        "relu",
        "sigmoid",
        "tanh",
        "exp",
        "expm1",
        "softmax",
        "log_softmax",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "tan",
    }
)
"""Functions and methods whose gradient is computed from their result."""
SAVED_RESULTS_OF_LAYERS = frozenset(
    f"torch.nn.{name}" for name in ("ReLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax")
)
SAVED_OPERANDS = frozenset(
    {
        "pow",
        "square",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "abs",
        "gelu",
        "silu",
        "softplus",
        "logsigmoid",
    }
)
"""Functions and methods of one tensor whose gradient is computed from it."""
SAVED_INPUTS_OF_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "BatchNorm1d",
        "BatchNorm2d",
        "LayerNorm",
        "GELU",
        "SiLU",
        "MaxPool2d",
    )
)
"""Layers whose gradient, or that of their weight, is computed from their input."""
RECURRENT_LAYERS = frozenset(
    f"torch.nn.{name}" for name in ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")
)
"""Layers that save states and inputs of their own; all results share one graph."""
SAVED_FACTORS = frozenset({"mul", "matmul", "mm", "bmm"})
"""Products: each factor is saved if the other one requires a gradient."""
_SPACES = ("torch.", "operator.")


def note_saved_tensors(call: Call, made: Value) -> None:
    """Record the tensors saved by a function, if its result certainly carries a graph."""
    if not isinstance(made, TensorValue) or not made.graph or not call.name.startswith(_SPACES):
        return
    name = call.name.rpartition(".")[2].removesuffix("_")
    if name in SAVED_RESULTS:
        _note(call, made, made, is_result=True)
    elif name in SAVED_OPERANDS:
        _note(call, _operands(call)[0], made, is_result=False)
    elif name in SAVED_FACTORS:
        one, other = _operands(call)
        if other is not None and requires_grad(other):
            _note(call, one, made, is_result=False)
        if one is not None and requires_grad(one):
            _note(call, other, made, is_result=False)


after_call(note_saved_tensors)


def note_saved_by_layer(call: Call, name: str, given: Mapping[str, Value], made: Value) -> None:
    """Record the tensor saved by a layer of this class, if its result certainly carries a graph."""
    if isinstance(made, TupleValue):
        for part in made.items if name in RECURRENT_LAYERS else ():
            note_saved_by_layer(call, name, given, part)
        return
    if not isinstance(made, TensorValue) or not made.graph:
        return
    if name in SAVED_RESULTS_OF_LAYERS:
        _note(call, made, made, is_result=True)
    elif name in RECURRENT_LAYERS:
        note_used_once(call.ev, call.place, made)
    elif name in SAVED_INPUTS_OF_LAYERS:
        _note(call, as_tensor(given.get("input")), made, is_result=False)


def _operands(call: Call) -> tuple[TensorValue | None, TensorValue | None]:
    """First two tensors of a call, the object of a method first."""
    values = [*([] if call.receiver is None else [call.receiver]), *call.arguments.positional, None, None]
    return as_tensor(values[0]), as_tensor(values[1])


def _note(call: Call, tensor: TensorValue | None, made: TensorValue, *, is_result: bool) -> None:
    if tensor is None or (not is_result and tensor.storage is made.storage):
        return
    note_saved(call.ev, tensor, SavedTensor(call.place, tensor, made))
