"""SF804: evaluation in training mode, and training in evaluation mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.device_placement import is_local
from shapefix.checks.support.event_order import (
    after,
    between,
    ends_early,
    goes_over_data,
    is_followed,
    within,
)
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import after_statement, end_of_line
from shapefix.checks.support.syntax import enclosing, enclosing_class, enclosing_function, holds
from shapefix.checks.support.uncalled import uncalled
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.modes import ForwardCalled, ModeSwitched
from shapefix.domains.training import Backward, OptimizerStepped
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Module, Place, counts_passes, dotted_name, nodes
from shapefix.interpreter.values import LibraryObject


@rule("SF804", on=(ForwardCalled, ModeSwitched))
def training_mode(
    event: ForwardCalled | ModeSwitched, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, ModeSwitched):
        if event.training is False and not uncalled(context, event.place.module, "train"):
            yield from _never_back(event, context, rule)
    elif _is_evaluated_in_training(event) and event.loops:
        if not uncalled(context, event.place.module, "eval"):
            yield from _evaluated_in_training(event, context, rule)


def _is_evaluated_in_training(event: ForwardCalled) -> bool:
    if event.training is not True or not event.mode_dependent:
        return False
    return not event.recording or _is_named_evaluation(event)


_EVALUATION = re.compile(r"_*(validat|evaluat|(eval|val|valid)_(epoch|one|step|loop|model))(?!.*train)")
_NUMBERS = re.compile(r"\.item\(|\.detach\(|\.numpy\(|\bargmax\b")
_USES_GRADIENTS = re.compile(r"backward|autograd|grad\b|attack|adversar|train\(\)\s*(#.*)?\n\s*for ")


def _is_named_evaluation(event: ForwardCalled) -> bool:
    """Whether a loop over data records gradients for nothing in a function such as `validate`.

    The results must be turned into numbers there, and no gradient may be computed.
    """
    function, module = enclosing_function(event.place), event.place.module
    if function is None or not _EVALUATION.match(function.name.value):
        return False
    text = module.code(function)
    if not event.loops or not holds(function, event.loops[-1].loop.node):
        return False
    return _NUMBERS.search(text) is not None and _USES_GRADIENTS.search(text) is None


def _evaluated_in_training(event: ForwardCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    loop = event.loops[-1].loop
    if not goes_over_data(loop) or within(loop, context, Backward) or _is_meant(event, context):
        return
    if _is_in_constructor(event):
        # It computes sizes.
        return
    calls = within(loop, context, ForwardCalled)
    if any(
        each.module is event.module and each.recording and not _is_named_evaluation(each) for each in calls
    ):
        return
    if next(filter(_is_evaluated_in_training, calls)) is not event:
        # One finding for a loop: mostly, they are parts of one model.
        return
    named = _called(event.place)
    fixes = _around(event, loop, named, context)
    switched = _switched_on(event, context)
    layer = event.mode_dependent[0]
    yield rule.diagnostic(
        event.place.span,
        f"{_lacks_eval(event.place, named)}: {_effect(layer)} during evaluation",
        evidence=[
            *call_trace(event),
            *_made(layer, "behaves differently in training mode"),
            *([Evidence(switched.place.span, "switched to training mode here")] if switched else []),
            Evidence(event.place.span, "evaluated here, in training mode"),
        ],
        fixes=fixes,
        habit="evaluation in training mode",
    )


def _is_in_constructor(event: ForwardCalled) -> bool:
    """Whether a constructor is running: it may try its own layers."""
    places = (event.place, *event.calls)
    return any((around := enclosing_function(each)) and around.name.value == "__init__" for each in places)


def _lacks_eval(place: Place, named: str) -> str:
    """Describe the missing switch; a layer created in the call has no name to switch it by."""
    model = place.node.func if isinstance(place.node, cst.Call) else place.node
    has_name = bool(dotted_name(model)) or not isinstance(model, cst.Call)
    return f"`{named}.eval()` is missing" if has_name else f"`{named}` is created in training mode"


def _is_meant(event: ForwardCalled, context: CheckContext) -> bool:
    """Whether the evaluating function itself switches to training mode, for example to sample dropout.

    It must not have trained since.
    """
    switched = _switched_on(event, context)
    if switched is None or switched.calls != event.calls:
        return switched is not None and switched.training is None
    if between(switched, event, context, Backward):
        return False
    # `for phase in ["train", "val"]: model.train()` switches in the training phase, too.
    before = context.training[: context.positions[switched]]
    others = (each for each in before if isinstance(each, ModeSwitched))
    return not any(
        each.place.node is switched.place.node and between(each, switched, context, Backward)
        for each in others
    )


def _switched_on(event: ForwardCalled, context: CheckContext) -> ModeSwitched | None:
    """Return the last change of the model's mode before the event."""
    before = context.training[: context.positions[event]]
    switches = [each for each in before if isinstance(each, ModeSwitched) and each.module in event.modules]
    return switches[-1] if switches and switches[-1].training is not False else None


