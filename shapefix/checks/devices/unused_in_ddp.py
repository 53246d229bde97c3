"""SF612: a layer without a use in the forward of a model in DistributedDataParallel."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.distributed_models import calls_in_training, wrapped_by
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.optimized import has_weights
from shapefix.checks.support.rewrites import appended
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix, Role
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.registration import registered_in
from shapefix.domains.training import Backward
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.values import Constant, InstanceValue, LibraryObject, Value

_OPTIONS = ("find_unused_parameters", "static_graph")
_BY_HAND = re.compile(r"requires_grad|\bgetattr\(|__dict__|_modules\b|\bfreeze|delattr|\bdel self\.")
"""Text of code that freezes, removes or uses layers in other ways than by their names."""
_UNFINISHED = ExpectedError("RuntimeError", "Expected to have finished reduction in the prior iteration")


@rule("SF612", on=OperationCalled, reads=(ForwardCalled, Backward))
def unused_in_ddp(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    model, node = wrapped_by(event), event.place.node
    if model is None or not isinstance(node, cst.Call) or any(each.star for each in node.args):
        return
    if any(not _is_false(event.keywords[name]) for name in _OPTIONS if name in event.keywords):
        return
    layers = registered_in(model)
    calls = list(calls_in_training(model, context))
    if layers is None or not calls or any(_BY_HAND.search(text) for text in _texts(event, layers)):
        return
    called = frozenset(each for call, _ in calls for each in call.called)
    for owner in layers:
        if not isinstance(owner, InstanceValue) or called.isdisjoint(registered_in(owner) or ()):
            continue
        for name, layer in owner.fields.items():
            if not isinstance(layer, LibraryObject) or layer.place is None or not has_weights(layer):
                continue
            if layer not in called and _is_only_assigned(owner, name, layer, layers):
                yield rule.diagnostic(
                    layer.place.span,
                    f"`self.{name}` of `{owner.cls.name}` is never used, "
                    "and DistributedDataParallel waits for its gradient",
                    error=_UNFINISHED,
                    evidence=[
                        *call_trace(event),
                        Evidence(layer.place.span, "has weights that no forward uses"),
                        Evidence(
                            event.place.span,
                            "wraps the model without `find_unused_parameters=True`",
                            Role.CAUSE,
                        ),
                        Evidence(calls[0][0].place.span, "the second batch raises here", Role.FAILURE),
                    ],
                    fixes=_fixes(event, node),
                )


def _fixes(event: OperationCalled, node: cst.Call) -> Iterator[Fix]:
    if not any(name in event.keywords for name in _OPTIONS):
        edit = appended(event.place.module, node, "find_unused_parameters=True")
        yield Fix(
            Applicability.UNSAFE, "search for unused parameters in each step, which costs time", (edit,)
        )
    yield Fix(Applicability.DISPLAY, "remove the layer, or use it in `forward`", ())


def _is_false(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is False


def _texts(event: OperationCalled, layers: frozenset[Value]) -> Iterator[str]:
    yield event.place.module.text
    for each in layers:
        if isinstance(each, InstanceValue):
            yield each.cls.module.text


def _is_only_assigned(owner: InstanceValue, name: str, layer: Value, layers: frozenset[Value]) -> bool:
    """Whether the code names an attribute in one assignment only, and holds its layer nowhere else."""
    text = owner.cls.module.text
    named = re.findall(rf"\.{re.escape(name)}\b", text)
    assigned = re.findall(rf"\bself\.{re.escape(name)}\s*=[^=]", text)
    holders = [
        each for each in layers if each is not owner and isinstance(each, (InstanceValue, LibraryObject))
    ]
    is_shared = any(held is layer for each in holders for held in each.fields.values())
    return len(named) == len(assigned) == 1 and not is_shared
