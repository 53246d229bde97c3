"""timm: image models by name. Their features, their classifiers, and the sizes of their scores."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from shapefix.interpreter.calls import Arguments, Call, call_library, call_value
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.values import (
    NONE,
    Constant,
    LibraryObject,
    Unknown,
    Value,
    as_tensor,
    facts_of,
)
from shapefix.library.nn.layers import fields_of
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import declare, function, method
from shapefix.library.rejections import trace
from shapefix.library.signatures import bound
from shapefix.library.tensors import contiguous_result
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

MODEL = "timm.models.Model"
HEAD = "timm.models.Head"
_HARMLESS = frozenset(
    {
        "attn_drop_rate",
        "cache_dir",
        "checkpoint_path",
        "drop_block_rate",
        "drop_path_rate",
        "drop_rate",
        "exportable",
        "img_size",
        "in_chans",
        "model_name",
        "no_jit",
        "num_classes",
        "pretrained",
        "proj_drop_rate",
        "scriptable",
    }
)
"""Arguments without an effect on the features of a model."""

declare(MODEL, MODULE)
declare(HEAD, MODULE)


class Head(NamedTuple):
    """Inputs of a model's classifier, its name within the model, and its scores by default.

    The number of scores is None if it depends on the weights.
    """

    features: int
    name: str
    classes: int | None


@dataclass(frozen=True, slots=True)
class HeadOf(Fact):
    """The classifier of a model; the object has it in its fields."""

    head: Head


@cache
def heads() -> dict[str, Head]:
    """Heads of timm's models by name, as the installed timm has them: see `generate_timm_heads.py`."""
    held = json.loads((files("shapefix.library") / "timm.json").read_text(encoding="utf-8"))
    return {name: Head(*head) for name, head in held.items()}


@function("timm.create_model", "timm.models.create_model", "timm.models.factory.create_model")
def create_model(call: Call) -> Value:
    """Create a model by name; Unknown if an argument may change its features, or the name is not known."""
    given = bound("model_name, pretrained=False", call.arguments)
    name = given.get("model_name")
    if call.arguments.open or not call.arguments.keywords.keys() <= _HARMLESS:
        return Unknown()
    if not isinstance(name, Constant) or not isinstance(name.value, str):
        return Unknown()
    kind, _, tag = name.value.partition(".")
    head = heads().get(kind)
    if head is None:
        return Unknown()
    # Weights of another tag may have other classes.
    classes: Value = Unknown("num_classes") if tag or head.classes is None else Constant(head.classes)
    asked = call.arguments.keywords.get("num_classes")
    if asked is not None and not (isinstance(asked, Constant) and asked.value is None):
        classes = asked
    fields: dict[object, Value] = {"num_features": Constant(head.features), "num_classes": classes}
    model = LibraryObject(MODEL, dict(call.arguments.keywords), call.place, fields, Facts.of(HeadOf(head)))
    outer, _, inner = head.name.partition(".")
    if inner:
        fields[outer] = LibraryObject(HEAD, {}, call.place, {})
    fields_of(_owner(model, head))[inner or outer] = _classifier(call, head, classes)
    return model


def _classifier(call: Call, head: Head, classes: Value) -> Value:
    """New classifier: none for 0 classes."""
    if isinstance(classes, Constant) and classes.value == 0:
        return call_library(call.ev, "torch.nn.Identity", Arguments(), call.place.node)
    given = Arguments([Constant(head.features), classes])
    return call_library(call.ev, "torch.nn.Linear", given, call.place.node)


def _owner(model: Value | None, head: Head) -> Value | None:
    """Object with the classifier as an attribute; None if it was replaced by another one."""
    outer, _, inner = head.name.partition(".")
    owner = fields_of(model).get(outer) if inner else model
    kind = owner.kind if isinstance(owner, LibraryObject) else ""
    return owner if kind in (MODEL, HEAD) else None


def _current(model: Value | None) -> tuple[Head, Value] | None:
    """Head of a model and its present classifier; None if the model has another structure now."""
    known = facts_of(model).known(HeadOf) if isinstance(model, LibraryObject) else None
    if known is None or "forward" in fields_of(model):
        return None
    owner = _owner(model, known.head)
    held = None if owner is None else fields_of(owner).get(known.head.name.rpartition(".")[2])
    return None if held is None else (known.head, held)


@method(MODEL, "forward")
def forward(call: Call) -> Value:
    """Scores for a batch of images: those of the classifier for one row of features an image."""
    known = _current(call.receiver)
    if known is None or len(call.arguments.positional) != 1 or call.arguments.keywords:
        return Unknown()
    head, classifier = known
    images = as_tensor(call.arguments.positional[0])
    if images is None or (images.layout is not None and images.layout.rank != 4):
        return Unknown()
    batch = images.known_size(0) or Size.symbol("batch")
    sizes = [batch, Size.of(head.features)]
    features = contiguous_result(call, sizes, Op.MODEL_OUTPUT, dtype=images.dtype, device=images.device)
    features = trace(call, features, call.arguments.positional[0])
    return call_value(call.ev, classifier, Arguments([features]), call.place.node)


@method(MODEL, "get_classifier")
def get_classifier(call: Call) -> Value:
    known = _current(call.receiver)
    return Unknown() if known is None else known[1]


@method(MODEL, "reset_classifier")
def reset_classifier(call: Call) -> Value:
    """Replace the classifier by a new one."""
    known = facts_of(call.receiver).known(HeadOf) if isinstance(call.receiver, LibraryObject) else None
    owner = None if known is None else _owner(call.receiver, known.head)
    classes = call.value(0, "num_classes")
    if known is not None and owner is not None:
        is_plain = classes is not None and len(call.arguments.everything) == 1 and not call.arguments.open
        made = _classifier(call, known.head, classes) if is_plain and classes is not None else Unknown()
        call.ev.journal.write(fields_of(owner), known.head.name.rpartition(".")[2], made)
        call.ev.journal.write(fields_of(call.receiver), "num_classes", classes or Unknown())
    return NONE
