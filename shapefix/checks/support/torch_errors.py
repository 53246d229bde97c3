"""Words of torch's exceptions for rejected layers and operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import is_iterated, number_index
from shapefix.diagnostics import ExpectedError
from shapefix.domains.devices import DeviceMismatch
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import Constant, LibraryObject, Unknown
from shapefix.tensors.bounds import same
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.errors import (
    ClassesLast,
    IndexOutOfRange,
    NoSuchDimension,
    NotDivisible,
    ShapeError,
    SizeMismatch,
    TooManyIndices,
    WindowTooLarge,
    WrongDtype,
    WrongNumberOfElements,
    WrongParts,
    WrongRank,
)
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import ARITHMETIC, BINARY_NAMES, COMPARISONS, Op
from shapefix.tensors.polynomials import Size

_RECURRENT = ("RNN", "LSTM", "GRU")
_OF_FEATURES = {
    "Linear": "mat1 and mat2 shapes cannot be multiplied",
    "NonDynamicallyQuantizableLinear": "mat1 and mat2 shapes cannot be multiplied",
    **dict.fromkeys(_RECURRENT, "input.size(-1) must be equal to input_size"),
    **dict.fromkeys((f"{name}Cell" for name in _RECURRENT), "input has inconsistent input_size"),
}
EMBEDDED = ExpectedError("IndexError", "index out of range in self")
"""The exception of an embedding for a negative id, or one that is too large."""
STRIDED = ExpectedError("RuntimeError", "view size is not compatible with input tensor's size and stride")
"""The exception of a view across a stride gap."""
_KERNEL = ExpectedError("RuntimeError", "Kernel size can't be greater than actual input size")
_OUTPUT = ExpectedError("RuntimeError", "Output size is too small")
_MULTIPLES = {
    ("GroupNorm", "num_channels"): ExpectedError(
        "ValueError", "num_channels (...) must be divisible by num_groups (...)"
    ),
    ("Conv", "in_channels"): ExpectedError("ValueError", "in_channels must be divisible by groups"),
    ("Conv", "out_channels"): ExpectedError("ValueError", "out_channels must be divisible by groups"),
    ("PixelShuffle", "the channels"): ExpectedError(
        "RuntimeError", "pixel_shuffle expects its input's 'channel' dimension"
    ),
}
"""Exceptions for a number that must be a multiple, by layer and name of the number."""


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
    return _of_window(error, name)


def _of_window(error: ShapeError, name: str) -> ExpectedError | None:
    if isinstance(error, NotDivisible):
        return _MULTIPLES.get(("Conv" if name.startswith("Conv") else name, error.what))
    if not isinstance(error, WindowTooLarge):
        return None
    kind = name.lower().replace("_", "")
    return _KERNEL if kind.startswith("conv") else _OUTPUT if kind[:7] in ("maxpool", "avgpool") else None


def _of_size(event: OpRejected, name: str, have: str, want: str) -> str:
    if name.startswith("Conv"):
        sizes = _convolved(event, name)
        return f"expected input[{sizes}] to have {want} channels, but got {have} channels instead"
    if name.startswith("BatchNorm") and truth(event.settings.get("track_running_stats", Unknown())) is True:
        return f"running_mean should contain {have} elements not {want}"
    if name in ("LayerNorm", "RMSNorm"):
        return "Given normalized_shape=[...], expected input with shape [...]"
    return _OF_FEATURES.get(name, "")


def _convolved(event: OpRejected, name: str) -> str:
    """Return the sizes of the input of a convolution; `...` if they are unknown, or torch pads it first."""
    layout, padding, mode = event.operands[0].layout, *map(event.settings.get, ("padding", "padding_mode"))
    is_plain = mode is None or (isinstance(mode, Constant) and mode.value == "zeros")
    is_padded = not is_plain or (isinstance(padding, Constant) and isinstance(padding.value, str))
    is_batched = layout is not None and layout.rank == int(name[-2]) + 2
    return _numbers(layout) if is_batched and not is_padded else "..."


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
    if isinstance(error, TooManyIndices):
        words = f"array is {error.rank}-dimensional, but {error.given} were indexed"
        return ExpectedError("IndexError", f"too many indices for array: {words}")
    target = [size.value for size in error.target] if isinstance(error, WrongNumberOfElements) else [None]
    if isinstance(error, WrongNumberOfElements) and None not in target and error.have.value is not None:
        shape = ",".join(map(str, target)) + ("," if len(target) == 1 else "")
        words = f"cannot reshape array of size {error.have.value} into shape ({shape})"
        return ExpectedError("ValueError", words)
    return None


UNPACKING = "unpacking"
_RANKS = {
    ("mm", 0): "self must be a matrix",
    ("mm", 1): "mat2 must be a matrix",
    ("bmm", 0): "batch1 must be a 3D tensor",
    ("bmm", 1): "batch2 must be a 3D tensor",
    ("gather", 1): "Index tensor must have the same number of dimensions as input tensor",
    (
        "permute",
        0,
    ): "number of dimensions in the tensor input does not match the length",
}
"""Words for a wrong number of dimensions, by function and operand."""
_IN_PLACE = frozenset({"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"})
_CATS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "dstack", "row_stack"})
_SIZES = {
    **dict.fromkeys(_CATS, "Sizes of tensors must match except in dimension"),
    "stack": "stack expects each tensor to be equal size",
    "einsum": "which does not broadcast with previously seen size",
    "dot": "inconsistent tensor size, expected tensor [...] and src [...]",
}
"""Words for sizes that differ, by function."""
_EXPANSIONS = frozenset({"expand", "expand_as", "broadcast_to", "setitem"})
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "linear"})
_OPERATORS = frozenset((*ARITHMETIC, *COMPARISONS))
_BY_CLASS = frozenset({"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"})
_BY_ELEMENT = frozenset({"mse_loss", "MSELoss", "l1_loss", "L1Loss", "smooth_l1_loss", "SmoothL1Loss"})
_LOGITS = frozenset({"binary_cross_entropy_with_logits", "BCEWithLogitsLoss"})
_PROBABILITIES = frozenset({"binary_cross_entropy", "BCELoss"})


def torch_error(event: OpRejected, context: CheckContext, sizes: bool = True) -> ExpectedError | None:
    """Return the exception for a rejected layer or operation; None if its words are not known.

    sizes is false if those of the event are only an example.
    """
    name = event.function.rpartition(".")[2]
    if name in _BY_CLASS | _BY_ELEMENT | _LOGITS | _PROBABILITIES:
        return _of_loss(event, name)
    error = event.error
    if name in _RECURRENT and isinstance(error, (SizeMismatch, WrongRank)) and error.operand:
        return _of_state(event, error, name, sizes)
    if event.layer is not None:
        return layer_error(event, context)
    if event.operands and _is_array(event.operands[0].tensor):
        return _of_array(event, error)
    if isinstance(error, WrongNumberOfElements) and name in ("view", "reshape"):
        target, have = [size.value for size in error.target], error.have.value
        shape = "..." if None in target else f"'{target}'"
        size = "..." if have is None or not sizes else str(have)
        return ExpectedError("RuntimeError", f"shape {shape} is invalid for input of size {size}")
    if isinstance(error, WrongParts) and name in ("split", "split_with_sizes"):
        return ExpectedError("RuntimeError", "split_with_sizes expects split_sizes to sum exactly to")
    if isinstance(error, (IndexOutOfRange, NoSuchDimension, TooManyIndices)):
        return _of_index(event, error)
    if isinstance(error, WrongRank):
        return _of_dimensions(event, error)
    if isinstance(error, SizeMismatch):
        return _of_mask(event) if name == "getitem" else _of_sizes(event, error, sizes)
    return _of_window(error, name)


def _of_mask(event: OpRejected) -> ExpectedError | None:
    """Return torch's exception for a mask of another shape than the tensor."""
    if len(event.operands) != 2 or not event.operands[0].tensor.certain:
        return None
    shapes = []
    for operand in reversed(event.operands):
        sizes = [size.value for size in operand.layout.sizes] if operand.layout is not None else [None]
        if None in sizes:
            return ExpectedError("IndexError", "The shape of the mask")
        shapes.append(sizes)
    mask, indexed = shapes
    at = next((i for i, (a, b) in enumerate(zip(mask, indexed, strict=False)) if a != b), 0)
    words = (
        f"The shape of the mask {mask} at index {at} does not match the shape of the indexed tensor {indexed}"
    )
    return ExpectedError("IndexError", f"{words} at index {at}")