def _effect(layer: LibraryObject) -> str:
    """Describe the effect of training mode on a layer, for a message."""
    if "Norm" in layer.kind:
        return "batch norm uses and updates batch statistics"
    return "dropout stays active"


def _called(place: Place) -> str:
    """Return the model's code: `self.model` of `self.model(x)` or `self.model.forward(x)`."""
    node = place.node
    model = node.func if isinstance(node, cst.Call) else node
    if isinstance(model, cst.Attribute) and model.attr.value == "forward":
        model = model.value
    return abbreviate(place.module.code(model))


def _made(layer: LibraryObject, what: str) -> Iterator[Evidence]:
    if layer.place is not None:
        kind = layer.kind.rpartition(".")[2]
        is_layer = kind in layer.place.code.partition("(")[0]
        is_part = layer.kind.startswith("torch.nn.")
        subject = f"this {kind}" if is_layer else f"a {kind} in it" if is_part else "this model"
        yield Evidence(layer.place.span, f"{subject} {what}")


def _in_front(module: Module, loop: cst.CSTNode, code: str, what: str) -> Iterator[Fix]:
    """Insert a line of code before a loop, unless another file has the loop."""
    if not holds(module.tree, loop):
        return
    span = module.span(loop)
    line = module.text.split("\n")[span.row - 1]
    indent = line[: span.column - 1]
    if not indent.strip() and code.rpartition(".")[0].replace(".", "").isidentifier():
        start = span.start()
        yield Fix(Applicability.UNSAFE, f"{what}: `{code}`", (Edit(start, f"{code}\n{indent}"),))


def _is_in_branch(place: Place, loop: Loop) -> bool:
    """Whether only some passes of a loop, or some settings, reach a call: the model may not be there."""
    around = enclosing(place.module, place.node)
    return loop.node in around and any(
        isinstance(node, cst.If) for node in around[around.index(loop.node) + 1 :]
    )


