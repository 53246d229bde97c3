"""Settings for the input and output sizes of layers, and edits of them."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import layer_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Edit
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import called_name
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import InstanceValue, LibraryObject, Value, as_size
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.errors import SizeMismatch


@dataclass(frozen=True)
class Setting:
    """Parameter of a layer's constructor for a size of its input or output: its name and position.

    The size must be divisible by the parameter named parts, if it is set.
    """

    name: str
    position: int
    parts: str = ""


_NN = "torch.nn."
_RECURRENT = ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")
_CONVOLUTIONS = [f"{kind}{rank}d" for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)]
_BATCH_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
_INSTANCE_NORMS = ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")

FEATURES: dict[str, tuple[Setting, ...]] = {
    f"{_NN}Linear": (Setting("in_features", 0),),
    f"{_NN}modules.linear.NonDynamicallyQuantizableLinear": (Setting("in_features", 0),),
    f"{_NN}Bilinear": (Setting("in1_features", 0), Setting("in2_features", 1)),
    **{f"{_NN}{kind}": (Setting("input_size", 0),) for kind in _RECURRENT},
    f"{_NN}MultiheadAttention": (
        Setting("embed_dim", 0, "num_heads"),
        Setting("kdim", 6),
        Setting("vdim", 7),
    ),
    f"{_NN}TransformerEncoderLayer": (Setting("d_model", 0, "nhead"),),
    f"{_NN}TransformerDecoderLayer": (Setting("d_model", 0, "nhead"),) * 2,
    f"{_NN}Transformer": (Setting("d_model", 0, "nhead"),) * 2,
}
"""By layer: the setting of the last size, for each of its input tensors."""

CHANNELS = {f"{_NN}{kind}": Setting("in_channels", 0, "groups") for kind in _CONVOLUTIONS}
"""By layer: the setting of the input channels."""

NORMS = {
    **{f"{_NN}{kind}": Setting("num_features", 0) for kind in (*_BATCH_NORMS, *_INSTANCE_NORMS)},
    f"{_NN}GroupNorm": Setting("num_channels", 1, "num_groups"),
    f"{_NN}LayerNorm": Setting("normalized_shape", 0),
    f"{_NN}RMSNorm": Setting("normalized_shape", 0),
}
"""By normalization layer: the setting of the features."""

GIVES = {
    f"{_NN}Linear": Setting("out_features", 1),
    f"{_NN}LazyLinear": Setting("out_features", 0),
    f"{_NN}Bilinear": Setting("out_features", 2),
    f"{_NN}Embedding": Setting("embedding_dim", 1),
    f"{_NN}EmbeddingBag": Setting("embedding_dim", 1),
    **{f"{_NN}{kind}": Setting("hidden_size", 1) for kind in _RECURRENT},
    **{f"{_NN}{kind}": Setting("out_channels", 1) for kind in _CONVOLUTIONS},
    **{f"{_NN}Lazy{kind}": Setting("out_channels", 0) for kind in _CONVOLUTIONS},
}
"""By layer: the setting of the output's last size, or of its channels."""


def taken_by(event: OpRejected) -> Setting | None:
    """Return the setting for the expected size of a layer's operand, or None."""
    error = event.error
    if not isinstance(error, SizeMismatch) or error.other is not None:
        return None
    features = FEATURES.get(event.function, ())
    if features:
        found = features[error.operand] if error.operand < len(features) else None
        if (
            found is not None
            and found.name in ("kdim", "vdim")
            and as_size(event.settings[found.name]) is None
        ):
            return features[0]
        return found
    return None if error.operand else CHANNELS.get(event.function) or NORMS.get(event.function)


def chosen_by(layer: Value | None, dim: int) -> Setting | None:
    """Return the setting for the output size in dimension dim, counted from the end, or None."""
    found = GIVES.get(kind_of(layer))
    if found is None:
        return None
    own = -int(kind_of(layer)[-2]) - 1 if found.name == "out_channels" else -1
    return found if dim == own else None


def from_end(event: OpRejected, error: SizeMismatch) -> int:
    """Return the dimension of an error, counted from the end if the rank is known."""
    layout = event.operands[error.operand].layout
    return error.dim if error.dim < 0 or layout is None else error.dim - layout.rank


def has_batch_second(layer: Value | None) -> bool:
    """Whether a recurrent layer or an attention was certainly created without `batch_first=True`."""
    if not isinstance(layer, LibraryObject) or not layer.arguments or layer.kind.endswith("Cell"):
        return False
    given = layer.arguments.get("batch_first")
    return given is None or truth(given) is False


def kind_of(layer: Value | None) -> str:
    """Return the qualified class name of a library's layer, or an empty string."""
    return layer.kind if isinstance(layer, LibraryObject) else ""


def called(event: OpRejected) -> str:
    """Return a name for the layer of an event: its constructor's code, or its class."""
    if isinstance(event.layer, InstanceValue):
        return event.layer.cls.name
    if not event.operands:
        return abbreviate(event.place.code)
    return layer_code(event.layer) or event.function.replace("torch.nn.functional.", "F.").replace(_NN, "nn.")


def constructor(layer: Value | None) -> cst.Call | None:
    """Return the constructor call of a layer, `nn.Linear(4, 2)`, or None."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return None
    node = layer.place.node
    is_own = called_name(node) == layer.kind.rpartition(".")[2]
    return node if isinstance(node, cst.Call) and is_own else None


def can_be(layer: LibraryObject, setting: Setting, number: int) -> bool:
    """Whether a layer accepts another number: it may have to be divisible by another setting."""
    parts = as_size(layer.arguments.get(setting.parts)) if setting.parts else None
    return parts is None or (bool(parts.value) and number % (parts.value or 1) == 0)


def item_edit(layer: Value | None, setting: Setting, number: int, item: int) -> Edit | None:
    """Return the edit of a number in a tuple of a layer's constructor call, or None."""
    call = constructor(layer)
    if call is None or not isinstance(layer, LibraryObject) or layer.place is None:
        return None
    given = rewrites.argument(call, setting.position, setting.name)
    if given is None or not isinstance(given.value, (cst.Tuple, cst.List)):
        return None
    value = given.value.elements[item].value if -len(given.value.elements) <= item < 0 else None
    return Edit(layer.place.module.span(value), str(number)) if isinstance(value, cst.Integer) else None


def renamed_class(layer: Value | None, name: str) -> Edit | None:
    """Return the edit to another class of layer: `nn.BatchNorm2d` for `nn.BatchNorm1d`."""
    call = constructor(layer)
    if call is None or not isinstance(layer, LibraryObject) or layer.place is None:
        return None
    # A name imported on its own would need another import.
    if not isinstance(call.func, cst.Attribute):
        return None
    if any(isinstance(each.value, (cst.Tuple, cst.List)) for each in call.args):
        return None
    return rewrites.renamed(layer.place.module, call.func, name)
