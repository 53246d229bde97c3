"""SF412: a step or hook of a LightningModule rejected by Lightning, or without effect on the weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.syntax import attributes_of_super, enclosing
from shapefix.checks.support.wording import counted, listed
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.lightning_steps import ARGUMENTS, HOOKS, LightningStepFound, StepFault, logged_losses
from shapefix.interpreter.modules import Place, nodes

_SETTING_OF_MODULE = "1.3"
"""The first Lightning without the argument `automatic_optimization` of the Trainer."""
_SEVERAL = "Training with multiple optimizers is only supported with manual optimization"


@rule("SF412", on=LightningStepFound)
def lightning_step(event: LightningStepFound, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.fault is StepFault.COLLECTED:
        return
    if event.fault is StepFault.MANUAL and context.permits_older("lightning", _SETTING_OF_MODULE):
        return
    message, error = _texts(event)
    is_old = event.fault in (StepFault.HOOK, StepFault.ARGUMENTS, StepFault.INDEX)
    yield rule.diagnostic(
        event.place.span,
        message,
        error=error,
        evidence=[Evidence(event.place.span, f"`{event.owner.name}` is a LightningModule")],
        fixes=_fixes(event),
        # Code for Lightning 1 has several of them, all with one cause.
        follows=Cause(rule.code, event.place.module.span(event.owner.node.name)) if is_old else None,
        habit=f"hook `{event.method.name.value}`" if is_old else "",
    )


def _texts(event: LightningStepFound) -> tuple[str, ExpectedError | None]:
    name = event.method.name.value
    if event.fault is StepFault.HOOK:
        error = ExpectedError("NotImplementedError", f"Support for `{name}` has been removed in v2.0.0")
        outputs = ", which gets no outputs" if len(event.method.params.params) > 1 else ""
        return f"Lightning 2.0 has no hook `{name}`; use `{HOOKS[name]}`{outputs}", error
    if event.fault is StepFault.ARGUMENTS:
        wanted = ", ".join(("self", *ARGUMENTS[name]))
        return f"Lightning calls the hook as `{name}({wanted})`", _wrong_call(event.method)
    if event.fault is StepFault.INDEX:
        return (
            f"`{name}` has a parameter `optimizer_idx`, which Lightning 2.0 rejects",
            ExpectedError("RuntimeError", _SEVERAL),
        )
    if event.fault is StepFault.OPTIMIZERS:
        return (
            f"`{name}` returns several optimizers, but `automatic_optimization` is on",
            ExpectedError("RuntimeError", _SEVERAL),
        )
    if event.fault is StepFault.MANUAL:
        return (
            "`self.manual_backward` needs `self.automatic_optimization = False`",
            ExpectedError("MisconfigurationException", "to use manual_backward, please disable automatic"),
        )
    if event.fault is StepFault.KEYS:
        return (
            f"the dictionary of `{name}` has no key `loss`",
            ExpectedError("MisconfigurationException", "the 'loss' key needs to be present"),
        )
    if event.fault is StepFault.UNRETURNED:
        return f"`{name}` returns no optimizer: Lightning runs without one, and no weight is trained", None
    if event.fault is StepFault.IDLE:
        return "manual optimization without `manual_backward` and `step`: no weight is trained", None
    if event.fault is StepFault.LOGGED:
        return (
            f"`self.log` is not available in `{name}`",
            ExpectedError("MisconfigurationException", f"You can't `self.log()` inside `{name}`"),
        )
    if event.fault is StepFault.MONITOR:
        return (
            f"`{name}` returns ReduceLROnPlateau without the key `monitor`",
            ExpectedError("MisconfigurationException", "must include a monitor when a `ReduceLROnPlateau`"),
        )
    if event.fault is StepFault.UNSAVED:
        named = listed(event.names[:3])
        return (
            f"checkpoints of `{event.owner.name}` do not hold {named}: `__init__` never calls "
            "`self.save_hyperparameters()`",
            ExpectedError("TypeError", "__init__() missing"),
        )
    if event.fault is StepFault.IGNORED_KEY:
        key = event.place.code.strip("'\"")
        return f"Lightning ignores the key `{key}` of `{name}`: the scheduler never steps", None
    if event.fault is StepFault.BARE_PAIR:
        return (
            f"`{name}` returns an optimizer and a scheduler without lists around them",
            ExpectedError("MisconfigurationException", "Unknown configuration for model optimizers"),
        )
    return f"`{name}` returns no loss: Lightning skips the step, and no weight is trained", None


def _wrong_call(method: cst.FunctionDef) -> ExpectedError:
    """The TypeError of Python for a hook with other parameters than Lightning's."""
    name, given = method.name.value, len(ARGUMENTS[method.name.value]) + 1
    positional = (*method.params.posonly_params, *method.params.params)
    required = sum(each.default is None for each in positional)
    if given <= len(positional) and required <= given:
        return ExpectedError("TypeError", f"{name}() missing")
    if required > given:
        text = f"missing {counted(required - given, 'required positional argument')}"
        return ExpectedError("TypeError", f"{name}() {text}")
    limit = counted(len(positional), "positional argument")
    span = f"from {required} to {limit}" if required < len(positional) else limit
    return ExpectedError(
        "TypeError", f"{name}() takes {span} but {given} {'was' if given == 1 else 'were'} given"
    )


