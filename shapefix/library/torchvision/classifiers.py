"""Classifiers of torchvision as objects with known layers, including replaced ones."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.interpreter.calls import Arguments, Call, call_library, call_value
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, as_tensor, facts_of
from shapefix.library.nn.layers import fields_of
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import declare, method
from shapefix.library.rejections import trace
from shapefix.library.tensors import as_result
from shapefix.library.torchvision.architectures import ARCHITECTURES
from shapefix.library.torchvision.parts import (
    BODY,
    CLASSES,
    PERMUTE,
    STAGE,
    Architecture,
    Layer,
    Named,
    Part,
    Stage,
)
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

CLASSIFIER = "torchvision.models.Classifier"
"""Any of the models here; its architecture is a fact of the object."""
_HARMLESS = frozenset(
    {
        "weights",
        "pretrained",
        "progress",
        "num_classes",
        "dropout",
        "init_weights",
        "transform_input",
        "aux_logits",
        "image_size",
        "stochastic_depth_prob",
        "memory_efficient",
        "drop_rate",
        "zero_init_residual",
        "norm_layer",
        "attention_dropout",
    }
)
"""Arguments without an effect on sizes, or with a known one."""

declare(CLASSIFIER, MODULE)
declare(STAGE, MODULE)
declare(BODY, MODULE)
declare(PERMUTE, MODULE)


def make(call: Call) -> Value:
    """Create a model; Unknown if an argument may change its layers."""
    name = call.name.rpartition(".")[2]
    given = call.arguments
    if len(given.positional) > 2 or not given.keywords.keys() <= _HARMLESS:
        return Unknown(name)
    classes = given.keywords.get("num_classes") or (Unknown(CLASSES) if given.open else Constant(1000))
    architecture = ARCHITECTURES[name]()
    fields: dict[object, Value] = {}
    for key, part in {**architecture.children, **architecture.extra}.items():
        if not isinstance(part, Stage):
            fields[key] = _made(call, part, classes)
    if architecture.auxiliary:
        fields["aux_logits"] = given.keywords.get("aux_logits") or Unknown("aux_logits")
    return LibraryObject(CLASSIFIER, dict(given.keywords), call.place, fields, Facts.of(architecture))


def make_by_name(call: Call, name: object, arguments: Arguments) -> Value:
    """Create a model by the name of torchvision's function; Unknown for any other name."""
    if not isinstance(name, str) or name not in ARCHITECTURES:
        return Unknown()
    return make(Call(call.ev, f"torchvision.models.{name}", call.place, arguments))


def _made(call: Call, part: Part, classes: Value) -> Value:
    """Create a part of a model; a layer is on the device of the model."""
    node = call.place.node
    if isinstance(part, Layer):
        given = [classes if setting == CLASSES else Constant(setting) for setting in part.settings]
        if part.kind == BODY:
            return LibraryObject(BODY, {}, call.place, {"out_channels": given[0], "dim": given[1]})
        if part.kind == PERMUTE:
            return LibraryObject(PERMUTE, {}, call.place, {"dims": TupleValue(tuple(given))})
        if part.kind == STAGE:
            first = call_library(call.ev, "torch.nn.Conv2d", Arguments(given), node)
            return LibraryObject(STAGE, {}, call.place, {"_first": first})
        return call_library(call.ev, part.kind, Arguments(given), node)
    children: list[Value]
    if isinstance(part, Named):
        named: dict[object, Value] = {key: _made(call, child, classes) for key, child in part.items()}
        children = [DictValue(named)]
    else:
        assert isinstance(part, list)
        children = [_made(call, child, classes) for child in part]
    return call_library(call.ev, "torch.nn.Sequential", Arguments(children), node)


@method(STAGE, "forward")
def forward_of_stage(call: Call) -> Value:
    """Height and width after the first strided convolution."""
    first = fields_of(call.receiver).get("_first", Unknown())
    return call_value(call.ev, first, call.arguments, call.place.node)


