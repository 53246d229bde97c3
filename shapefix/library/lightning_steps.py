"""Methods of LightningModules: removed hooks, and steps without a loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import libcst as cst

from shapefix.domains.lightning_steps import (
    ARGUMENTS,
    HOOKS,
    WITHOUT_LOG,
    LightningStepFound,
    StepFault,
    logged_losses,
)
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.classes import is_closed, lineage, member, outside_bases
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Place, children, dotted_name, nodes
from shapefix.interpreter.refused_calls import is_refused
from shapefix.interpreter.values import ClassValue, FunctionValue, Unknown, Value
from shapefix.library.lightning import LIGHTNING_MODULE
from shapefix.library.registry import derives, method
from shapefix.library.required_versions import is_at_least
from shapefix.sources.text import is_notebook

_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "LBFGS"})
_SCHEDULERS = frozenset(
    {
        "CosineAnnealingLR",
        "CosineAnnealingWarmRestarts",
        "CyclicLR",
        "ExponentialLR",
        "LambdaLR",
        "LinearLR",
        "MultiStepLR",
        "OneCycleLR",
        "ReduceLROnPlateau",
        "SequentialLR",
        "StepLR",
    }
)
_NOT_READ = frozenset({"scheduler", "schedulers", "lr_schedulers", "lr_sched", "sched"})
"""Keys for a scheduler that Lightning ignores in the result of `configure_optimizers`."""
_SETTING = "automatic_optimization"


@hooks.define_class
def note_steps(ev: Evaluator, cls: ClassValue) -> None:
    """Emit an event for each faulty step or hook of a LightningModule."""
    if not is_closed(cls) or not any(derives(base, LIGHTNING_MODULE) for base in outside_bases(cls)):
        return
    if is_notebook(cls.module.path) and not cls.module.once(cls.module.tree, _may_train):
        return
    is_manual = any(_SETTING in base.module.text for base in lineage(cls) if isinstance(base, ClassValue))
    for fault, function, node in _faults(cls, is_manual, is_at_least(ev, "2.0", "lightning")):
        ev.emit(LightningStepFound(Place(cls.module, node), ev.calls, fault, cls, function))


@method(LIGHTNING_MODULE, "load_from_checkpoint")
def load_from_checkpoint(call: Call) -> Value:
    """Report arguments of a constructor, neither saved in checkpoints nor given."""
    cls, ev = call.receiver, call.ev
    if not isinstance(cls, ClassValue) or not is_closed(cls) or call.arguments.open:
        return Unknown()
    init, given = member(cls, "__init__"), call.arguments.keywords
    if not isinstance(init, FunctionValue) or not isinstance(init.node, cst.FunctionDef):
        return Unknown()
    modules = [call.place.module, *(base.module for base in lineage(cls) if isinstance(base, ClassValue))]
    is_stored = any(_HYPERPARAMETERS.search(each.text) for each in modules)
    if is_stored or len(call.arguments.positional) > 2 or ev.expects("TypeError"):
        return Unknown()
    params = (*init.node.params.params[1:], *init.node.params.kwonly_params)
    required = (each.name.value for each in params if each.default is None)
    missing = tuple(name for name in required if name not in given)
    if missing:
        ev.emit(LightningStepFound(call.place, ev.calls, StepFault.UNSAVED, cls, init.node, missing))
    return Unknown()


_HYPERPARAMETERS = re.compile(r"hparams|hyper_?parameters|LightningCLI|load_from_checkpoint\s*\(\s*self")
_TRAINING = frozenset({"Trainer", "LightningCLI", "fit"})


def _may_train(tree: cst.Module) -> bool:
    """Whether a program names a trainer: nothing else looks at the hooks."""
    return any(
        isinstance(node, cst.ImportStar) or (isinstance(node, cst.Name) and node.value in _TRAINING)
        for node in nodes(tree)
    )


def _faults(
    cls: ClassValue, is_manual: bool, is_new: bool
) -> Iterator[tuple[StepFault, cst.FunctionDef, cst.CSTNode]]:
    for name in HOOKS if is_new else ():
        method = _method(cls, name)
        if method is not None:
            yield StepFault.HOOK, method, method.name
    for name, given in ARGUMENTS.items() if is_new else ():
        method = _method(cls, name)
        if method is not None and is_refused(cls.fields[name], [Unknown()] * (len(given) + 1), ()):
            yield StepFault.ARGUMENTS, method, method.name
    for name in sorted(WITHOUT_LOG) if is_new else ():
        method = _method(cls, name)
        if method is not None:
            yield from ((StepFault.LOGGED, method, call) for call in _logging(method))
    step, optimizers = _method(cls, "training_step"), _method(cls, "configure_optimizers")
    if optimizers is not None:
        for fault, node in _faults_of_optimizers(optimizers):
            if not (is_manual and fault in (StepFault.MONITOR, StepFault.IGNORED_KEY)):
                yield fault, optimizers, node
    if step is not None and is_manual and _never_steps(cls, step):
        yield StepFault.IDLE, step, step.name
    if step is not None and is_new and not is_manual:
        index = next((each for each in step.params.params if each.name.value == "optimizer_idx"), None)
        if index is not None:
            yield StepFault.INDEX, step, index
            return
    if is_manual:
        return
    several = next(_several(optimizers), None) if optimizers is not None and is_new else None
    if optimizers is not None and several is not None:
        yield StepFault.OPTIMIZERS, optimizers, several
        return
    if step is not None:
        yield from ((StepFault.COLLECTED, step, call) for call in _collecting(cls, step))
        found = _fault_of_step(step)
        if found is not None:
            yield found[0], step, found[1]


def _logging(method: cst.FunctionDef) -> Iterator[cst.Call]:
    """Yield the calls of `self.log` in a method, outside of any `try`."""
    if any(isinstance(each, (cst.Try, cst.TryStar)) for each in _own(method.body)):
        return
    for each in _own(method.body):
        if isinstance(each, cst.Call) and dotted_name(each.func) in ("self.log", "self.log_dict"):
            yield each
            return


def _faults_of_optimizers(method: cst.FunctionDef) -> Iterator[tuple[StepFault, cst.CSTNode]]:
    inside = list(_own(method.body))
    made = _assigned(method, _is_new_optimizer)
    returned = [each.value for each in inside if isinstance(each, cst.Return) and each.value is not None]
    if not returned:
        if made and not any(isinstance(each, (cst.Raise, cst.Yield)) for each in inside):
            yield StepFault.UNRETURNED, method.name
        return
    plateaus, schedulers = _assigned(method, _is_plateau), _assigned(method, _is_new_scheduler)
    for value in returned:
        scheduler = _scheduler_without_monitor(value)
        if scheduler is not None and (_is_plateau(scheduler) or getattr(scheduler, "value", "") in plateaus):
            yield StepFault.MONITOR, value
        key = _ignored_key(value)
        if key is not None:
            yield StepFault.IGNORED_KEY, key
        if _is_bare_pair(value, made, schedulers):
            yield StepFault.BARE_PAIR, value


def _ignored_key(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the ignored key of a scheduler, as in `{"optimizer": …, "scheduler": …}`."""
    keys = _keys(value)
    if keys is None or "optimizer" not in keys or "lr_scheduler" in keys or not isinstance(value, cst.Dict):
        return None
    for each in value.elements:
        if isinstance(each, cst.DictElement) and isinstance(each.key, cst.SimpleString):
            if each.key.evaluated_value in _NOT_READ:
                return each.key
    return None


