"""Words of torch's exceptions for rejected layers and operations."""

from __future__ import annotations

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import number_index
from shapefix.diagnostics import ExpectedError
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import LibraryObject, Unknown
from shapefix.tensors.errors import (
    IndexOutOfRange,
    SizeMismatch,
    TooManyIndices,
    WindowTooLarge,
    WrongDtype,
    WrongNumberOfElements,
    WrongRank,
)
from shapefix.tensors.ops import ARITHMETIC, BINARY_NAMES, COMPARISONS, Op

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


def _is_array(tensor: TensorValue) -> bool:
    """Whether a tensor is a view of a numpy array."""
    return tensor.origin is not None and tensor.origin.op in (Op.NUMPY_CREATION, Op.NUMPY_CONVERSION)


def _of_array(event: OpRejected, error: Exception) -> ExpectedError | None:
    """Return numpy's exception; None if its words are not known."""
    if isinstance(error, TooManyIndices) and error.rank:
        words = f"array is {error.rank}-dimensional, but {error.given} were indexed"
        return ExpectedError("IndexError", f"too many indices for array: {words}")
    target = [size.value for size in error.target] if isinstance(error, WrongNumberOfElements) else [None]
    if isinstance(error, WrongNumberOfElements) and None not in target and error.have.value is not None:
        shape = ",".join(map(str, target)) + ("," if len(target) == 1 else "")
        words = f"cannot reshape array of size {error.have.value} into shape ({shape})"
        return ExpectedError("ValueError", words)
    return None


_CATS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack"})
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "linear"})
_OPERATORS = frozenset((*ARITHMETIC, *COMPARISONS))
_BY_CLASS = frozenset({"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"})
_BY_ELEMENT = frozenset({"mse_loss", "MSELoss", "l1_loss", "L1Loss", "smooth_l1_loss", "SmoothL1Loss"})
_LOGITS = frozenset({"binary_cross_entropy_with_logits", "BCEWithLogitsLoss"})
_PROBABILITIES = frozenset({"binary_cross_entropy", "BCELoss"})


def torch_error(event: OpRejected, context: CheckContext) -> ExpectedError | None:
    """Return the exception for a rejected layer or operation; None if its words are not known."""
    space, _, name = event.function.rpartition(".")
    if name in _BY_CLASS | _BY_ELEMENT | _LOGITS | _PROBABILITIES:
        return _of_loss(event, name)
    if event.layer is not None:
        return layer_error(event, context)
    error = event.error
    if event.operands and _is_array(event.operands[0].tensor):
        return _of_array(event, error)
    if isinstance(error, WrongNumberOfElements) and name in ("view", "reshape"):
        target, have = [size.value for size in error.target], error.have.value
        shape = "..." if None in target else f"'{target}'"
        size = "..." if have is None else str(have)
        return ExpectedError("RuntimeError", f"shape {shape} is invalid for input of size {size}")
    if isinstance(error, TooManyIndices) and not error.rank and number_index(event.place.node) is not None:
        return ExpectedError("IndexError", "invalid index of a 0-dim tensor")
    if isinstance(error, TooManyIndices):
        return ExpectedError("IndexError", f"too many indices for tensor of dimension {error.rank}")
    if isinstance(error, IndexOutOfRange) and name == "embedding":
        return ExpectedError("IndexError", "index out of range in self")
    if isinstance(error, WrongRank) and name in _CATS:
        return ExpectedError("RuntimeError", "Tensors must have same number of dimensions")
    if not isinstance(error, SizeMismatch):
        return None
    if name in _CATS:
        return ExpectedError("RuntimeError", "Sizes of tensors must match except in dimension")
    if name == "stack":
        return ExpectedError("RuntimeError", "stack expects each tensor to be equal size")
    if name in _PRODUCTS:
        return _of_product(event, error, name)
    is_binary = name in _OPERATORS if space == "operator" else name in BINARY_NAMES
    return _of_elements(error) if is_binary else None


