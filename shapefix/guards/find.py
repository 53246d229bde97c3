"""Run functions with unknown arguments, and collect the sizes needed by their operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from shapefix.engine.interpretation import ProjectFiles, ProjectModules
from shapefix.guards.fixed_layers import ProjectTexts, constructions
from shapefix.guards.needs import (
    CASTS,
    CONCATENATIONS,
    LAYERS,
    PAIRS,
    Need,
    argument,
    cat_need,
    kind_of_layer,
    layer_need,
    preserved,
    sum_need,
)
from shapefix.interpreter.annotations import annotated_tensor
from shapefix.interpreter.calls import Arguments, instantiate
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.functions import run_function
from shapefix.interpreter.modules import Module, called_name, children
from shapefix.interpreter.names import scope_of
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Binding, Constant, InstanceValue, LibraryObject, Unknown, Value
from shapefix.light_dataclasses import dataclass
from shapefix.sizes.certain_calls import certain_calls
from shapefix.sizes.run import STEPS
from shapefix.sizes.targets import Target, all_targets, target_named

_SEQUENTIAL = "torch.nn.Sequential"


@dataclass(frozen=True)
class FunctionGuards:
    """The conditions of one function of a file, in the order of their operations."""

    name: str
    node: cst.FunctionDef
    needs: tuple[Need, ...]


class GuardFinder:
    """Finds the guards of functions of one file."""

    def __init__(
        self, modules: ProjectModules, module: Module, files: ProjectFiles, texts: ProjectTexts
    ) -> None:
        self._module = module
        self._texts = texts
        self._ev = Evaluator(
            modules.library, files, STEPS, modules.versions, listening=frozenset({OperationCalled})
        )

    def close(self) -> None:
        """Free the state of the runs."""
        self._ev.close()

    def targets(self, name: str) -> list[Target]:
        """Return the function or class called name, or all of the file. Raises UnknownTarget."""
        return [target_named(self._ev, self._module, name)] if name else all_targets(self._ev, self._module)

    def find(self, target: Target) -> FunctionGuards:
        """Return the guards of a function; it is run for them once."""
        name = target.function.name if target.owner is None else target.owner.name
        is_scripted = self._texts.is_scripted(name, target.owner is None)
        if self._texts.obstacle is not None or _is_unfit(target) or is_scripted:
            return FunctionGuards(target.name, target.node, ())
        needs: dict[str, Need] = {}
        for need in list(self._needs(target)):
            needs.setdefault(need.about, need)
        return FunctionGuards(target.name, target.node, tuple(needs.values()))

    def _needs(self, target: Target) -> Iterator[Need]:
        certain = certain_calls(target.node)
        layers = {} if target.owner is None else _layers_of(target, self._texts)
        arguments: dict[str, Unknown] = {
            param.name.value: Unknown(param.name.value, tensor=self._annotated(param))
            for param in _plain_parameters(target.node)
        }
        # The facts of a run are forgotten at its end.
        with self._run(target, arguments) as (owner, events):
            names: dict[int, str] = {}
            joined: dict[int, list[str]] = {}
            cast: set[str] = set()
            for name, value in arguments.items():
                names[id(value)] = name
                if value.tensor is not None:
                    names[id(value.tensor)] = name
            for event in events:
                if event.place.node not in certain:
                    continue
                before = preserved(event)
                if before is not None and id(before) in names:
                    names[id(event.result)] = names[id(before)]
                    if event.function.removesuffix(".__call__") in CASTS:
                        cast.add(names[id(before)])
                if event.function in CONCATENATIONS:
                    parts, dim = _concatenated(event, names)
                    if parts and dim == -1:
                        joined[id(event.result)] = parts
                    if len(set(parts)) == 2 and (need := cat_need(parts[0], parts[1], dim)) is not None:
                        yield need
                for need in self._of_event(event, names, joined, layers, owner):
                    yield replace(need, is_float=need.is_float and cast.isdisjoint(need.axes))

    def _annotated(self, param: cst.Param) -> TensorValue | None:
        """Return the tensor of a parameter annotated as one."""
        self._ev.frames.append(Frame(self._module, scope_of(self._ev, self._module)))
        try:
            return annotated_tensor(self._ev, param)
        finally:
            self._ev.frames.pop()

    def _of_event(
        self,
        event: OperationCalled,
        names: dict[int, str],
        joined: dict[int, list[str]],
        layers: dict[str, cst.Call],
        owner: InstanceValue | None,
    ) -> Iterator[Need]:
        layer, kind = event.receiver, kind_of_layer(event)
        if event.function in PAIRS:
            if kind is not None and not _is_certain_loss(event, layers, owner):
                return
            (first, second), needs = PAIRS[event.function]
            one, other = names.get(id(argument(event, 0, first))), names.get(id(argument(event, 1, second)))
            if one is not None and other is not None and one != other:
                yield from needs(one, other)
            return
        tensor = argument(event, 0, "input")
        given, parts = names.get(id(tensor)), joined.get(id(tensor))
        if kind not in LAYERS or owner is None or not isinstance(layer, LibraryObject):
            return
        code = _layer_code(event, layer, layers, owner)
        if code is not None and given is not None:
            need = layer_need(layer, given, code)
        else:
            need = None if code is None or parts is None else sum_need(layer, parts, code)
        if need is not None:
            yield need

    @contextmanager
    def _run(
        self, target: Target, arguments: dict[str, Unknown]
    ) -> Iterator[tuple[InstanceValue | None, list[OperationCalled]]]:
        """Run a function; yield its object and the operations of the run."""
        ev = self._ev
        ev.allowance = ev.steps + STEPS
        ev.frames.append(Frame(self._module, scope_of(ev, self._module)))
        ev.journal.begin()
        try:
            made: InstanceValue | None = None
            if target.owner is not None and target.function.binding is not Binding.STATIC_METHOD:
                value = instantiate(ev, target.owner, Arguments([], {}), target.node)
                made = value if isinstance(value, InstanceValue) else InstanceValue(target.owner, open=True)
                arguments.pop(next(iter(arguments), ""), None)
            start = len(ev.events)
            ordered: list[Value] = [] if made is None else [made]
            keywords = {param.name.value for param in target.node.params.kwonly_params}
            ordered += (value for name, value in arguments.items() if name not in keywords)
            named: dict[str, Value] = {name: value for name, value in arguments.items() if name in keywords}
            run_function(ev, target.function, ordered, named, False, target.node, made)
            found = ev.events[start:]
            yield made, [event for event in found if isinstance(event, OperationCalled)]
        finally:
            ev.journal.undo()
            ev.frames.pop()


def _concatenated(event: OperationCalled, names: dict[int, str]) -> tuple[list[str], int]:
    """Return the arguments concatenated by a call, none with other tensors among them, and the dimension."""
    items = elements(argument(event, 0, "tensors") or Unknown())
    dim = argument(event, 1, "dim") or event.keywords.get("axis")
    number = 0 if dim is None else dim.value if isinstance(dim, Constant) else None
    parts = [names.get(id(item), "") for item in items or ()]
    if len(parts) != 2 or not all(parts) or type(number) is not int:
        return [], 0
    return parts, number


def _is_certain_loss(
    event: OperationCalled, layers: dict[str, cst.Call], owner: InstanceValue | None
) -> bool:
    """Check for a loss made by `__init__` only, or one made in the call."""
    call, layer = event.place.node, event.receiver
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Call):
        return True
    if owner is None or not isinstance(layer, LibraryObject):
        return False
    return _layer_code(event, layer, layers, owner) is not None


def _plain_parameters(function: cst.FunctionDef) -> list[cst.Param]:
    """Return the parameters of one argument each."""
    params = function.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _is_unfit(target: Target) -> bool:
    """Check for functions compiled from their source, and for class methods."""
    function = target.node
    if target.function.binding is Binding.CLASS_METHOD:
        return True
    if target.owner is not None and _mentions(target.owner.node, {"is_scripting"}):
        return True
    if function.asynchronous is not None or not isinstance(function.body, cst.IndentedBlock):
        return True
    return any(
        _mentions(each.decorator, {"jit", "script", "kernel", "overload"}) for each in function.decorators
    )


def _mentions(node: cst.CSTNode, names: set[str]) -> bool:
    if isinstance(node, cst.Name) and node.value in names:
        return True
    return any(_mentions(child, names) for child in children(node))


def _layers_of(target: Target, texts: ProjectTexts) -> dict[str, cst.Call]:
    assert target.owner is not None
    node = target.owner.node
    if texts.layer_obstacle is not None or not isinstance(node, cst.ClassDef):
        return {}
    first = _plain_parameters(target.node)[:1]
    if not first or first[0].name.value != "self":
        return {}
    # A method of a base is guarded with the layers of that base only.
    if target.node not in node.body.body:
        return {}
    return {
        name: call
        for name, call in constructions(node).items()
        if not texts.may_replace(node.name.value, name)
    }


def _layer_code(
    event: OperationCalled, layer: LibraryObject, layers: dict[str, cst.Call], owner: InstanceValue
) -> str | None:
    """Return the expression of a called layer: `self.name`, or `self.name[0]` in a Sequential."""
    call = event.place.node
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if not isinstance(call.func.value, cst.Name) or call.func.value.value != "self":
        return None
    name = call.func.attr.value
    made, held = layers.get(name), owner.fields.get(name)
    if made is None or not isinstance(held, LibraryObject):
        return None
    kind = layer.kind.removeprefix("torch.nn.")
    if held is layer and called_name(made) == kind:
        return f"self.{name}"
    if held.kind != _SEQUENTIAL or called_name(made) != "Sequential" or any(arg.star for arg in made.args):
        return None
    parts = held.fields.get("_modules")
    items = parts.items if isinstance(parts, ListValue) else None
    for index, (arg, item) in enumerate(zip(made.args, items or (), strict=False)):
        if item is layer and called_name(arg.value) == kind:
            return f"self.{name}[{index}]"
    return None
