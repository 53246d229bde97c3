"""Schedules in epochs with a step for each batch, and schedules in batches with a step for each epoch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import ends_early, goes_over_data, is_followed, of_kind, within
from shapefix.checks.support.lost_steps import is_in_each_pass
from shapefix.checks.support.rewrites import end_of_line
from shapefix.checks.support.syntax import enclosing, enclosing_function, enclosing_line, holds
from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.domains.training import Backward, OptimizerStepped, SchedulerStepped
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.evaluator import Loop
from shapefix.interpreter.modules import Place, dotted_name, nodes
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, as_size
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.options import by_default
from shapefix.tensors.polynomials import ONE, Size
from shapefix.tensors.symbols import BatchCount

_TORCH = "torch.optim.lr_scheduler."
_LASTS = ("T_max", "total_steps", "num_training_steps")
"""Settings with the number of steps of a whole schedule."""
_POSITIONS = {"T_max": 1, "total_steps": 2, "num_training_steps": 2}
"""Their positions in the call that creates the scheduler."""
_NOTHING = 1e-6
"""Share of a learning rate without any effect."""
_LONGEST = 1000
"""A longer training in epochs may mean batches."""


@dataclass(frozen=True)
class WrongUnit:
    """Setting of a schedule in other units than the calls of `step`, and its value.

    vanishes is whether that is only known from the learning rate, which falls to nothing.
    """

    setting: str
    size: Size
    epochs: Loop
    batches: Loop
    vanishes: bool = False


def in_epochs(event: SchedulerStepped, context: CheckContext) -> WrongUnit | None:
    """Return the setting in epochs of a scheduler with a step for each batch."""
    loops = [each.loop for each in event.loops]
    if len(loops) < 2 or _has_arguments(event) or not isinstance(event.scheduler, LibraryObject):
        return None
    epochs, batches = loops[-2], loops[-1]
    count = _passes(epochs)
    if not _trains(batches, event, context) or goes_over_data(epochs):
        return None
    if not is_in_each_pass(event, batches):
        return None
    named = _setting_named_by(epochs, event.scheduler)
    if named is not None and (_passes(batches) or Size.of(2)).value != 1:
        setting, name = named
        return WrongUnit(setting, Size.symbol(name), epochs, batches)
    if count is None:
        return None
    # A loop over one batch is one over epochs.
    if (_passes(batches) or Size.of(2)).value == 1 or at_least(count, 2) is False:
        return None
    for setting, size in _settings(event.scheduler):
        vanishes = False
        if setting in _LASTS:
            is_meant = same(size, count) is True and size.value != 1
        else:
            largest, last = by_default(count).value, by_default(size).value
            is_meant = None not in (largest, last) and 1 < (last or 0) <= (largest or 0) <= _LONGEST
            vanishes = not is_meant and _vanishes(event.scheduler, last, largest, _passes(batches))
        if is_meant or vanishes:
            return WrongUnit(setting, size, epochs, batches, vanishes)
    return None


def more_steps(event: SchedulerStepped, context: CheckContext) -> tuple[int, int] | None:
    """Return the number of calls and that of planned steps, if it is smaller."""
    scheduler = event.scheduler
    if not isinstance(scheduler, LibraryObject) or scheduler.kind != f"{_TORCH}OneCycleLR":
        return None
    if _has_arguments(event) or not event.loops or scheduler.place is None:
        return None
    given = scheduler.arguments
    total = as_size(given.get("total_steps"))
    if total is None:
        parts = [as_size(given.get(name)) for name in ("epochs", "steps_per_epoch")]
        known = [part for part in parts if part is not None]
        total = known[0] * known[1] if len(known) == 2 else None
    last = given.get("last_epoch")
    if total is None or total.value is None or (isinstance(last, Constant) and last.value != -1):
        return None
    number = 1
    for each in event.loops:
        passes = _passes(each.loop)
        is_plain = is_followed(each.loop) and not ends_early(each.loop) and is_in_each_pass(event, each.loop)
        if (
            passes is None
            or passes.value is None
            or not is_plain
            or holds(each.loop.node, scheduler.place.node)
        ):
            return None
        number *= passes.value
    stepped = [each for each in of_kind(context, SchedulerStepped) if each.scheduler is scheduler]
    if {each.place.node for each in stepped} != {event.place.node}:
        return None
    return (number, total.value) if number > total.value else None


def in_batches(event: SchedulerStepped, context: CheckContext) -> WrongUnit | None:
    """Return the setting in batches of a scheduler with a step for each epoch only."""
    if not event.loops or _has_arguments(event) or not isinstance(event.scheduler, LibraryObject):
        return None
    epochs = event.loops[-1].loop
    inner = [each.loops[-1].loop for each in within(epochs, context, Backward)]
    batches = next((each for each in inner if each is not epochs), None)
    if batches is None or epochs in inner or goes_over_data(epochs) or not _trains(batches, event, context):
        return None
    if any(each.loops[-1].loop is not epochs for each in _steps_of(event, epochs, context)):
        return None
    count = _passes(epochs)
    for setting, size in _settings(event.scheduler):
        if setting not in _LASTS and setting != "steps_per_epoch":
            continue
        symbols = [each for each in size.symbols if isinstance(each, BatchCount)]
        number = _passes(batches)
        if setting == "steps_per_epoch":
            is_meant = bool(symbols) or (size.value or 0) > 1
        else:
            # Of several loaders, or a part of the batches of one, the unit may be another.
            is_counted = count is not None and number is not None and same(size, count * number) is True
            is_meant = bool(symbols) or (is_counted and number != ONE)
        if is_meant:
            return WrongUnit(setting, size, epochs, batches)
    return None


def _vanishes(scheduler: LibraryObject, every: int | None, epochs: int | None, batches: Size | None) -> bool:
    """Whether a learning rate falls to nothing in steps of batches, and not in steps of epochs."""
    gamma = scheduler.arguments.get("gamma")
    share = gamma.value if isinstance(gamma, Constant) else None
    count = None if batches is None else batches.value
    if not isinstance(share, float) or not every or not epochs or not count or not 0 < share < 1:
        return False
    return share ** (epochs * count // every) < _NOTHING <= share ** (epochs // every)


def _has_arguments(event: SchedulerStepped) -> bool:
    return not isinstance(event.place.node, cst.Call) or bool(event.place.node.args)


def _trains(batches: Loop, event: SchedulerStepped, context: CheckContext) -> bool:
    """Whether a loop over data trains with the scheduled optimizer in each pass."""
    steps = within(batches, context, OptimizerStepped)
    return (
        goes_over_data(batches)
        and bool(within(batches, context, Backward))
        and bool(steps)
        and all(each.optimizer is event.optimizer for each in steps)
        and all(each.loops[-1].loop is batches for each in steps)
    )


def _steps_of(event: SchedulerStepped, loop: Loop, context: CheckContext) -> list[SchedulerStepped]:
    return [each for each in within(loop, context, SchedulerStepped) if each.scheduler is event.scheduler]


def _settings(scheduler: LibraryObject) -> Iterator[tuple[str, Size]]:
    given = scheduler.arguments
    names = [*_LASTS, "steps_per_epoch"]
    if scheduler.kind == f"{_TORCH}StepLR":
        names.append("step_size")
    if scheduler.kind == f"{_TORCH}ExponentialLR":
        yield "gamma", ONE
    for name in names:
        size = as_size(given.get(name))
        if size is not None:
            yield name, size
    if scheduler.kind == f"{_TORCH}MultiStepLR":
        parts = [as_size(each) for each in elements(given.get("milestones")) or ()]
        if parts and parts[-1] is not None:
            yield "milestones", parts[-1]


def _passes(loop: Loop) -> Size | None:
    """Return the number of passes of a loop."""
    items: Value | None = loop.iterable
    known = elements(items)
    if known is not None:
        return Size.of(len(known))
    return items.length if isinstance(items, ListValue) else None


def _setting_named_by(epochs: Loop, scheduler: LibraryObject) -> tuple[str, str] | None:
    """Return the setting of unknown value stated by the variable with the number of passes, and the variable.

    The loop is `for epoch in range(epochs)`, or counts from 1.
    """
    loop, place = epochs.node, scheduler.place
    call = loop.iter if isinstance(loop, cst.For) else None
    if not isinstance(call, cst.Call) or dotted_name(call.func) not in ("range", "trange") or place is None:
        return None
    stop = call.args[0].value if len(call.args) == 1 else call.args[1].value if len(call.args) == 2 else None
    if isinstance(stop, cst.BinaryOperation) and isinstance(stop.operator, cst.Add) and len(call.args) == 2:
        is_from_one = all(
            isinstance(each, cst.Integer) and each.value == "1" for each in (call.args[0].value, stop.right)
        )
        stop = stop.left if is_from_one else None
    name = dotted_name(stop) if isinstance(stop, (cst.Name, cst.Attribute)) else ""
    function = enclosing_function(place)
    there = Place(place.module, loop)
    if not name or not holds(place.module.tree, loop) or enclosing_function(there) is not function:
        return None
    targets = [
        each.target
        for each in nodes(function or place.module.tree)
        if isinstance(each, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
    ]
    if sum(name == dotted_name(target) for target in targets) > 1 or not isinstance(place.node, cst.Call):
        return None
    for setting, position in _POSITIONS.items():
        given = rewrites.argument(place.node, position, setting)
        is_unknown = isinstance(scheduler.arguments.get(setting), Unknown)
        if is_unknown and given is not None and dotted_name(given.value) == name:
            return setting, name
    return None


def moved_out(event: SchedulerStepped, found: WrongUnit) -> Iterator[Fix]:
    """Move `scheduler.step()` after the loop over the batches."""
    if found.vanishes and found.setting != "gamma":
        advice = f"call it once per epoch, or set `{found.setting}` to a number of batches"
        yield Fix(Applicability.DISPLAY, advice, ())
        return
    module, line = event.place.module, enclosing_line(event.place)
    loop = found.batches.node
    if line is None or len(line.body) != 1 or not holds(loop, line) or line not in loop.body.body:
        return
    if len(loop.body.body) < 2:
        return
    rows, span, around = module.text.split("\n"), module.span(line), module.span(loop)
    indent = rows[around.row - 1][: around.column - 1]
    if indent.strip() or span.row != span.end_row:
        return
    end = end_of_line(rows, module.span(loop.body.body[-1]))
    kept = rows[span.row : end.row]
    text = "\n".join([*kept, f"{indent}{rows[span.row - 1].strip()}"])
    edit = Edit(Span(span.path, span.row, 1, end.row, end.column), text)
    yield Fix(Applicability.UNSAFE, "step once per epoch, after the loop over the batches", (edit,))


def moved_in(event: SchedulerStepped, found: WrongUnit, context: CheckContext) -> Iterator[Fix]:
    """Move `scheduler.step()` into the loop over the batches, after the optimizer's."""
    module, line = event.place.module, enclosing_line(event.place)
    steps = within(found.batches, context, OptimizerStepped)
    last = steps[-1].place
    target = enclosing_line(last)
    if line is None or target is None or last.module is not module or len(line.body) != 1:
        return
    if len(target.body) != 1 or steps[-1].calls != event.calls:
        return
    block = enclosing(module, line)[-2]
    rows, span, after = module.text.split("\n"), module.span(line), module.span(target)
    if not isinstance(block, cst.IndentedBlock) or len(block.body) < 2 or span.row != span.end_row:
        return
    indent = rows[after.row - 1][: after.column - 1]
    if indent.strip():
        return
    removed = Edit(Span(span.path, span.row, 1, span.row + 1, 1), "")
    inserted = Edit(end_of_line(rows, after), f"\n{indent}{module.code(line.body[0])}")
    message = "step once per batch, after the optimizer"
    yield Fix(Applicability.UNSAFE, message, (inserted, removed))


def keeps_first_rate(scheduler: Value) -> bool:
    """Whether the second step of a schedule has the first learning rate, too: `StepLR(optimizer, 30)`."""
    if not isinstance(scheduler, LibraryObject):
        return False
    if scheduler.kind == f"{_TORCH}StepLR":
        size = as_size(scheduler.arguments.get("step_size"))
        return size is None or same(size, ONE) is not True
    milestones = elements(scheduler.arguments.get("milestones"))
    return scheduler.kind == f"{_TORCH}MultiStepLR" and (
        milestones is None or not any(isinstance(each, Constant) and each.value == 1 for each in milestones)
    )