def _is_bare_pair(value: cst.BaseExpression, optimizers: set[str], schedulers: set[str]) -> bool:
    """Whether a value is `optimizer, scheduler` without lists around them."""
    if not isinstance(value, (cst.Tuple, cst.List)) or len(value.elements) != 2:
        return False
    first, second = (each.value for each in value.elements)
    if not _is_new_optimizer(first) and getattr(first, "value", None) not in optimizers:
        return False
    return _is_new_scheduler(second) or getattr(second, "value", None) in schedulers


def _is_new_scheduler(value: cst.BaseExpression) -> bool:
    """Whether an expression creates a scheduler of torch."""
    *packages, name = dotted_name(value.func).split(".") if isinstance(value, cst.Call) else [""]
    return name in _SCHEDULERS and (not packages or packages[-1] in {"lr_scheduler", "sched", "scheduler"})


def _assigned(method: cst.FunctionDef, is_wanted: Callable[[cst.BaseExpression], bool]) -> set[str]:
    """Return the names with values of one kind only."""
    found: dict[str, bool] = {}
    for node in _own(method.body):
        if isinstance(node, cst.Assign):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    name = target.target.value
                    found[name] = found.get(name, True) and is_wanted(node.value)
    return {name for name, is_kind in found.items() if is_kind}