def _of_index(
    event: OpRejected, error: IndexOutOfRange | NoSuchDimension | TooManyIndices
) -> ExpectedError | None:
    node = event.place.node
    if isinstance(error, NoSuchDimension):
        return ExpectedError("IndexError", "Dimension out of range")
    if event.function.endswith(".embedding"):
        return EMBEDDED
    if not event.operands[0].tensor.certain:
        # Arrays of numpy have other words.
        return None
    if isinstance(error, TooManyIndices):
        if not error.rank and is_iterated(event.place):
            return ExpectedError("TypeError", "iteration over a 0-d tensor")
        number = None if error.rank else number_index(node)
        if number is not None:
            words = f"index {number} is out of bounds for dimension 0 with size 0"
            return ExpectedError("IndexError", words if number else "invalid index of a 0-dim tensor")
        return ExpectedError("IndexError", f"too many indices for tensor of dimension {error.rank}")
    if not isinstance(node, cst.Subscript):
        return None
    index, size = _number(error.index), _number(error.size)
    words = f"index {index} is out of bounds for dimension {error.dim} with size {size}"
    return ExpectedError("IndexError", words)


def unpacking_error(have: int, want: int) -> ExpectedError:
    """Return the exception for a number of values unpacked into another number of names."""
    much, got = ("too many", "") if have > want else ("not enough", f", got {have}")
    return ExpectedError("ValueError", f"{much} values to unpack (expected {want}{got})")


