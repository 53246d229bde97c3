"""Sizes needed by operations of torch: conditions in terms of the arguments of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.values import Constant, LibraryObject, Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """A condition with the text of an f-string for its failure; about is its size.

    axes are the annotations of jaxtyping that state the same, by argument; is_float is whether torch takes
    floating point numbers only.
    """

    condition: str
    message: str
    about: str
    axes: Mapping[str, str] = field(default_factory=dict)
    is_float: bool = False


@dataclass(frozen=True)
class LayerNeed:
    """The dimension of the input stated by a setting of the layer, and the word for it.

    switches are settings of the layer; the sizes may differ if one of them is off.
    """

    dim: int
    setting: str
    word: str
    switches: tuple[str, ...] = ()


LAYERS: Mapping[str, LayerNeed] = {
    "Linear": LayerNeed(-1, "in_features", "features"),
    **{f"Conv{n}d": LayerNeed(-n - 1, "in_channels", "channels") for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": LayerNeed(-n - 1, "in_channels", "channels") for n in (1, 2, 3)},
    **{
        f"BatchNorm{n}d": LayerNeed(1, "num_features", "channels", ("affine", "track_running_stats"))
        for n in (1, 2, 3)
    },
    "GroupNorm": LayerNeed(1, "num_channels", "channels", ("affine",)),
    "LayerNorm": LayerNeed(-1, "normalized_shape[-1]", "features"),
}
"""By the name of the layer in torch.nn."""


_BEFORE = {1: "batch", -1: "*batch", -2: "*batch", -3: "*batch", -4: "*batch"}
_AFTER = {1: "...", -1: "", -2: "length", -3: "height width", -4: "depth height width"}
"""The names of the other axes, by the dimension of a layer's need."""


def layer_need(layer: LibraryObject, argument: str, code: str) -> Need | None:
    """Return the need of a layer; code is its expression."""
    need = LAYERS.get(layer.kind.removeprefix("torch.nn."))
    if need is None or not all(_is_on(layer.fields.get(name)) for name in need.switches):
        return None
    size, expected = f"{argument}.shape[{need.dim}]", f"{code}.{need.setting}"
    message = f"{argument} has {{{size}}} {need.word}; {code} expects {{{expected}}}"
    axes = {argument: f"{_BEFORE[need.dim]} {{{expected}}} {_AFTER[need.dim]}".strip()}
    return Need(f"{size} == {expected}", message, size, axes, is_float=True)


def _is_on(setting: Value | None) -> bool:
    return setting is None or (isinstance(setting, Constant) and setting.value is True)


def _batch_product(one: str, other: str) -> Iterator[Need]:
    yield _equal(one, 0, other, 0, "matrices")
    axes = {one: "batch rows inner", other: "batch inner columns"}
    yield replace(_equal(one, 2, other, 1, "columns", "rows"), axes=axes)


def _product(one: str, other: str) -> Iterator[Need]:
    axes = {one: "rows inner", other: "inner columns"}
    yield replace(_equal(one, 1, other, 0, "columns", "rows"), axes=axes)


def _class_loss(one: str, other: str) -> Iterator[Need]:
    need = _equal(one, 0, other, 0, "rows")
    # The scores of a single sample have no rows.
    yield Need(f"{one}.dim() == 1 or {need.condition}", need.message, need.about)


def _same_shape(one: str, other: str) -> Iterator[Need]:
    message = f"{one} has shape {{tuple({one}.shape)}}; {other} has {{tuple({other}.shape)}}"
    yield Need(
        f"{one}.shape == {other}.shape", message, f"{one}.shape, {other}", {one: "*shape", other: "*shape"}
    )


def _equal(one: str, dim: int, other: str, other_dim: int, word: str, other_word: str = "") -> Need:
    first, second = f"{one}.shape[{dim}]", f"{other}.shape[{other_dim}]"
    message = f"{one} has {{{first}}} {word}; {other} has {{{second}}}"
    return Need(
        f"{first} == {second}", message + (f" {other_word}" if other_word else ""), f"{first}, {second}"
    )


