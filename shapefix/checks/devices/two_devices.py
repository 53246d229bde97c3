"""SF602: operations on tensors of two devices."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.device_placement import (
    is_bound_once_before,
    is_creation,
    lost_moves,
    made_in_module,
    with_device,
)
from shapefix.checks.support.device_texts import (
    came_from,
    device_code,
    device_text,
    is_local_name,
    moved_or_created,
    on_a_gpu,
)
from shapefix.checks.support.event_order import is_passed
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.operands import code_of, named
from shapefix.checks.support.syntax import enclosing, enclosing_class, enclosing_function
from shapefix.checks.support.torch_errors import device_error
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Evidence, Fix, Role
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.operations import Discarded
from shapefix.interpreter.modules import Place, dotted_name, nodes
from shapefix.interpreter.tensor_values import Device
from shapefix.tensors.ops import Op


@rule("SF602", on=DeviceMismatch)
def two_devices(event: DeviceMismatch, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not event.other.may_be_gpu or made_in_module(event) or event.undecided:
        return
    if event.cpu.source is not None and _is_apart_itself(event.cpu.source, context):
        return
    where = device_text(event.other, event.place)
    seen = place_seen(event)
    left, elsewhere = _named(event, event.here), _named(event, event.there)
    lost = lost_moves(event, context)
    reason = f"{left} {_is(event.here)} on the CPU, and {elsewhere} {_is(event.there)} on {where}"
    yield rule.diagnostic(
        seen.span,
        f"`{abbreviate(event.place.code)}`: {reason}",
        error=device_error(event),
        condition=on_a_gpu(event.other),
        evidence=[
            *call_trace(event),
            *came_from(event.cpu, _since(event.cpu)),
            *came_from(event.other, f"{moved_or_created(event.other)} {device_text(event.other)} here"),
            *(Evidence(each.place.span, "result unused here") for each in lost),
            Evidence(event.place.span, f"combined here: {reason}", Role.FAILURE),
        ],
        fixes=_kept(lost[0]) if lost else _fixes(event, seen),
        follows=Cause("SF601", lost[0].place.span) if lost else _created_alone(event, rule),
        habit=_mistake(event),
    )


def _is_apart_itself(source: Device, context: CheckContext) -> bool:
    """Whether the tensor at the source of a device is itself used with one on a GPU."""
    return any(
        isinstance(each, DeviceMismatch) and each.cpu.source is None and each.cpu.place is source.place
        for each in context.events
    )


def _since(device: Device) -> str:
    return "its weights are created on the CPU here" if device.of_weights else "on the CPU since this line"


def _created_alone(event: DeviceMismatch, rule: Rule) -> Cause | None:
    """Return the creation of a tensor on a device by a function combining it with values of its callers.

    It is the cause for all callers, and for all operations on its result.
    """
    made = event.other.place
    if made is None or not is_creation(made.node) or device_code(event.other) is None:
        return None
    home = enclosing_function(made)
    cpu = event.cpu.place
    if home is None or enclosing_function(event.place) is not home:
        return None
    if cpu is not None and enclosing_function(cpu) is home:
        return None
    return Cause(rule.code, made.span)


def _kept(lost: Discarded) -> list[Fix]:
    return [Fix(Applicability.DISPLAY, f"assign the result of `{abbreviate(lost.place.code)}`", ())]


def _is(number: int | None) -> str:
    return "are" if number is None else "is"


def _named(event: DeviceMismatch, number: int | None) -> str:
    if number is not None:
        name = event.operands[number].name
        text = named(event, number)
        return f"`{name}`" if text == "the input" and not name.isdigit() and name != "self" else text
    node = event.place.node
    layer = node.func if isinstance(node, cst.Call) else node
    if isinstance(layer, cst.Attribute) and layer.attr.value == "generate":
        layer = layer.value
    return f"the weights of `{abbreviate(event.place.module.code(layer))}`"


def place_seen(event: DeviceMismatch) -> Place:
    """Return the call passing on the CPU tensor, in the function with its creation or the other move."""
    made, moved = event.cpu.place, event.other.place
    if event.here is None or made is None:
        return event.place
    homes = [(each.module, enclosing_function(each)) for each in (made, moved) if each is not None]
    for place in (event.place, *reversed(event.calls)):
        if (place.module, enclosing_function(place)) in homes:
            return place
    return event.place


def _mistake(event: DeviceMismatch) -> str:
    """Return the mistake shown by several operations.

    That is a model left on the CPU, a layer made on a GPU, or the data of one moved model left on the CPU.
    """
    there, weights = event.other.place, event.cpu.place if event.cpu.of_weights else event.place
    owner = None if weights is None else enclosing_class(weights)
    if there is not None and isinstance(there.node, cst.Call):
        if dotted_name(there.node.func).removeprefix("torch.").startswith("nn."):
            return f"{there.span.path}:{there.span.row} is made on a device"
    if (event.here is None or event.cpu.of_weights) and weights is not None and owner is not None:
        return f"{weights.module.path}: {owner.name.value} is not moved"
    if there is not None and event.here is not None and not event.cpu.of_weights:
        return f"{there.span.path}:{there.span.row} leaves others on the CPU"
    return ""


def _fixes(event: DeviceMismatch, seen: Place) -> Iterator[Fix]:
    where = device_code(event.other)
    if event.here is None or event.cpu.of_weights:
        is_layer = event.here is None and event.function.startswith("torch.nn.")
        what = "layer" if is_layer else "model"
        yield Fix(Applicability.DISPLAY, f"move the {what} to {device_text(event.other)}, too", ())
        return
    made = event.cpu.place
    if where is None or event.other.place is None or made is None or event.cpu.source is not None:
        return
    code, there = event.other.place.module.code(where), event.other.place
    if event.cpu.by_default and is_creation(made.node) and _is_known(where, there, made):
        yield with_device(made, code, _safety(where, there, made, seen))
        return
    origin = event.operands[event.here].tensor.origin
    if origin is not None and origin.op is Op.TOKENIZE and isinstance(made.node, cst.Call):
        if _is_known(where, there, made):
            edit = rewrites.method_called(made.module, made.node, f"to({code})")
            yield Fix(_safety(where, there, made, seen), f"move the batch: `.to({code})`", (edit,))
        return
    if not _is_known(where, there, seen):
        return
    node = _passed(event, seen)
    if node is not None and not _is_assigned(seen, node):
        edit = rewrites.method_called(seen.module, node, f"to({code})")
        yield Fix(_safety(where, there, seen, seen), f"move it: `.to({code})`", (edit,))


def _is_assigned(place: Place, node: cst.CSTNode) -> bool:
    """Whether code assigns to an expression: `total` of `total += loss`."""
    around = enclosing(place.module, node)
    return len(around) > 1 and isinstance(around[-2], cst.AugAssign) and around[-2].target is node


def _safety(where: cst.BaseExpression, there: Place, here: Place, seen: Place) -> Applicability:
    """Return safe if the device is certainly the same, and the code before and after is one function's."""
    one_function = enclosing_function(here) is enclosing_function(seen)
    if not one_function or not _is_always_reached(there, here):
        return Applicability.UNSAFE
    if isinstance(where, cst.SimpleString):
        return Applicability.SAFE
    name, root = dotted_name(where), dotted_name(where).partition(".")[0]
    once = is_bound_once_before(root, here) and is_bound_once_before(root, there)
    again = name != root and any(
        isinstance(node, cst.AssignTarget) and dotted_name(node.target) == name
        for node in nodes(enclosing_function(here) or here.module.tree)
    )
    return Applicability.SAFE if once and not again else Applicability.UNSAFE


