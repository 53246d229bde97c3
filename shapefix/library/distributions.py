"""torch.distributions: sizes and graphs of samples, of their log-probabilities, and of entropies."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.domains.losses import ClassesRead
from shapefix.interpreter.calls import Arguments, Call, after_call
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, as_tensor
from shapefix.library.ops.graphs import note_graph
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import fitted
from shapefix.library.tensors import contiguous_result
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ZERO, Size
from shapefix.tensors.tensor_iterator import broadcast_sizes

CONTINUOUS = {
    "Normal": ("loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "Laplace": ("loc", "scale"),
    "Beta": ("concentration1", "concentration0"),
    "Gamma": ("concentration", "rate"),
    "Uniform": ("low", "high"),
}
"""Distributions of numbers with `rsample`, one for each element of the parameters."""
_PARAMETERS = "<parameters>"
"""Field of a distribution with the tensors of its parameters."""


def _name(distribution: str) -> str:
    return f"torch.distributions.{distribution}"


for _distribution in (*CONTINUOUS, "Categorical"):
    declare(_name(_distribution), "builtins.object")


@function(*map(_name, CONTINUOUS))
def made(call: Call) -> Value:
    """Distribution with tensors for all of its parameters; Unknown for numbers."""
    names = CONTINUOUS[call.name.rpartition(".")[2]]
    given = fitted((", ".join(names),), call.arguments)
    tensors = [as_tensor(given.value(name)) for name in names]
    held = [tensor for tensor in tensors if tensor is not None and tensor.layout is not None]
    if len(held) < len(names):
        return Unknown()
    return LibraryObject(call.name, {}, call.place, {_PARAMETERS: tuple(held)})


@function(_name("Categorical"))
def made_of_classes(call: Call) -> Value:
    """Distribution over the last dimension of probabilities or scores."""
    value = call.value(0, "probs") or call.arguments.keywords.get("logits")
    tensor = as_tensor(value)
    if tensor is None or tensor.layout is None or not tensor.layout.rank:
        return Unknown()
    if "logits" not in call.arguments.keywords and tensor.layout.rank > 1:
        call.ev.emit(ClassesRead(call.place, call.ev.calls, call.name, tensor, tensor.layout.rank - 1))
    return LibraryObject(call.name, {}, call.place, {_PARAMETERS: (tensor,)})


@after_call
def note_picked_class(call: Call, made: Value) -> None:
    """Note `x.gather(1, index)` with one index for each row."""
    if call.name not in ("torch.gather", "torch.Tensor.gather"):
        return
    given = [*([] if call.receiver is None else [call.receiver]), *call.arguments.positional]
    scores = as_tensor(given[0]) if given else None
    dim = given[1] if len(given) > 1 else call.arguments.keywords.get("dim")
    picked = made.layout if isinstance(made, TensorValue) else None
    is_one = picked is not None and picked.rank == 2 and picked.sizes[1].value == 1
    if scores is None or scores.layout is None or scores.layout.rank != 2 or not is_one:
        return
    if isinstance(dim, Constant) and dim.value in (1, -1):
        call.ev.emit(ClassesRead(call.place, call.ev.calls, call.name, scores, 1))


def _held(call: Call) -> tuple[TensorValue, ...]:
    owner = call.receiver
    held = owner.fields.get(_PARAMETERS) if isinstance(owner, LibraryObject) else None
    return held if isinstance(held, tuple) else ()


def _sizes(call: Call) -> tuple[Size, ...] | None:
    """Sizes of one sample; None for parameters without common sizes."""
    shapes = [tensor.layout.sizes for tensor in _held(call) if tensor.layout is not None]
    if call.receiver is not None and _is_categorical(call):
        return shapes[0][:-1]
    try:
        return broadcast_sizes(*shapes)
    except ShapeError:
        return None


def _is_categorical(call: Call) -> bool:
    return isinstance(call.receiver, LibraryObject) and call.receiver.kind == _name("Categorical")


def _result(
    call: Call, sizes: Sequence[Size] | None, of: Sequence[TensorValue], *, is_id: bool = False
) -> Value:
    """Tensor of these sizes, with the graph of its sources."""
    if sizes is None:
        return Unknown()
    dtype = "int64" if is_id else _held(call)[0].dtype
    result = contiguous_result(call, sizes, Op.RANDOM_SAMPLING, dtype=dtype, device=_held(call)[0].device)
    note_graph(Call(call.ev, call.name, call.place, Arguments(list(of))), result)
    return result


def _sampled(call: Call, of: Sequence[TensorValue]) -> Value:
    if not _held(call):
        return Unknown()
    if call.arguments.positional or call.arguments.keywords or call.arguments.open:
        # A number of samples, in front of the sizes.
        return Unknown()
    result = _result(call, _sizes(call), of, is_id=_is_categorical(call))
    classes = _held(call)[0].layout
    if isinstance(result, TensorValue) and _is_categorical(call) and classes is not None:
        result.extremes = ValueRange(ZERO, classes.sizes[-1] - 1, drawn=True)
    return result


for _distribution in CONTINUOUS:
    method(_name(_distribution), "rsample")(lambda call: _sampled(call, _held(call)))
for _distribution in (*CONTINUOUS, "Categorical"):
    method(_name(_distribution), "sample")(lambda call: _sampled(call, ()))


@method(_name("Categorical"), "entropy")
def entropy(call: Call) -> Value:
    return _result(call, _sizes(call), _held(call)) if _held(call) else Unknown()


@method(_name("Categorical"), "log_prob")
def log_probability(call: Call) -> Value:
    """Log-probability of each value: one for each element of a distribution of numbers."""
    value = as_tensor(call.value(0, "value"))
    own = _sizes(call) if _held(call) else None
    if value is None or value.layout is None or own is None:
        return Unknown()
    try:
        sizes = broadcast_sizes(value.layout.sizes, own)
    except ShapeError:
        return Unknown()
    return _result(call, sizes, (*_held(call), value))


for _distribution in CONTINUOUS:
    method(_name(_distribution), "entropy")(entropy)
    method(_name(_distribution), "log_prob")(log_probability)