_Pair = tuple[tuple[str, str], Callable[[str, str], Iterator[Need]]]
_ROWS: _Pair = (("input", "target"), _class_loss)
_SHAPES: _Pair = (("input", "target"), _same_shape)

PAIRS: Mapping[str, _Pair] = {
    "torch.bmm": (("input", "mat2"), _batch_product),
    "torch.mm": (("input", "mat2"), _product),
    **{f"torch.nn.functional.{name}": _ROWS for name in ("cross_entropy", "nll_loss")},
    **{f"torch.nn.{name}.__call__": _ROWS for name in ("CrossEntropyLoss", "NLLLoss")},
    **{
        f"torch.nn.functional.{name}": _SHAPES
        for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits")
    },
    **{f"torch.nn.{name}.__call__": _SHAPES for name in ("BCELoss", "BCEWithLogitsLoss")},
}
"""Functions and losses of two tensors with the names of their parameters."""

CONCATENATIONS = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
_OTHERS = {0: "[1:]", 1: "[2:]", -1: "[:-1]"}
"""The sizes that must agree, by the dimension of a concatenation; those before dimension 1 are left out."""


def cat_need(one: str, other: str, dim: int) -> Need | None:
    """Return the need of two concatenated tensors; either may be empty."""
    if dim not in _OTHERS:
        return None
    first, second = f"{one}.shape{_OTHERS[dim]}", f"{other}.shape{_OTHERS[dim]}"
    shapes = f"{one} has shape {{tuple({one}.shape)}}; {other} has {{tuple({other}.shape)}}"
    # torch ignores tensors of shape (0,).
    condition = f"{first} == {second} or 0 in {one}.shape + {other}.shape"
    return Need(condition, f"{shapes}; cat in dim {dim}", f"{first}, {second}")


def sum_need(layer: LibraryObject, arguments: Sequence[str], code: str) -> Need | None:
    """Return the need of a Linear of arguments concatenated in their last dimension."""
    if layer.kind != "torch.nn.Linear":
        return None
    sizes = [f"{name}.shape[-1]" for name in arguments]
    expected = f"{code}.in_features"
    shown = " + ".join(f"{{{size}}}" for size in sizes)
    message = f"{' and '.join(arguments)} have {shown} features; {code} expects {{{expected}}}"
    return Need(f"{' + '.join(sizes)} == {expected}", message, ", ".join(sizes))


_PRESERVING_LAYERS = frozenset(
    {"Dropout", "ReLU", "GELU", "SiLU", "ELU", "LeakyReLU", "Tanh", "Sigmoid", "LayerNorm", "Identity"}
)
_PRESERVING_FUNCTIONS = frozenset(
    {f"torch.nn.functional.{name}" for name in ("relu", "gelu", "silu", "elu", "leaky_relu", "dropout")}
    | {f"torch.{name}" for name in ("relu", "tanh", "sigmoid", "clone", "detach")}
    | {
        f"torch.Tensor.{name}"
        for name in ("contiguous", "clone", "detach", "float", "relu", "sigmoid", "tanh")
    }
)


CASTS = frozenset({"torch.nn.Tanh", "torch.nn.Sigmoid", "torch.tanh", "torch.sigmoid"}) | {
    f"torch.Tensor.{name}" for name in ("float", "sigmoid", "tanh")
}
"""Operations of them that take any dtype, and return floating point numbers."""


def argument(event: OperationCalled, position: int, name: str) -> Value | None:
    """Return an argument of a call by its position or its name."""
    if position < len(event.positional):
        return event.positional[position]
    return event.keywords.get(name)


def preserved(event: OperationCalled) -> Value | None:
    """Return the input of an operation with a result of the same sizes; None for other operations."""
    if event.function.startswith("torch.Tensor.") and event.function in _PRESERVING_FUNCTIONS:
        return event.receiver
    if event.function in _PRESERVING_FUNCTIONS or kind_of_layer(event) in _PRESERVING_LAYERS:
        return argument(event, 0, "input")
    return None


def kind_of_layer(event: OperationCalled) -> str | None:
    """Return the name in torch.nn of a called layer."""
    kind, _, method = event.function.rpartition(".")
    return kind.removeprefix("torch.nn.") if method == "__call__" else None
