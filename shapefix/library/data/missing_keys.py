"""Keys read from a batch, and missing in its samples."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.batches import BatchKeyMissing
from shapefix.interpreter import hooks
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.ops import Op

_HANDLED = ("KeyError", "LookupError", "Exception", "BaseException")


@hooks.missing_key
def note_missing_key(ev: Evaluator, owner: DictValue, key: object, node: cst.CSTNode) -> None:
    """Report a key missing in a batch, and read by each run."""
    collated = _collated(owner)
    if collated is None or not isinstance(key, str) or owner.absent is not None:
        return
    if any(frame.tests for frame in ev.frames) or any(map(ev.expects, _HANDLED)):
        return
    ev.emit(BatchKeyMissing(ev.place(node), ev.calls, owner, key, collated))


def _collated(batch: DictValue) -> Place | None:
    """Return the place of the collation of a batch's first tensor; None for other dictionaries."""
    for column in batch.fields.values():
        if isinstance(column, TensorValue) and (step := column.origin) is not None and step.op is Op.COLLATE:
            return step.place
    return None