def _of_dimensions(event: OpRejected, error: WrongRank) -> ExpectedError | None:
    name = event.function.rpartition(".")[2]
    if event.function == UNPACKING:
        return unpacking_error(error.have, error.want[0])
    words = _RANKS.get((name, error.operand), "")
    if name == "dot" and None not in (ranks := _ranks(event)):
        words = "1D tensors expected, but got {}D and {}D tensors".format(*ranks)
    if name in _IN_PLACE:
        shape = _numbers(event.operands[0].layout)
        words = f"output with shape [{shape}] doesn't match the broadcast shape [...]"
    if name in _CATS:
        words = "Tensors must have same number of dimensions"
    return ExpectedError("RuntimeError", words) if words else None


def _of_sizes(event: OpRejected, error: SizeMismatch, sizes: bool) -> ExpectedError | None:
    space, _, name = event.function.rpartition(".")
    if name in _SIZES:
        return ExpectedError("RuntimeError", _SIZES[name])
    if name in _PRODUCTS:
        return _of_product(event, error, name)
    if name in _EXPANSIONS:
        words = "The expanded size of the tensor ({}) must match the existing size ({})"
        return ExpectedError("RuntimeError", words.format(_number(error.want), _number(error.have)))
    is_operator = space == "operator"
    if name in _IN_PLACE if is_operator else name.endswith("_"):
        return _of_target(event, error, sizes)
    if name == "masked_fill":
        return _of_elements(error, sizes=False)
    is_binary = name in _OPERATORS if is_operator else name in (*BINARY_NAMES, "pad_sequence")
    return _of_elements(error, sizes and _is_compared_first(event, error)) if is_binary else None


def _number(size: Size) -> int | str:
    return "..." if size.value is None else size.value


def _numbers(shape: Layout | Sequence[Size] | None) -> str:
    """Return the sizes of a tensor, `64, 1`; `...` unless all are known."""
    sizes = shape.sizes if isinstance(shape, Layout) else shape
    known = [None] if sizes is None else [size.value for size in sizes]
    return "..." if None in known else ", ".join(map(str, known))


def _of_target(event: OpRejected, error: SizeMismatch, sizes: bool) -> ExpectedError | None:
    """Return the exception for an in-place operation on an operand of another size."""
    if error.other is None or {error.operand, error.other} != {0, 1}:
        return None
    own = error.have if error.operand == 0 else error.want
    if own.value == 1:
        shape = _numbers(event.operands[0].layout) if sizes else "..."
        words = f"output with shape [{shape}] doesn't match the broadcast shape [...]"
        return ExpectedError("RuntimeError", words)
    return _of_elements(error, sizes and _is_compared_first(event, error))


def _is_compared_first(event: OpRejected, error: SizeMismatch) -> bool:
    """Whether torch compares these sizes first; it begins at the last dimension, perhaps unequal, too."""
    layouts = [event.operands[number].layout for number in (error.operand, error.other or 0)]
    if layouts[0] is None or layouts[1] is None:
        return True
    after = layouts[0].rank - error.dim - 1
    pairs = zip(reversed(layouts[0].sizes), reversed(layouts[1].sizes), strict=False)
    return all(same(one, two) or 1 in (one.value, two.value) for one, two in islice(pairs, after))


