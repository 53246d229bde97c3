"""SF603: tensors of a module left on the CPU after the module moves to a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.device_placement import (
    bound_by,
    is_creation,
    lost_moves,
    made_in_module,
    tests_device,
    with_device,
)
from shapefix.checks.support.event_order import is_passed
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.operands import code_of, named
from shapefix.checks.support.syntax import (
    enclosing,
    enclosing_class,
    enclosing_function,
    enclosing_line,
    holds,
)
from shapefix.checks.support.torch_errors import device_error
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Cause, Condition, Diagnostic, Edit, Evidence, Fix, Role, Span
from shapefix.domains.devices import FORWARD, DeviceMismatch
from shapefix.interpreter.modules import (
    Module,
    Place,
    called_name,
    children,
    dotted_name,
    nodes,
    target_names,
)
from shapefix.interpreter.values import LibraryObject

_CASTS = frozenset({"half", "bfloat16", "double"})
"""Methods of a module that convert buffers, but not other tensors."""

_MOVERS = frozenset({"_apply", "to", "cuda"})
"""A class that has its own of these may move its tensors itself."""

_NOT_PERSISTENT = "1.6"
"""The first torch with `persistent=`: https://github.com/pytorch/pytorch/pull/37191."""


@rule("SF603", on=DeviceMismatch)
def left_on_the_cpu(event: DeviceMismatch, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    made = event.cpu.place
    if not made_in_module(event) or made is None or event.undecided or not _is_first(event, context):
        return
    if _depends_on_device(event, made):
        return
    owner = enclosing_class(made)
    if not context.uses_gpu() or (owner is not None and not context.may_be_moved(owner.name.value)):
        return
    assert event.cpu.within is not None
    if event.cpu.within.name.value in FORWARD:
        if _is_moved_afterwards(event):
            return
        yield rule.diagnostic(
            made.span,
            f"`{abbreviate(made.code)}` is always created on the CPU, even if the model is on a GPU",
            error=device_error(event),
            condition=Condition("the module is on a GPU", constant=True),
            evidence=[
                *call_trace(event),
                Evidence(event.place.span, f"combined with {_combined_with(event)} here", Role.FAILURE),
            ],
            fixes=_with_device(event, made),
            follows=next((Cause("SF601", lost.place.span) for lost in lost_moves(event, context)), None),
        )
        return
    assign = _assignment(made)
    name = _attribute(assign) if assign is not None else ""
    if assign is None or not name or _moves_itself(made) or _names_device(assign):
        return
    yield rule.diagnostic(
        made.module.span(assign),
        f"`{name}` is not a buffer: it stays on the CPU when the model moves to a GPU",
        error=device_error(event),
        condition=Condition("the module is on a GPU", constant=True),
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, f"combined with {_combined_with(event)} here", Role.FAILURE),
        ],
        fixes=_as_buffer(made, assign, name, is_lasting=context.permits_older("torch", _NOT_PERSISTENT)),
    )


def _names_device(assign: cst.CSTNode) -> bool:
    """Whether an assignment moves its value to a device of its caller: `torch.ones(3).to(self.device)`."""
    return any(
        (given := dotted_name(node.args[0].value)) and not given.startswith("torch.")
        for node in nodes(assign)
        if isinstance(node, cst.Call) and called_name(node) == "to" and node.args
    )


def _is_first(event: DeviceMismatch, context: CheckContext) -> bool:
    """Whether the tensor created at this place is combined with another one for the first time."""
    place = event.cpu.place
    same = (
        other
        for other in context.events
        if isinstance(other, DeviceMismatch) and other.cpu.place is not None and other.cpu.by_default
        and place is not None and other.cpu.place.node is place.node and not other.undecided
    )  # fmt: skip
    return next(same, None) is event


def _is_moved_afterwards(event: DeviceMismatch) -> bool:
    """Whether the code moves the result: `mask = torch.arange(n) < lengths`, then `mask.to(device)`.

    Both operands were on the CPU, then.
    """
    line, function = enclosing_line(event.place), enclosing_function(event.place)
    if line is None or function is None or not isinstance(line.body[0], cst.Assign):
        return False
    names = {name for each in line.body[0].targets for name in target_names(each.target)}
    return any(
        isinstance(node, cst.Attribute)
        and node.attr.value in ("to", "cuda")
        and _start_of_chain(node.value) in names
        for node in nodes(function)
    )