def _around(event: ForwardCalled, loop: Loop, named: str, context: CheckContext) -> Iterator[Fix]:
    """Switch to evaluation mode before a loop; if the model may train later, also to training mode.

    That is done before the loop that trains if it is known, as authors do; else after the evaluation, unless
    a part of the model was in evaluation mode before.
    """
    module = event.place.module
    if holds(module.tree, loop.node) and not _is_visible_at(loop, event.place, named):
        yield Fix(Applicability.DISPLAY, "switch to evaluation mode before the loop, and back afterwards", ())
        return
    if named.startswith("self.") and _is_in_branch(event.place, loop):
        text = f"switch to evaluation mode where the model is made: `{named}.eval()`"
        yield Fix(Applicability.DISPLAY, text, ())
        return
    if any(each.node is loop.node for _, each in _training_loops(event, context)):
        yield Fix(Applicability.DISPLAY, f"call `{named}.train(…)` first, with True only for training", ())
        return
    for fix in _in_front(module, loop.node, f"{named}.eval()", "switch to evaluation mode first"):
        if not _may_train_later(event, loop, context):
            yield fix
            return
        training = _training_loops(event, context)
        edits = [edit for each in training for edit in _switched_on_before(*each)]
        if training and len(edits) == len(training) and all(e.span.path == module.path for e in edits):
            also = f"`{named}.train()` before the training loop{_AND_ITS_DROPOUT if event.loaded else ''}"
            yield Fix(fix.applicability, f"{fix.message}, and {also}", (*fix.edits, *edits))
            return
        if event.loaded:
            text = f"and `{named}.train()` at the start of each training epoch{_AND_ITS_DROPOUT}"
            yield Fix(Applicability.DISPLAY, f"{fix.message}, {text}", ())
            return
        if any(isinstance(node, cst.Return) for node in nodes(loop.node)):
            return
        span = module.span(loop.node.body.body[-1])
        rows = module.text.split("\n")
        start = module.span(loop.node)
        indent = rows[start.row - 1][: start.column - 1]
        back = Edit(end_of_line(rows, span), f"\n{indent}{named}.train()")
        yield Fix(fix.applicability, f"{fix.message}, and back afterwards", (*fix.edits, back))


def _is_visible_at(loop: Loop, place: Place, name: str) -> bool:
    """Whether a name in a function means the same model in front of a loop around the function's call."""
    there = Place(place.module, loop.node)
    function, outer, root = enclosing_function(place), enclosing_function(there), name.partition(".")[0]
    if function is outer:
        return True
    if root == "self":
        return enclosing_class(place) is enclosing_class(there)
    return not any(each is not None and is_local(each, root) for each in (function, outer))


_AND_ITS_DROPOUT = "; it turns on the dropout of the pretrained part, too, which `from_pretrained` turned off"


def _training_loops(event: ForwardCalled, context: CheckContext) -> list[tuple[ForwardCalled, Loop]]:
    """Return the training loops of the model, each with its call; empty if other code may train it, too."""
    own = {each.loop for each in event.loops}
    found: dict[cst.CSTNode, tuple[ForwardCalled, Loop]] = {}
    for each in context.training:
        if isinstance(each, ForwardCalled) and each.module is event.module and each.recording and each.loops:
            loop = each.loops[-1].loop
            if loop not in own and within(loop, context, Backward):
                found.setdefault(loop.node, (each, loop))
    trains = (each for each in context.training if isinstance(each, Backward))
    if not all(any(around.loop.node in found for around in each.loops) for each in trains):
        return []
    return list(found.values())


def _switched_on_before(event: ForwardCalled, loop: Loop) -> Iterator[Edit]:
    code = f"{_called(event.place)}.train()"
    for fix in _in_front(event.place.module, loop.node, code, "switch to training mode first"):
        yield from fix.edits


def _may_train_later(event: ForwardCalled, loop: Loop, context: CheckContext) -> bool:
    """Whether a model may be trained after a loop, without a switch to training mode before.

    Nothing is known of what comes after a function that no code of the project calls, and a loop around an
    evaluation is one of epochs.
    """
    outer = [each.loop for each in event.loops if each.loop is not loop]
    around = [each for one in outer for each in within(one, context, ModeSwitched)]
    for each in chain(after(event, context, ModeSwitched), around):
        if each.module in event.modules and each.training is not False:
            return False
    if outer or any(after(event, context, Backward)):
        return True
    return not event.calls and enclosing_function(event.place) is not None


