"""SF517: class ids out of range of the scores of a loss."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, made_at, shape_trace
from shapefix.checks.support.literal_sites import stated
from shapefix.checks.support.loss_calls import is_by_class
from shapefix.checks.support.operands import contains, is_drawn, is_unlikely, named
from shapefix.diagnostics import Condition, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Module
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Value
from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import IndexOutOfRange

_ONE_HOT = "torch.nn.functional.one_hot"
_IGNORED = -100
"""Default of `ignore_index`."""
_BINARY = 2
_WHITE = 255
"""Largest number of a mask with 8 bits."""
_MANY = 1000
"""Larger ids are more likely wrong than the number of classes."""
_LABELS = frozenset({"num_labels", "id2label", "label2id", "config"})
"""Arguments with the number of labels of a model."""
_LAST_LAYERS = {"torch.nn.Linear": "out_features", "torch.nn.Conv2d": "out_channels"}


@rule("SF517", on=OpRejected)
def class_id_out_of_range(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    error = event.error
    if event.function == _ONE_HOT and isinstance(error, IndexOutOfRange) and not is_unlikely(event):
        yield _one_hot(event, error, context, rule)
        return
    if not is_by_class(event.function) or not isinstance(error, IndexOutOfRange) or is_unlikely(event):
        return
    target = event.operands[-1].tensor
    scores = event.operands[0].tensor if len(event.operands) > 1 else None
    outside, classes = context.text(error.index), context.concrete(error.size)
    ids = "`labels`" if scores is None else named(event, 1)
    if at_least(error.index, 0) is False:
        limit = "class ids start at 0"
    elif scores is None:
        limit = f"the model has num_labels={classes}: only classes 0 to {context.concrete(error.size - 1)}"
    else:
        limit = f"{named(event, 0)} scores only classes 0 to {context.concrete(error.size - 1)}"
    yield rule.diagnostic(
        event.place.span,
        f"{ids} {contains(target)} class {outside}, but {limit}",
        error=ExpectedError("IndexError", _message(error)),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *(shape_trace(scores, context)[-3:] if scores is not None else ()),
            *shape_trace(target, context)[-3:],
            Evidence(event.place.span, f"class {outside} of {classes} is looked up"),
        ],
        condition=Condition(f"a class id is {outside}") if is_drawn(target) else None,
        fixes=_fixes(event, error, target, scores),
    )


def _message(error: IndexOutOfRange) -> str:
    """Message of torch, without the number if it is only known to the run."""
    return "is out of bounds" if error.index.value is None else f"Target {error.index} is out of bounds"


def _one_hot(event: OpRejected, error: IndexOutOfRange, context: CheckContext, rule: Rule) -> Diagnostic:
    """Report ids rejected by `one_hot`."""
    target = event.operands[0].tensor
    outside, classes = context.text(error.index), context.text(error.size)
    is_negative = at_least(error.index, 0) is False
    limit = "class ids start at 0" if is_negative else f"`num_classes` is {classes}"
    message = "must be non-negative" if is_negative else "must be smaller than num_classes"
    most = target.extremes.most.value if target.extremes is not None else None
    node, module = event.place.node, event.place.module
    given = rewrites.argument(node, 1, "num_classes") if isinstance(node, cst.Call) else None
    edit = None
    if not is_negative and given is not None and isinstance(given.value, cst.Integer) and most is not None:
        edit = Edit(module.span(given.value), str(most + 1))
    return rule.diagnostic(
        event.place.span,
        f"{named(event, 0)} {contains(target)} class {outside}, but {limit}",
        error=ExpectedError("RuntimeError", f"Class values {message}"),
        evidence=[
            *call_trace(event),
            *shape_trace(target, context)[-3:],
            Evidence(event.place.span, f"class {outside} of {classes}"),
        ],
        condition=Condition(f"a class id is {outside}") if is_drawn(target) else None,
        fixes=[rewrites.unsafe_or_advice("state a larger `num_classes`, or count the classes from 0", edit)],
    )


def _fixes(
    event: OpRejected, error: IndexOutOfRange, target: TensorValue, scores: TensorValue | None
) -> Iterator[Fix]:
    """Yield the fix to count classes from 0, to take 255 for class 1, or to score more classes."""
    known, classes = target.extremes, error.size.value
    least, most = (None, None) if known is None else (known.least.value, known.most.value)
    ignored = event.settings.get("ignore_index")
    is_plain = ignored is None or (isinstance(ignored, Constant) and ignored.value == _IGNORED)
    if classes is None or least is None or most is None or not is_plain:
        return
    if scores is None:
        if least == 0 and most < _MANY:
            edit = _number_of_labels(event.layer, most + 1, event.place.module)
            message = f"create the model with num_labels={most + 1}: the largest label is {most}"
            yield rewrites.unsafe_or_advice(message, edit)
        return
    if least == 1 and most == classes:
        edit = _target(event, "{} - 1")
        yield rewrites.unsafe_or_advice("count the classes from 0: subtract 1", edit)
    elif classes == _BINARY and most == _WHITE:
        edit = _target(event, "({} > 0).long()")
        yield rewrites.unsafe_or_advice("make one class of all numbers above 0", edit)
    elif least >= 0 and most < _MANY:
        change = f"score {most + 1} classes"
        edit = _setting(event, scores, most + 1)
        yield rewrites.unsafe_or_advice(f"{change}: the largest class id is {most}", edit)


def _target(event: OpRejected, template: str) -> Edit | None:
    """Return the edit of the target of a loss, a name, attribute, item or call."""
    node, module = event.place.node, event.place.module
    given = rewrites.argument(node, 1, "target") if isinstance(node, cst.Call) else None
    if given is None or not isinstance(given.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)):
        return None
    return Edit(module.span(given.value), template.format(module.code(given.value)))


def _number_of_labels(model: Value | None, number: int, module: Module) -> Edit | None:
    """Return the edit to state the number of labels at the model, or at its configuration."""
    config = model.fields.get("config") if isinstance(model, LibraryObject) else None
    for made in (config, model):
        place = made.place if isinstance(made, LibraryObject) else None
        if place is None or place.module is not module or not isinstance(place.node, cst.Call):
            continue
        name = place.module.code(place.node.func).rpartition(".")[2]
        labels = rewrites.argument(place.node, -1, "num_labels")
        if labels is not None and isinstance(labels.value, cst.Integer):
            return Edit(module.span(labels.value), str(number))
        given = {each.keyword.value for each in place.node.args if each.keyword is not None}
        is_open = any(each.star for each in place.node.args)
        if not is_open and not given & _LABELS and (name.endswith("Config") or name == "from_pretrained"):
            return rewrites.appended(module, place.node, f"num_labels={number}")
    return None


def _setting(event: OpRejected, scores: TensorValue, number: int) -> Edit | None:
    """Return the edit of the number of outputs of the layer computing the scores, if the code states it."""
    layer = scores.origin.producer if scores.origin is not None else None
    if not isinstance(layer, LibraryObject) or layer.place is None or layer.kind not in _LAST_LAYERS:
        return None
    node, module = layer.place.node, layer.place.module
    given = rewrites.argument(node, 1, _LAST_LAYERS[layer.kind]) if isinstance(node, cst.Call) else None
    if given is None:
        return None
    if not isinstance(given.value, cst.Integer):
        # The number may be stated where the model is created: `Net(8, classes=3)`.
        found = stated(layer, _LAST_LAYERS[layer.kind], given.value)
        if found is None or not found.alone or found.place.module is not event.place.module:
            return None
        return Edit(found.place.span, str(number))
    return Edit(module.span(given.value), str(number)) if module is event.place.module else None