def _start_of_chain(node: cst.BaseExpression) -> str:
    """Return the variable at the start of a chain of methods: `mask` of `mask.unsqueeze(1).float()`."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        node = node.func.value
    return node.value if isinstance(node, cst.Name) else ""


def _depends_on_device(event: DeviceMismatch, made: Place) -> bool:
    """Whether a module on a GPU may take another path: `if x.is_cuda: mask = mask.cuda()`.

    A run with tensors on the CPU decides such a test, but the finding is about one with a GPU.
    """
    line = enclosing_line(made)
    names = {name for node in nodes(line) for name in _stated_names(node)} if line is not None else set()
    functions = {
        id(each): each for each in (enclosing_function(made), enclosing_function(event.place)) if each
    }
    for each in functions.values():
        names |= _derived_names(each, names)
    tests = [
        node for each in functions.values() for node in nodes(each) if isinstance(node, (cst.If, cst.IfExp))
    ]
    if any(_is_moved_in(test, names) for test in tests):
        return True
    method = event.cpu.within
    inside = [place for place in event.calls if method is not None and holds(method, place.node)]
    return any(
        tests_device(test.test) and (holds(test, place.node) or _leaves_before(test, place))
        for place in (made, event.place, *inside)
        for test in tests
    )


def _derived_names(function: cst.FunctionDef, names: set[str]) -> set[str]:
    """Return some variables, such as `self.filter`, and those of a function made of them."""
    found = set(names)
    for node in nodes(function):
        if isinstance(node, cst.Assign) and any(
            isinstance(part, (cst.Name, cst.Attribute)) and dotted_name(part) in found
            for part in nodes(node.value)
        ):
            found.update(name for target in node.targets for name in target_names(target.target))
    return found


def _stated_names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.AssignTarget):
        yield from filter(None, map(dotted_name, _targets(node.target)))


def _is_moved_in(test: cst.If | cst.IfExp, names: set[str]) -> bool:
    """Whether a branch moves one of the variables to a device."""
    return any(
        isinstance(node, cst.Attribute)
        and node.attr.value in ("to", "cuda")
        and dotted_name(node.value) in names
        for node in nodes(test)
    )


def _leaves_before(test: cst.If | cst.IfExp, place: Place) -> bool:
    """Whether a branch above a place returns or raises."""
    above = isinstance(test, cst.If) and enclosing(place.module, test)
    if not above or place.module.span(test).row > place.module.span(place.node).row:
        return False
    return any(isinstance(node, (cst.Return, cst.Raise)) for node in nodes(test))


def _combined_with(event: DeviceMismatch) -> str:
    if event.there is not None:
        return named(event, event.there)
    node = event.place.node
    layer = node.func if isinstance(node, cst.Call) else node
    return f"the weights of `{abbreviate(event.place.module.code(layer))}`"


def _with_device(event: DeviceMismatch, made: Place) -> Iterator[Fix]:
    if not is_creation(made.node):
        return
    function = enclosing_function(made)
    if function is None:
        return
    code = next(_sources(event, made, function), None)
    if code is not None:
        safety = Applicability.SAFE if _is_combined(code, event, made, function) else Applicability.UNSAFE
        yield with_device(made, f"{code}.device", safety)


def _is_combined(code: str, event: DeviceMismatch, made: Place, function: cst.FunctionDef) -> bool:
    """Whether a tensor is combined with the new one, or is the only argument of the function.

    Others may be on another device: lengths of sequences often stay on the CPU.
    """
    params = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
    if {param.name.value for param in params} - {"self"} == {code}:
        return True
    inside = {id(node) for node in nodes(made.node)}
    name = code.partition(".")[0]
    return any(
        isinstance(node, cst.Name) and node.value == name and id(node) not in inside
        for node in nodes(event.place.node)
    )


def _sources(event: DeviceMismatch, made: Place, function: cst.FunctionDef) -> Iterator[str]:
    """Yield tensors to copy the device from: one providing the sizes, or one combined with the new one."""
    named = [*_shaped(made.node)]
    other = code_of(event, event.there) if event.there is not None else None
    here = event.place.module is made.module and holds(function, event.place.node)
    if here and isinstance(other, cst.Name) and event.function.removeprefix("torch.nn.") not in _RECURRENT:
        # Recurrent layers also take packed sequences, which have no device.
        named.append(other.value)
    params = [param.name.value for param in (*function.params.params, *function.params.kwonly_params)]
    read = {name for node in nodes(function) for name in _shaped(node, "device")}
    named.extend(name for name in params if name in read)
    yield from (name for name in named if _is_tensor_at(name, event, made, function))
    layer = event.place.node.func if isinstance(event.place.node, cst.Call) else None
    name = dotted_name(layer) if layer is not None else ""
    if here and name:
        weight = _weight(event, made, name)
        if weight:
            yield f"{name}.{weight}"


def _shaped(made: cst.CSTNode, *others: str) -> Iterator[str]:
    """Names with their sizes read by an expression: `x` of `torch.zeros(x.size(0), 4)`."""
    for node in nodes(made):
        if isinstance(node, cst.Attribute) and node.attr.value in ("shape", "size", *others):
            if isinstance(node.value, cst.Name):
                yield node.value.value


def _is_tensor_at(name: str, event: DeviceMismatch, made: Place, function: cst.FunctionDef) -> bool:
    """Whether a name certainly holds a tensor at the creation of another one.

    It does where tensors are combined, and is not bound in between. What a parameter holds was perhaps only
    learned from what came after, so that all must get there who make the tensor.
    """
    if name not in event.tensors.get(function, ()):
        return False
    module = made.module
    then = next(
        (place for place in (event.place, *reversed(event.calls)) if holds(function, place.node)),
        event.place,
    )
    start, end = module.span(made.node), then.span
    bound = {module.span(node).row for node in nodes(function) if name in bound_by(node)}
    if any(start.row <= row <= end.end_row for row in bound):
        return False
    if any(row < start.row for row in bound):
        return True
    leaves = (cst.Return, cst.Raise, cst.Break, cst.Continue)
    return is_passed(module, made.node, then.node) and not any(
        _tests_value(node, name)
        or (isinstance(node, leaves) and start.row <= module.span(node).row < end.row)
        or (isinstance(node, _BRANCHES) and not holds(node, made.node) and _mentions(node, name))
        for node in nodes(function.body)
    )


_BRANCHES = (
    cst.If,
    cst.IfExp,
    cst.For,
    cst.While,
    cst.Try,
    cst.TryStar,
    cst.Match,
    cst.FunctionDef,
    cst.Lambda,
)


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(each, cst.Name) and each.value == name for each in nodes(node))


def _tests_value(node: cst.CSTNode, name: str) -> bool:
    """Whether a condition is about the value of a name: `if mask is not None`, `isinstance(x, list)`."""
    if isinstance(node, (cst.If, cst.IfExp, cst.While, cst.Assert)):
        return _mentions(node.test, name)
    return isinstance(node, cst.BooleanOperation) and _mentions(node, name)


_RECURRENT = ("RNN", "LSTM", "GRU")
WEIGHTS = {
    **dict.fromkeys(
        [
            "Linear",
            "Bilinear",
            "Conv1d",
            "Conv2d",
            "Conv3d",
            "ConvTranspose1d",
            "ConvTranspose2d",
            "ConvTranspose3d",
            "Embedding",
            "EmbeddingBag",
            "PReLU",
        ],
        "weight",
    ),
    **dict.fromkeys(_RECURRENT, "weight_ih_l0"),
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell"), "weight_ih"),
    "MultiheadAttention": "out_proj.weight",
    "TransformerEncoderLayer": "linear1.weight",
    "TransformerDecoderLayer": "linear1.weight",
}
"""The attribute that holds a parameter in every layer of a kind, for all of its settings."""


def _weight(event: DeviceMismatch, made: Place, name: str) -> str:
    """The attribute of the layer `self.name` certain to hold a tensor; empty if it is not known."""
    layer = event.layer
    if not isinstance(layer, LibraryObject) or layer.place is None or layer.place.module is not made.module:
        return ""
    owner = enclosing_class(made)
    stated = [node for node in nodes(owner) if isinstance(node, cst.Assign)] if owner is not None else []
    bound = [node for node in stated if _mentions_target(node, name)]
    if len(bound) != 1 or bound[0].value is not layer.place.node or _attribute(bound[0]) != name:
        return ""
    return WEIGHTS.get(layer.kind.removeprefix("torch.nn."), "")


def _mentions_target(assign: cst.Assign, name: str) -> bool:
    return any(dotted_name(node) == name for target in assign.targets for node in nodes(target))


def _assignment(made: Place) -> cst.Assign | None:
    """The statement assigning the tensor made at a place, or a value computed from it."""
    around = enclosing(made.module, made.node)
    return next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)


def _attribute(assign: cst.Assign) -> str:
    """`self.mask`, if the statement assigns nothing else."""
    if len(assign.targets) != 1:
        return ""
    name = dotted_name(assign.targets[0].target)
    return name if name.startswith("self.") and name.count(".") == 1 else ""


def _is_tensor(value: cst.BaseExpression, made: cst.CSTNode) -> bool:
    """Whether torch computes a value from the one made in it; False for containers and other objects."""
    while value is not made:
        if not isinstance(value, cst.Call):
            return False
        inside = [value.func, *(given.value for given in value.args)]
        around = next((node for node in inside if holds(node, made)), None)
        is_torch = dotted_name(value.func).partition(".")[0] == "torch"
        if around is value.func and isinstance(around, cst.Attribute):
            value = around.value
        elif around is not None and is_torch:
            value = around
        else:
            return False
    return True


def _moves_itself(made: Place) -> bool:
    owner = enclosing_class(made)
    body = owner.body.body if owner is not None else ()
    return any(isinstance(node, cst.FunctionDef) and node.name.value in _MOVERS for node in body)


def _as_buffer(made: Place, assign: cst.Assign, name: str, *, is_lasting: bool) -> Iterator[Fix]:
    """Yield a call of `register_buffer`; is_lasting is whether torch may be too old for `persistent=`."""
    owner = enclosing_class(made)
    if owner is None or not _is_tensor(assign.value, made.node):
        return
    module = made.module
    if not _is_free(owner, name):
        return
    whole, value = module.span(assign), module.span(assign.value)
    started = [module.span(node) for node in nodes(owner) if _starts_module(node)]
    if not any((span.row, span.column) < (whole.row, whole.column) for span in started):
        return
    start = Span(whole.path, whole.row, whole.column, value.row, value.column)
    end = whole.end()
    edits = (
        Edit(start, f'self.register_buffer("{name.removeprefix("self.")}", '),
        Edit(end, ")" if is_lasting else ", persistent=False)"),
    )
    text = "register a buffer: it moves with the model"
    if not is_lasting:
        text += "; `persistent=False` keeps it out of checkpoints"
    safe = (
        not is_lasting
        and _has_known_bases(module, owner)
        and _is_free_elsewhere(module, owner, name)
        and not any(_casts(node) for node in nodes(module.tree))
    )
    yield Fix(Applicability.SAFE if safe else Applicability.UNSAFE, text, edits)


def _casts(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in _CASTS


def _has_known_bases(module: Module, owner: cst.ClassDef) -> bool:
    """Whether a class inherits from `nn.Module` directly, or through classes of the same file.

    Any other class may have the attribute already, and `register_buffer` would raise.
    """
    for base in owner.bases:
        name = dotted_name(base.value)
        stated = _classes(module, name)
        if len(stated) == 1 and stated[0] is not owner:
            if not _has_known_bases(module, stated[0]):
                return False
        elif stated or name not in ("nn.Module", "torch.nn.Module", "Module"):
            return False
    return bool(owner.bases) and not owner.keywords


def _classes(module: Module, name: str) -> list[cst.ClassDef]:
    return [node for node in nodes(module.tree) if isinstance(node, cst.ClassDef) and node.name.value == name]


def _is_free_elsewhere(module: Module, owner: cst.ClassDef, name: str) -> bool:
    """Whether no other code of the file sets the attribute, or defines it.

    A buffer takes nothing but tensors, and no name that a base class, or a subclass, has given to something.
    """
    attribute = name.removeprefix("self.")
    related = {owner, *_relatives(module, owner)}
    stored = [
        target
        for node in nodes(module.tree)
        for target in _stored(node)
        if isinstance(target, cst.Attribute) and target.attr.value == attribute
    ]
    # Attributes of one name in unrelated classes are set through their own `self`.
    others = [node for node in nodes(module.tree) if isinstance(node, cst.ClassDef) and node not in related]
    apart = {id(target) for other in others for node in nodes(other) for target in _stored(node)
             if dotted_name(target) == name}  # fmt: skip
    if sum(id(target) not in apart for target in stored) != 1:
        return False
    bound = (bound_by(node) for each in related for node in _in_class(each))
    return not any(attribute in names or names & _ATTRIBUTE_METHODS for names in bound)


_ATTRIBUTE_METHODS = frozenset({"__setattr__", "__getattr__", "__getattribute__", "register_buffer"})


def _relatives(module: Module, owner: cst.ClassDef) -> Iterator[cst.ClassDef]:
    """Yield the bases and the subclasses of a class in its file."""
    bases: dict[str, set[str]] = {}
    for node in nodes(module.tree):
        if isinstance(node, cst.ClassDef):
            bases.setdefault(node.name.value, set()).update(dotted_name(base.value) for base in node.bases)
    above, below = {owner.name.value}, {owner.name.value}
    for _ in bases:
        above |= {base for name in above for base in bases.get(name, ())}
        below |= {name for name, inherited in bases.items() if inherited & below}
    for name in (above | below) - {owner.name.value}:
        yield from _classes(module, name)


def _is_free(owner: cst.ClassDef, name: str) -> bool:
    """Whether a class gives an attribute a value only once: a buffer cannot take a name in use."""
    stored = [target for node in nodes(owner) for target in _stored(node) if dotted_name(target) == name]
    attribute = name.removeprefix("self.")
    stated = any(attribute in bound_by(node) for node in _in_class(owner))
    return len(stored) == 1 and not stated


def _stored(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Targets assigned or deleted by one node of the code, part by part."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.Del)):
        yield from _targets(node.target)


def _targets(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _targets(element.value)
    else:
        yield target


def _in_class(owner: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The code of a class without the bodies of its methods."""
    for node in children(owner):
        yield node
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            yield from _in_class(node)


def _starts_module(node: cst.CSTNode) -> bool:
    """`super().__init__()`, or `nn.Module.__init__(self)`."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "__init__"
    )