def _is_new_optimizer(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and _is_optimizer(value, set())


def _is_plateau(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and dotted_name(value.func).endswith("ReduceLROnPlateau")


def _scheduler_without_monitor(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the scheduler of `[optimizer], [scheduler]` and `{"lr_scheduler": scheduler}`."""
    if isinstance(value, cst.Tuple) and len(value.elements) == 2:
        last = value.elements[1].value
        if isinstance(last, cst.List) and len(last.elements) == 1:
            return last.elements[0].value
    if not isinstance(value, cst.Dict) or "monitor" in (_keys(value) or {"monitor"}):
        return None
    for each in value.elements:
        if isinstance(each, cst.DictElement) and isinstance(each.key, cst.SimpleString):
            if each.key.evaluated_value == "lr_scheduler":
                return each.value
    return None


def _never_steps(cls: ClassValue, step: cst.FunctionDef) -> bool:
    """Whether a class with manual optimization computes a loss, but has no optimizer's step in its file."""
    text = cls.module.text
    if f"self.{_SETTING} = False" not in text or ".step(" in text or "backward(" in text:
        return False
    if any(isinstance(base, ClassValue) and base is not cls for base in lineage(cls)):
        return False
    inside = list(_own(step.body))
    calls = [dotted_name(each.func) for each in inside if isinstance(each, cst.Call)]
    own = {name for name, value in cls.fields.items() if isinstance(value, FunctionValue)}
    if any(name.startswith("self.") and name[5:] in own for name in calls):
        return False
    return any(isinstance(each, cst.Return) and list(_loss_of(each.value)) for each in inside)


def _method(cls: ClassValue, name: str) -> cst.FunctionDef | None:
    """Return a plain method of the class itself."""
    found = cls.fields.get(name)
    if not isinstance(found, FunctionValue) or not isinstance(found.node, cst.FunctionDef):
        return None
    return None if found.node.decorators else found.node


def _fault_of_step(step: cst.FunctionDef) -> tuple[StepFault, cst.CSTNode] | None:
    inside = list(_own(step.body))
    calls = [dotted_name(each.func) for each in inside if isinstance(each, cst.Call)]
    if "self.manual_backward" in calls:
        call = next(each for each in inside if isinstance(each, cst.Call) and _is_manual(each))
        return StepFault.MANUAL, call
    returned = [each for each in inside if isinstance(each, cst.Return) and each.value is not None]
    if not returned:
        is_stub = any(isinstance(each, (cst.Raise, cst.Yield)) for each in inside)
        learns = any(isinstance(each, cst.Assign) and _names_loss(each) for each in inside)
        learns = learns or next(logged_losses(step), None) is not None
        backward = any(name.endswith(".backward") for name in calls)
        return None if is_stub or backward or not learns else (StepFault.NOTHING, step.name)
    for each in returned:
        keys = _keys(each.value)
        if keys is not None and "loss" not in keys:
            return StepFault.KEYS, each
    return None


def _collecting(cls: ClassValue, step: cst.FunctionDef) -> Iterator[cst.Call]:
    """Yield the calls to append the returned loss to an attribute: `self.losses.append(loss)`.

    Lists emptied by another method are left out: Lightning's own recipe keeps the losses of one epoch so.
    """
    emptied = {name for other in _methods(cls) if other.name.value != "__init__" for name in _emptied(other)}
    inside = list(_own(step.body))
    returned = {name for each in inside if isinstance(each, cst.Return) for name in _loss_of(each.value)}
    assigned = [
        target.target.value
        for each in inside
        if isinstance(each, cst.Assign)
        for target in each.targets
        if isinstance(target.target, cst.Name)
    ]
    for each in inside:
        if (
            not isinstance(each, cst.Call)
            or len(each.args) != 1
            or not isinstance(each.args[0].value, cst.Name)
        ):
            continue
        owner, _, method = dotted_name(each.func).rpartition(".")
        name = each.args[0].value.value
        if (
            method == "append"
            and owner.startswith("self.")
            and owner not in emptied
            and name in returned
            and assigned.count(name) == 1
        ):
            yield each


def _methods(cls: ClassValue) -> Iterator[cst.FunctionDef]:
    for base in lineage(cls):
        for value in base.fields.values() if isinstance(base, ClassValue) else ():
            if isinstance(value, FunctionValue) and isinstance(value.node, cst.FunctionDef):
                yield value.node


def _emptied(method: cst.FunctionDef) -> Iterator[str]:
    """Yield the attributes emptied or assigned by a method: `self.losses.clear()`."""
    for node in _own(method.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value == "clear":
                yield dotted_name(node.func.value)
        elif isinstance(node, cst.Assign):
            yield from (dotted_name(target.target) for target in node.targets)
        elif isinstance(node, cst.Del):
            yield from (
                dotted_name(part.value) for part in nodes(node.target) if isinstance(part, cst.Subscript)
            )


def _loss_of(value: cst.BaseExpression | None) -> Iterator[str]:
    """Yield the name of the loss in `return loss` and `return {"loss": loss}`."""
    if isinstance(value, cst.Name):
        yield value.value
    elif isinstance(value, cst.Dict):
        for each in value.elements:
            if isinstance(each, cst.DictElement) and isinstance(each.key, cst.SimpleString):
                if each.key.evaluated_value == "loss" and isinstance(each.value, cst.Name):
                    yield each.value.value


def _is_manual(call: cst.Call) -> bool:
    return dotted_name(call.func) == "self.manual_backward"


def _names_loss(statement: cst.Assign) -> bool:
    """Whether a statement assigns a loss, by its name."""
    target = statement.targets[0].target
    return isinstance(target, cst.Name) and "loss" in target.value.lower()


def _keys(value: cst.BaseExpression | None) -> set[str] | None:
    """Return the keys of a dictionary in the code; None if one of them is not known."""
    if not isinstance(value, cst.Dict):
        return None
    found = set()
    for each in value.elements:
        if not isinstance(each, cst.DictElement) or not isinstance(each.key, cst.SimpleString):
            return None
        found.add(str(each.key.evaluated_value))
    return found


def _several(method: cst.FunctionDef) -> Iterator[cst.Return]:
    """Yield the `return` statements with two or more optimizers."""
    made = {
        target.target.value
        for node in _own(method.body)
        if isinstance(node, cst.Assign) and _is_optimizer(node.value, set())
        for target in node.targets
        if isinstance(target.target, cst.Name)
    }
    for node in _own(method.body):
        if isinstance(node, cst.Return) and isinstance(node.value, (cst.Tuple, cst.List)):
            items = [each.value for each in node.value.elements]
            if len(items) == 2 and isinstance(items[0], cst.List):
                items = [each.value for each in items[0].elements]
            if len(items) >= 2 and all(_is_optimizer(each, made) for each in items):
                yield node


def _is_optimizer(value: cst.BaseExpression, made: set[str]) -> bool:
    if isinstance(value, cst.Name):
        return value.value in made
    if isinstance(value, cst.Dict):
        return "optimizer" in (_keys(value) or ())
    name = dotted_name(value.func) if isinstance(value, cst.Call) else ""
    return name.rpartition(".")[2] in _OPTIMIZERS and name.partition(".")[0] in {
        "torch",
        "optim",
        *_OPTIMIZERS,
    }


def _own(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes of a function without those of functions in it."""
    for child in children(node):
        yield child
        if not isinstance(child, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            yield from _own(child)