def _of_state(event: OpRejected, error: SizeMismatch | WrongRank, name: str, sizes: bool) -> ExpectedError:
    """Return the exception for the hidden state of a recurrent layer."""
    if isinstance(error, WrongRank):
        rank = error.want[0]
        kind = "batched" if rank == 3 else "unbatched"
        states, got = ("hx and cx", "(...) tensors") if name == "LSTM" else ("hx", f"{error.have}-D tensor")
        words = f"For {kind} {rank}-D input, {states} should also be {rank}-D but got {got}"
        return ExpectedError("RuntimeError", words)
    state = f"hidden[{error.operand - 1}]" if name == "LSTM" else "hidden"
    given = event.operands[error.operand].layout if sizes and error.operand < len(event.operands) else None
    have = want = None
    if given is not None:
        have = [error.have if dim == error.dim else size for dim, size in enumerate(given.sizes)]
        want = [error.want if dim == error.dim else size for dim, size in enumerate(given.sizes)]
        if given.rank == 3 and error.dim == 0 and given.sizes[1] == error.want:
            # Layers and batch are swapped: torch states both sizes.
            want[1] = given.sizes[0]
    return ExpectedError("RuntimeError", f"Expected {state} size ({_numbers(want)}), got [{_numbers(have)}]")


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
    elif name in _PROBABILITIES and error.operand == 1 and not is_floating(error.have):
        kinds = (error.have, event.operands[0].tensor.dtype or "")
        words = "Found dtype {} but expected {}".format(*(_SCALARS.get(each, "...") for each in kinds))
    elif name in _LOGITS and error.operand == 1 and not is_floating(error.have):
        words = "result type ... can't be cast to the desired output type ..."
    elif name in ("CrossEntropyLoss", "cross_entropy") and error.operand == 1 and "int64" in error.want:
        words = "expected target dtype to be Long or Byte"
    elif name in _OF_FLOATS:
        words = _OF_FLOATS[name]
    elif name == "Embedding":
        words = "Expected tensor for argument #1 'indices' to have one of the following scalar types"
    elif name in ("mm", "matmul") and _ranks(event) == [2, 2]:
        words = _SAME_DTYPE
    elif name == "matmul" and _ranks(event) == [2, 1]:
        words = "addmv input tensors must have the same dtype"
    return ExpectedError("RuntimeError", words) if words else None


def device_error(event: DeviceMismatch) -> ExpectedError | None:
    """Return the exception for operands, or an input and weights, on two devices; None for unknown words.

    Convolutions, recurrent layers and indexing check it themselves; other operations of torch share the
    words, and so do models of transformers, which begin with the embedding of token ids.
    """
    space, _, name = event.function.rpartition(".")
    words = "Expected all tensors to be on the same device"
    if space == "torch.nn" and name.startswith("Conv"):
        words = "Input type (...) and weight type (...) should be the same"
    elif space == "torch.nn" and name in _RECURRENT:
        other = "parameter" if {event.here, event.there} <= {None, 0} else "hidden"
        words = f"Input and {other} tensors are not at the same device"
    elif event.function == "operator.getitem":
        words = "indices should be either on cpu or on the same device as the indexed tensor"
    elif not event.function.startswith(("torch.", "operator.")) and not _gets_ids(event):
        return None
    return ExpectedError("RuntimeError", words)


def _gets_ids(event: DeviceMismatch) -> bool:
    number = event.there if event.here is None else event.here
    return number is not None and event.operands[number].name == "input_ids"


_OF_FLOATS = {
    "mean": "mean(): could not infer output dtype. Input dtype must be either a floating point",
    "nanmean": "nanmean(): expected input to have floating point or complex dtype",
    "std": "std and var only support floating point and complex dtypes",
    "var": "std and var only support floating point and complex dtypes",
    "norm": "linalg.vector_norm: Expected a floating point or complex tensor as input",
}
_SCALARS = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
}
"""Names of dtypes in exceptions."""
_ONE_DTYPE = "mat1 and mat2 must have the same dtype"
_SAME_DTYPE = "expected m1 and m2 to have the same dtype"


def _ranks(event: OpRejected) -> list[int | None]:
    return [None if each.layout is None else each.layout.rank for each in event.operands]


def _of_elements(error: SizeMismatch, sizes: bool) -> ExpectedError | None:
    """Return the exception for two operands with incompatible sizes."""
    if error.other is None:
        return None
    a, b = (error.have, error.want) if error.operand < error.other else (error.want, error.have)
    if a.value is None or b.value is None or not sizes:
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
    if len(ranks) < 2 or len(event.operands) > 2:
        return None
    if not isinstance(error, (SizeMismatch, WrongRank, ClassesLast)):
        return None
    given, target = ("..." if "." in text else f"torch.Size([{text}])" for text in map(_numbers, layouts))
    if name in _LOGITS:
        words = f"Target size ({target}) must be the same as input size ({given})"
        return ExpectedError("ValueError", words)
    if name in _PROBABILITIES:
        words = f"Using a target size ({target}) that is different to the input size ({given})"
        return ExpectedError("ValueError", words)
    if name in _BY_ELEMENT:
        if not isinstance(error, SizeMismatch):
            return None
        return _of_elements(error, _is_compared_first(event, error))
    if isinstance(error, ClassesLast):
        words = "Expected target size [...], got [...]"
        return ExpectedError("RuntimeError", words) if ranks[0] == 3 else None
    if isinstance(error, WrongRank):
        if ranks == [4, 4]:
            words = "only batches of spatial targets supported (3D tensors) but got targets of dimension: 4"
            return ExpectedError("RuntimeError", words)
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
