"""Sources of the scores of a loss: activations and layers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import dropwhile

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support import rewrites
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Edit
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject, as_tensor
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op

KEPT = frozenset(
    {
        Op.VIEW,
        Op.RESHAPE,
        Op.FLATTEN,
        Op.UNFLATTEN,
        Op.TRANSPOSE,
        Op.PERMUTE,
        Op.MOVEDIM,
        Op.SQUEEZE,
        Op.UNSQUEEZE,
        Op.SLICE,
        Op.SELECT,
        Op.INDEX,
        Op.NARROW,
        Op.CLONE,
        Op.CONTIGUOUS,
        Op.CHANNELS_LAST,
        Op.TO,
        Op.TO_DTYPE,
        Op.REARRANGE,
    }
)
"""Operations with elements of their input as the result, unchanged."""
_FURTHEST = 16


@dataclass(frozen=True, slots=True)
class Source:
    """Operation computing the elements of a tensor, before views, slices and conversions."""

    step: LayoutStep

    @property
    def op(self) -> Op:
        return self.step.op

    @property
    def place(self) -> Place:
        """Place in the code: the layer's own line if it is an item of others, otherwise the call."""
        layer = self._item
        return self.step.place if layer is None or layer.place is None else layer.place

    @property
    def code(self) -> str:
        """Code of the operation in one line: `self.softmax(x)`, `nn.Softmax(dim=1)`."""
        return abbreviate(self.place.code)

    @property
    def _item(self) -> LibraryObject | None:
        """Layer created as an item: of a list, or as the argument of `nn.Sequential` or `layers.append`."""
        layer = self.step.producer
        if not isinstance(layer, LibraryObject) or not isinstance(layer.place, Place):
            return None
        outer = [type(each) for each in enclosing(layer.place.module, layer.place.node)[-3:-1]]
        is_item = outer == [cst.List, cst.Element] or outer[-1:] == [cst.Arg]
        return layer if is_item else None

    def function(self, context: CheckContext) -> str:
        """Qualified name of the function or of the layer's class, empty if it is not known."""
        if isinstance(self.step.producer, LibraryObject):
            return self.step.producer.kind
        call = _call_at(self.step.place, context)
        return "" if call is None else call.function

    def removal(self, context: CheckContext) -> Edit | None:
        """Edit to leave the operation out, None if its input is not in the code."""
        layer = self._item
        if layer is not None and layer.place is not None:
            return _without_item(layer.place)
        given = None if _is_used_elsewhere(self.step.place) else self._given(context)
        if given is None:
            return None
        node, module = self.step.place.node, self.step.place.module
        code = module.code(given)
        if _assigns_to(self.step.place) == code:
            # Not `x = x`.
            return rewrites.without_statement(self.step.place)
        return Edit(module.span(node), code)

    def bypass(self, consumer: Place, passed: cst.BaseExpression, context: CheckContext) -> tuple[Edit, ...]:
        """Edits to pass the operation's input to a consumer instead of its result; empty if that is unclear.

        The result and the input must be variables of the function of the consumer. Without another use of the
        result, the operation is removed.
        """
        place, result = self.step.place, _assigns_to(self.step.place)
        scope = enclosing_function(place) or place.module.tree
        if self._item is not None or place.module is not consumer.module or not result:
            return ()
        given = self._given(context)
        uses = [node for node in nodes(passed) if dotted_name(node) == result]
        if not isinstance(given, cst.Name) or given.value == result or len(uses) != 1:
            return ()
        if (enclosing_function(consumer) or consumer.module.tree) is not scope:
            return ()
        module, names = place.module, (given.value, result)
        between = range(place.span.row + 1, consumer.span.row + 1)
        targets = (name for node in nodes(scope) for name in _bound_by(node, module, between))
        if (
            consumer.span.row <= place.span.row
            or not _NO_NAMES.isdisjoint(names)
            or set(names) & set(targets)
        ):
            return ()
        edit = Edit(module.span(uses[0]), given.value)
        mentions = sum(dotted_name(node) == result for node in nodes(scope))
        unused = rewrites.without_statement(place) if mentions == 2 else None
        return (edit,) if unused is None else (edit, unused)

    def _given(self, context: CheckContext) -> cst.BaseExpression | None:
        """Code of the operation's input; None if the operation is somewhere in a called model."""
        node, producer = self.step.place.node, self.step.producer
        call = _call_at(self.step.place, context)
        if not isinstance(node, cst.Call) or call is None:
            return None
        if isinstance(producer, LibraryObject) and call.receiver is not producer:
            return None
        if call.function.startswith("torch.Tensor.") and isinstance(node.func, cst.Attribute):
            return node.func.value
        source = rewrites.argument(node, 0, "input")
        return None if source is None else source.value