def _fixes(event: LightningStepFound) -> Iterator[Fix]:
    method, module = event.method, event.place.module
    if event.fault is StepFault.HOOK:
        edit = _without_parameter(event)
        if edit is not None:
            edits = (Edit(module.span(method.name), HOOKS[method.name.value]), edit)
            yield Fix(Applicability.UNSAFE, "rename the hook, and drop its parameter", edits)
    elif event.fault is StepFault.ARGUMENTS:
        edit = _without_parameter(event) if not ARGUMENTS[method.name.value] else None
        if edit is not None:
            yield Fix(Applicability.UNSAFE, "drop the parameter", (edit,))
    elif event.fault is StepFault.UNRETURNED:
        yield from _returning(event, "optim", "optimizer")
    elif event.fault is StepFault.NOTHING:
        yield from _returning(event, "loss", "loss", next(logged_losses(method), None))
    elif event.fault is StepFault.LOGGED:
        yield Fix(Applicability.DISPLAY, _where_to_log(event.method.name.value), ())
    elif event.fault is StepFault.IDLE:
        advice = "drop `self.automatic_optimization = False`, or call `manual_backward` and `step`"
        yield Fix(Applicability.DISPLAY, advice, ())
    elif event.fault is StepFault.MONITOR:
        advice = '"lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}'
        yield Fix(Applicability.DISPLAY, advice, ())
    elif event.fault is StepFault.UNSAVED:
        yield from _saving(event)
    elif event.fault is StepFault.IGNORED_KEY:
        edit = Edit(event.place.span, '"lr_scheduler"')
        yield Fix(Applicability.UNSAFE, "name the key `lr_scheduler`", (edit,))
    elif event.fault is StepFault.BARE_PAIR and isinstance(event.place.node, (cst.Tuple, cst.List)):
        spans = [module.span(each.value) for each in event.place.node.elements]
        around = tuple(edit for each in spans for edit in (Edit(each.start(), "["), Edit(each.end(), "]")))
        yield Fix(Applicability.UNSAFE, "put each of them into a list", around)
    elif event.fault is StepFault.MANUAL:
        init = event.owner.fields.get("__init__")
        node = getattr(init, "node", None)
        calls = attributes_of_super(node, "__init__") if isinstance(node, cst.FunctionDef) else ()
        edit = None
        for call in islice(calls, 1):
            edit = rewrites.after_statement(Place(module, call), "self.automatic_optimization = False")
        text = "switch automatic optimization off"
        if _is_conditional(event.place):
            text, edit = f"{text} under the condition of this call", None
        yield rewrites.unsafe_or_advice(text, edit)


def _is_conditional(place: Place) -> bool:
    """Whether a call of a method is in a branch: in the other one, Lightning optimizes."""
    around = enclosing(place.module, place.node)
    return any(isinstance(node, (cst.If, cst.Try)) for node in around)


def _saving(event: LightningStepFound) -> Iterator[Fix]:
    """Save the arguments at the start of the constructor, after its call of the base class's."""
    edit, text = None, "save the arguments of the constructor: `self.save_hyperparameters()`"
    for call in islice(attributes_of_super(event.method, "__init__"), 1):
        edit = rewrites.after_statement(Place(event.owner.module, call), "self.save_hyperparameters()")
    yield rewrites.unsafe_or_advice(text, edit)


def _without_parameter(event: LightningStepFound) -> Edit | None:
    """Drop the only parameter after `self`; None if the hook uses it."""
    method, module = event.method, event.place.module
    params = method.params.params
    used = {each.value for each in nodes(method.body) if isinstance(each, cst.Name)}
    if len(params) != 2 or params[1].name.value in used or _has_more(method.params):
        return None
    first, last = params[0], params[1]
    end = last.default or last.annotation or last
    return Edit(module.span(first).end().to(module.span(end).end()), "")


def _has_more(params: cst.Parameters) -> bool:
    """Whether a function has parameters other than the plain ones."""
    return bool(params.posonly_params or params.kwonly_params or params.star_kwarg) or isinstance(
        params.star_arg, cst.Param
    )


def _where_to_log(method: str) -> str:
    if "predict" in method:
        return "return the value: `Trainer.predict` returns those of all batches"
    stages = [stage for stage in ("train", "validation", "test") if stage in method] or [
        "train",
        "validation",
    ]
    return f"log in {' or '.join(f'`on_{stage}_epoch_end`' for stage in stages)}"


def _returning(
    event: LightningStepFound, part: str, usual: str, other: cst.BaseExpression | None = None
) -> Iterator[Fix]:
    """Return the assigned variable with a part in its name at the end of a method, or another value."""
    method, module = event.method, event.place.module
    last_line = method.body.body[-1]
    names = [
        target.target.value
        for each in method.body.body
        if isinstance(each, cst.SimpleStatementLine)
        for small in each.body
        if isinstance(small, cst.Assign)
        for target in small.targets
        if isinstance(target.target, cst.Name) and part in target.target.value.lower()
    ]
    name = usual if usual in names else names[-1] if names else ""
    if not name and isinstance(other, (cst.Name, cst.Attribute, cst.Subscript)):
        name = module.code(other)
    if name and isinstance(last_line, cst.SimpleStatementLine):
        span = module.span(last_line)
        end = rewrites.end_of_line(module.text.split("\n"), span)
        indent = " " * (span.column - 1)
        yield Fix(Applicability.UNSAFE, f"return `{name}`", (Edit(end, f"\n{indent}return {name}"),))
