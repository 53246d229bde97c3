"""Models wrapped by DistributedDataParallel, and their calls in training."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.support.event_order import is_certain, is_followed, of_kind, within
from shapefix.domains.gradients import depends_on
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import Backward
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.values import InstanceValue, LibraryObject, Value, as_tensor

_WRAPPER = "torch.nn.parallel.DistributedDataParallel"


def wrapped_by(event: OperationCalled) -> Value | None:
    """Return the module given to DistributedDataParallel; None for other calls."""
    if event.function != _WRAPPER:
        return None
    module = event.keywords.get("module", event.positional[0] if event.positional else None)
    return module if isinstance(module, (InstanceValue, LibraryObject)) else None


def calls_in_training(module: Value, context: CheckContext) -> Iterator[tuple[ForwardCalled, Backward]]:
    """Yield the calls of a module in training loops, each with the backward of its result."""
    for call in of_kind(context, ForwardCalled):
        if module not in call.modules or not call.recording or not call.loops:
            continue
        loop, result = call.loops[-1].loop, as_tensor(call.result)
        if result is None or not is_followed(loop):
            continue
        for backward in within(loop, context, Backward):
            loss = as_tensor(backward.loss)
            if loss is not None and is_certain(backward, loop) and depends_on(loss, result):
                yield call, backward
                break
