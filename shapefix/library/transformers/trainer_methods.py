"""Methods of transformers.Trainer overridden by a subclass."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.versions import MethodOverridden
from shapefix.interpreter import hooks
from shapefix.interpreter.classes import is_closed, member, outside_bases
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Binding, ClassValue, FunctionValue
from shapefix.library.registry import derives
from shapefix.library.required_versions import is_at_least
from shapefix.library.transformers.trainers import TRAINER

METHOD, KEYWORD, VERSION = "compute_loss", "num_items_in_batch", "4.46"
"""The keyword that `Trainer` passes to `compute_loss`, and the first version that does."""
ALWAYS = "4.49"
"""First version from which on every version passes it: 4.47 and 4.48 do so for some models only."""
_CALLERS = ("training_step", "train", "_inner_training_loop")
"""Methods of the training that may call it otherwise."""


@hooks.define_class
def note_method(ev: Evaluator, cls: ClassValue) -> None:
    """Emit an event for a `compute_loss` without the keyword."""
    method = cls.fields.get(METHOD)
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return
    if method.binding is Binding.UNKNOWN or method.node.decorators or not is_at_least(ev, ALWAYS):
        return
    if not is_closed(cls) or any(member(cls, name) is not None for name in _CALLERS):
        return
    outside = outside_bases(cls)
    if len(outside) != 1 or not derives(outside[0], TRAINER) or not _lacks(method.node.params):
        return
    place = Place(method.module, method.node)
    ev.emit(MethodOverridden(place, ev.calls, outside[0], method.node, KEYWORD, VERSION))


def _lacks(params: cst.Parameters) -> bool:
    """Check for parameters of a usual `compute_loss`, without the keyword."""
    names = [each.name.value for each in (*params.params, *params.kwonly_params)]
    return (
        params.star_kwarg is None
        and not params.posonly_params
        and not isinstance(params.star_arg, cst.Param)
        and len(params.params) >= 3
        and KEYWORD not in names
    )