def dtype_error(event: OpRejected, error: WrongDtype) -> ExpectedError | None:
    """Return the exception for an operand of a rejected dtype; None if its words are not known."""
    name = event.function.rpartition(".")[2]
    words = ""
    if event.layer is not None and name in _RECURRENT:
        return ExpectedError("ValueError", "RNN input dtype ... does not match weight dtype")
    if isinstance(event.layer, LibraryObject) and (name == "Linear" or name.startswith("Conv")):
        known = event.layer.arguments
        # Without any known argument, `bias` may be one of the unknown ones.
        has_bias = truth(known["bias"]) if "bias" in known else True if known else None
        if name == "Linear" and has_bias is not None:
            words = _ONE_DTYPE if has_bias else _SAME_DTYPE
        elif has_bias:
            words = "Input type ... and bias type ... should be the same"
    elif name in ("CrossEntropyLoss", "cross_entropy") and error.operand == 1 and "int64" in error.want:
        words = "expected target dtype to be Long or Byte"
    elif name == "Embedding":
        words = "Expected tensor for argument #1 'indices' to have one of the following scalar types"
    elif name in ("mm", "matmul") and _are_matrices(event):
        words = _SAME_DTYPE
    return ExpectedError("RuntimeError", words) if words else None


_ONE_DTYPE = "mat1 and mat2 must have the same dtype"
_SAME_DTYPE = "expected m1 and m2 to have the same dtype"


def _are_matrices(event: OpRejected) -> bool:
    layouts = [operand.layout for operand in event.operands]
    return all(layout is not None and layout.rank == 2 for layout in layouts)


def _of_elements(error: SizeMismatch) -> ExpectedError | None:
    """Return the exception for two operands with incompatible sizes."""
    if error.other is None:
        return None
    a, b = (error.have, error.want) if error.operand < error.other else (error.want, error.have)
    if a.value is None or b.value is None:
        return ExpectedError("RuntimeError", "The size of tensor a ... must match the size of tensor b")
    words = f"The size of tensor a ({a.value}) must match the size of tensor b ({b.value})"
    return ExpectedError("RuntimeError", words)


def _of_product(event: OpRejected, error: SizeMismatch, name: str) -> ExpectedError | None:
    """Return the exception for two matrices with incompatible sizes."""
    if error.other is None or {error.operand, error.other} != {0, 1}:
        return None
    one, two = event.operands[0].layout, event.operands[1].layout
    if one is None or two is None or one.rank < 2 or two.rank < 2:
        return None
    dims = {error.operand: error.dim, error.other: error.other_dim}
    if name == "linear":
        return ExpectedError("RuntimeError", _OF_FEATURES["Linear"]) if two.rank == 2 else None
    if dims[0] != one.rank - 1 or dims[1] != two.rank - 2:
        return None
    if two.rank == 2:
        return ExpectedError("RuntimeError", _OF_FEATURES["Linear"])
    return ExpectedError("RuntimeError", "Expected size for first two dimensions of batch2 tensor to be")


def _of_loss(event: OpRejected, name: str) -> ExpectedError | None:
    """Return the exception for predictions and targets of a loss."""
    error = event.error
    layouts = [operand.layout for operand in event.operands[:2]]
    ranks = [layout.rank for layout in layouts if layout is not None]
    if len(ranks) < 2 or len(event.operands) > 2 or not isinstance(error, (SizeMismatch, WrongRank)):
        return None
    if name in _LOGITS:
        return ExpectedError("ValueError", "Target size ... must be the same as input size")
    if name in _PROBABILITIES:
        return ExpectedError("ValueError", "Using a target size ... that is different to the input size")
    if name in _BY_ELEMENT:
        return _of_elements(error) if isinstance(error, SizeMismatch) else None
    if isinstance(error, WrongRank):
        if ranks == [2, 2]:
            return ExpectedError(
                "RuntimeError", "0D or 1D target tensor expected, multi-target not supported"
            )
        return None
    sizes = [layout.sizes[0].value for layout in layouts if layout is not None and layout.rank]
    if error.dim == 0 and ranks == [2, 1] and None not in sizes:
        words = f"Expected input batch_size ({sizes[0]}) to match target batch_size ({sizes[1]})"
        return ExpectedError("ValueError", words)
    return None