def _never_back(event: ModeSwitched, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a loop training and evaluating in turn, in evaluation mode from its second pass on."""
    for around in reversed(event.loops):
        loop = around.loop
        is_counted = not around.certain and _is_of_some_passes(event, context)
        trained = _trained_in(event, loop, context, is_counted)
        if trained is None:
            continue
        is_certain = around.certain or is_counted
        if not is_certain or ends_early(loop) or _may_switch_back(event, loop, context):
            return
        named, layer = _called(trained.place), _dependent(trained)[0]
        inner = trained.loops[-1].loop
        back = f"{named}.train()"
        fixes = _in_front(trained.place.module, inner.node, back, "switch back to training mode")
        if is_counted:
            fixes = _back_after(event, trained, back)
        first, passes = (
            ("only up to the first evaluation", "some passes")
            if is_counted
            else ("only the first pass is", "each pass")
        )
        yield rule.diagnostic(
            event.place.span,
            f"`{named}.train()` is missing after `{abbreviate(event.place.code)}`: "
            f"{'afterward' if is_counted else 'from the second pass on'}, {_lack(layer)}",
            evidence=[
                *call_trace(event),
                *_made(layer, "behaves differently in evaluation mode"),
                Evidence(trained.place.span, f"trained here, but {first} in training mode"),
                Evidence(event.place.span, f"switched to evaluation mode here, in {passes} of the loop"),
            ],
            fixes=fixes,
            habit="training in evaluation mode",
        )
        return


def _is_of_some_passes(event: ModeSwitched, context: CheckContext) -> bool:
    """Whether only a count of the passes decides over a switch: `if step % 100 == 0:`."""
    guards = context.way(event).guards
    return bool(guards) and all(counts_passes(guard.test.node) for guard in guards)


def _trained_in(
    event: ModeSwitched, loop: Loop, context: CheckContext, is_counted: bool
) -> ForwardCalled | None:
    """Return the training call in each pass before the model is switched to evaluation mode.

    If some passes switch it, the call may come after the switch, too.
    """
    if not within(loop, context, Backward) or not within(loop, context, OptimizerStepped):
        return None
    calls = within(loop, context, ForwardCalled)
    if is_counted:
        return next((each for each in calls if _trains(each, event, loop)), None)
    position = context.positions[event]
    before = [each for each in calls if context.positions[each] < position]
    return next(
        (
            each
            for each in before
            if each.recording and each.training and each.mode_dependent and event.module in each.modules
        ),
        None,
    )


def _trains(call: ForwardCalled, event: ModeSwitched, loop: Loop) -> bool:
    """Whether a call of the switched model records gradients in a loop itself, and in each pass."""
    is_in_pass = bool(call.loops) and call.loops[-1].loop is loop and call.loops[-1].certain
    return is_in_pass and call.recording and bool(_dependent(call)) and event.module in call.modules


def _dependent(call: ForwardCalled) -> list[LibraryObject]:
    """Return the layers below a called module with a mode, in the order of the code."""
    found = call.mode_dependent or call.with_mode
    return sorted(found, key=lambda each: (each.place is None, each.place.span.row if each.place else 0))


def _back_after(event: ModeSwitched, trained: ForwardCalled, code: str) -> Iterator[Fix]:
    """Switch back after the evaluating statement of the loop."""
    depth = len(trained.calls)
    place = event.calls[depth] if len(event.calls) > depth else event.place
    is_plain = code.rpartition(".")[0].replace(".", "").isidentifier()
    edit = after_statement(place, code) if is_plain and place.module is trained.place.module else None
    if edit is not None:
        yield Fix(Applicability.UNSAFE, f"switch back to training mode: `{code}`", (edit,))


def _lack(layer: LibraryObject) -> str:
    if "Norm" in layer.kind:
        return "batch norm trains with the statistics of the first pass"
    return "the model trains without dropout"


def _may_switch_back(event: ModeSwitched, loop: Loop, context: CheckContext) -> bool:
    """Whether any call in the loop switches to training mode, or may do so."""
    return not is_followed(loop) or any(
        each.training is not False for each in within(loop, context, ModeSwitched)
    )
