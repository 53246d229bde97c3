"""Labels passed to a classifying model of transformers, against the number of its classes."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import Value, as_tensor
from shapefix.library.nn.layers import fields_of
from shapefix.library.ops.value_range import outside_of
from shapefix.library.rejections import reject
from shapefix.tensors.dtype_checks import is_integral_or_bool
from shapefix.tensors.errors import IndexOutOfRange
from shapefix.tensors.polynomials import Size

IGNORED = -100
_LOSS = "torch.nn.CrossEntropyLoss"


def compare_classes(call: Call, classes: Size | None) -> None:
    """Report labels outside of the classes of the called model."""
    compare_labels(call, call.receiver, call.arguments.keywords.get("labels"), classes)


def compare_labels(call: Call, model: Value | None, given: Value | None, classes: Size | None) -> None:
    """Report labels outside of the classes of a model with a cross-entropy of its own.

    A model of one class is a regression; `problem_type` may choose another loss.
    """
    labels = as_tensor(given)
    config = fields_of(model).get("config")
    if labels is None or classes is None or (classes.value or 0) < 2:
        return
    if "problem_type" in fields_of(config) or not is_integral_or_bool(labels.dtype or ""):
        return
    outside = outside_of(labels, classes, IGNORED)
    if outside is not None:
        labels.certain = True
        error = IndexOutOfRange(f"Target {outside} is out of bounds.", outside, classes, 0)
        reject(call, error, {"labels": labels}, function=_LOSS, layer=model)