@method(BODY, "forward")
def forward_of_body(call: Call) -> Value:
    """Images of so many channels, with unknown height and width."""
    tensor, fields = as_tensor(call.value(0)), fields_of(call.receiver)
    outer, dim = fields.get("out_channels"), fields.get("dim")
    if not isinstance(outer, Constant) or not isinstance(dim, Constant):
        return TensorValue()
    if tensor is None or tensor.layout is None or tensor.layout.rank != 4:
        return TensorValue()
    sizes = [tensor.layout.sizes[0], Size.symbol("height"), Size.symbol("width")]
    sizes.insert(dim.value, Size.of(outer.value))
    return as_result(call, unknown_strides(sizes), Op.MODEL_OUTPUT)


@method(PERMUTE, "forward")
def forward_of_permute(call: Call) -> Value:
    given = [call.value(0) or Unknown(), fields_of(call.receiver).get("dims", Unknown())]
    return call_library(call.ev, "torch.permute", Arguments(given), call.place.node)


@method(CLASSIFIER, "forward")
def forward(call: Call) -> Value:
    """Run one child after another, in their current state."""
    fields = fields_of(call.receiver)
    architecture = facts_of(call.receiver).known(Architecture)
    if architecture is None or "forward" in fields or len(call.arguments.positional) != 1:
        return Unknown()
    given = value = call.arguments.positional[0]
    *_, last = (name for name, part in architecture.children.items() if not isinstance(part, Stage))
    for name, part in architecture.children.items():
        if isinstance(part, Stage):
            value = _between(call, part, value)
        else:
            if name == last:
                value = _in_one_step(call, given, value)
            child = fields[name]
            if not (isinstance(child, LibraryObject) and child.kind == "torch.nn.Identity"):
                value = call_value(call.ev, child, Arguments([value]), call.place.node)
    if architecture.auxiliary:
        auxiliary = fields["aux_logits"]
        if not (isinstance(auxiliary, Constant) and not auxiliary.value):
            # In training a tuple, in evaluation a tensor.
            return Unknown()
    return value


def _in_one_step(call: Call, given: Value, value: Value) -> Value:
    """Result of the body of a model, recorded as one step instead of layer by layer."""
    if not isinstance(value, TensorValue) or value.layout is None:
        return value
    features = as_result(call, value.layout, Op.MODEL_OUTPUT, dtype=value.dtype, device=value.device)
    return trace(call, features, given)


def _between(call: Call, step: Stage, value: Value) -> Value:
    """Apply a step of forward between two children."""
    ev, node = call.ev, call.place.node
    if step.name == "flatten":
        return call_library(ev, "torch.flatten", Arguments([value, Constant(1)]), node)
    if step.name == "pool":
        given = [value, Constant(1)]
        return call_library(ev, "torch.nn.functional.adaptive_avg_pool2d", Arguments(given), node)
    return call_library(ev, "torch.mean", Arguments([value, ListValue((Constant(2), Constant(3)))]), node)


def _children(owner: Value | None) -> Iterator[tuple[str, Value]] | None:
    """Children of a model by name, in order; None if unknown."""
    fields = fields_of(owner)
    architecture = facts_of(owner).known(Architecture)
    if architecture is None or architecture.extra or architecture.auxiliary:
        return None
    names = [name for name, part in architecture.children.items() if not isinstance(part, Stage)]
    return ((name, fields[name]) for name in names)


@method(CLASSIFIER, "children")
def children(call: Call) -> Value:
    known = _children(call.receiver)
    return ListValue(None if known is None else tuple(child for _, child in known))


@method(CLASSIFIER, "named_children")
def named_children(call: Call) -> Value:
    known = _children(call.receiver)
    if known is None:
        return ListValue(None, TupleValue((Unknown("name"), Unknown("module"))))
    return ListValue(tuple(TupleValue((Constant(name), child)) for name, child in known))