def _is_always_reached(there: Place, here: Place) -> bool:
    """Whether a run up to here also moves to the device: else the program may run without it.

    A move in another function, for example in `__init__`, must not be in a branch of it.
    """
    module = there.module
    if enclosing_function(there) is enclosing_function(here) and module is here.module:
        return is_passed(module, here.node, there.node)
    branches = (cst.If, cst.IfExp, cst.Try, cst.TryStar, cst.While, cst.Match, cst.ExceptHandler)
    around = enclosing(module, there.node)
    inner = next((n for n, node in reversed(list(enumerate(around))) if isinstance(node, cst.FunctionDef)), 0)
    return not any(isinstance(node, branches) for node in around[inner:])


def _passed(event: DeviceMismatch, seen: Place) -> cst.BaseExpression | None:
    """Return the expression of the tensor in the call passing it on."""
    if seen is event.place:
        return None if event.here is None else code_of(event, event.here)
    node = seen.node
    if isinstance(node, cst.Call) and len(node.args) == 1 and not node.args[0].star:
        return node.args[0].value if isinstance(node.args[0].value, cst.Name) else None
    return None


def _is_known(where: cst.BaseExpression, there: Place, here: Place) -> bool:
    """Whether an expression has a value at another place of the file: a string, or a name bound above."""
    if isinstance(where, cst.SimpleString):
        return True
    root = dotted_name(where).partition(".")[0]
    if not root or there.module is not here.module:
        return False
    function = enclosing_function(here)
    if enclosing_function(there) is function:
        return is_bound_once_before(root, here)
    return is_bound_once_before(root, here) and not is_local_name(there, root)