_NO_NAMES = frozenset({"_", "self"})


def _bound_by(node: cst.CSTNode, module: Module, rows: range) -> Iterator[str]:
    """Yield the names bound by a node in these rows."""
    if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)):
        if module.span(node.target).row in rows:
            yield from target_names(node.target)


def source_of_input(event: LossComputed | OperationCalled) -> Source | None:
    """Return the operation computing the input of a loss, None if it is not known."""
    given = as_tensor(event.given.get("input")) if isinstance(event, LossComputed) else None
    return None if given is None else source_of(given)


def source_of(tensor: TensorValue, through: Collection[Op] = KEPT) -> Source | None:
    """Return the operation computing the elements of a tensor, None if it is not known.

    Operations of through are skipped.
    """
    step = tensor.origin
    for _ in range(_FURTHEST):
        if step is None or step.op not in through:
            break
        step = step.source
    return None if step is None or step.op in through else Source(step)


def _assigns_to(place: Place) -> str:
    """Return the code of the only target of an assignment of the call at a place."""
    around = enclosing(place.module, place.node)
    assigned = around[-2] if len(around) > 1 else None
    if not isinstance(assigned, cst.Assign) or len(assigned.targets) != 1:
        return ""
    return place.module.code(assigned.targets[0].target)


_OF_ORDER = frozenset({"argmax", "argsort"})
"""Functions with the same result for scores and for their probabilities."""
_WITH_INDICES = frozenset({"max", "topk", "sort"})
"""Functions with a second result that is the same for scores and for their probabilities."""


def _is_used_elsewhere(place: Place) -> bool:
    """Check for a result in a variable with several uses, other than choices of the largest."""
    # `probabilities = scores.softmax(1).cpu()`
    path = reversed(enclosing(place.module, place.node))
    assign = next((node for node in path if isinstance(node, (cst.Assign, cst.BaseCompoundStatement))), None)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
    scope = enclosing_function(place) or place.module.tree
    if not isinstance(target, cst.Name):
        return False
    chosen = {id(name) for node in nodes(scope) for name in _only_ordered(node)}
    within = {id(each) for each in nodes(assign)} if assign is not None else set()
    later = dropwhile(lambda each: each is not assign, nodes(scope))
    uses = [each for each in later if isinstance(each, cst.Name) and each.value == target.value]
    uses = [each for each in uses if id(each) not in within]
    return sum(id(each) not in chosen for each in uses) > 1


def _only_ordered(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the names of tensors used for their order only: `x` of `x.argmax(1)` and `torch.max(x, 1)[1]`."""
    if isinstance(node, cst.Call) and _function(node) in _OF_ORDER:
        yield from _ordered(node)
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=[cst.Element(value=cst.Name(first)), _]))],
            value=cst.Call() as call,
        ) if first.startswith("_") and _function(call) in _WITH_INDICES:
            yield from _ordered(call)
        case cst.Subscript(
            value=cst.Call() as call,
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="1")))],
        ) if _function(call) in _WITH_INDICES:
            yield from _ordered(call)
        case cst.Attribute(value=cst.Call() as call, attr=cst.Name(value="indices")) if (
            _function(call) in _WITH_INDICES
        ):
            yield from _ordered(call)
        case _:
            pass


def _function(call: cst.Call) -> str:
    return dotted_name(call.func).rpartition(".")[2]


def _ordered(call: cst.Call) -> Iterator[cst.CSTNode]:
    """Yield the tensor of a call: its first argument, or the owner of the method; `x` for `x.data`."""
    is_function = dotted_name(call.func).partition(".")[0] in ("torch", "np", "numpy")
    given = call.args[0].value if is_function and call.args else getattr(call.func, "value", None)
    while isinstance(given, (cst.Attribute, cst.Call)):
        given = given.value if isinstance(given, cst.Attribute) else getattr(given.func, "value", None)
    if given is not None:
        yield given


def _call_at(place: Place, context: CheckContext) -> OperationCalled | None:
    """Return the last call of a library function at a place."""
    return next(
        (
            event
            for event in reversed(context.events)
            if isinstance(event, OperationCalled) and event.place.node is place.node
        ),
        None,
    )


def _without_item(place: Place) -> Edit | None:
    """Edit to remove a later argument of a Sequential, or an appended layer."""
    around = enclosing(place.module, place.node)
    match around[-3:-1]:
        case [cst.Call() as outer, cst.Arg() as item]:
            function = place.module.code(outer.func).rpartition(".")[2]
            if function == "Sequential" and item is not outer.args[0]:
                return rewrites.dropped(place.module, outer, item)
            if function == "append" and isinstance(around[-4], cst.Expr):
                return rewrites.without_statement(place)
    return None
