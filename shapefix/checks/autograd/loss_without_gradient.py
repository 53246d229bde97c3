"""SF904: backward of a tensor without a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import after, of_kind, receiver_code
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.graph_copies import without_copy
from shapefix.checks.support.syntax import enclosing, enclosing_function, enclosing_line
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role, Span
from shapefix.domains.gradients import lineage
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import (
    Backward,
    BackwardOfNumber,
    OptimizerCreated,
    OptimizerStepped,
    TrainingEvent,
)
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes
from shapefix.interpreter.tensor_values import CutKind, GraphCut, TensorValue
from shapefix.tensors.ops import Op

_ERROR = ExpectedError(
    "RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn"
)
_FARTHEST = 200
_FEW = 20
_SWITCHES = frozenset({"torch.no_grad", "torch.inference_mode"})
_CREATING = frozenset({Op.CREATION, Op.TENSOR, Op.TO})
_COPYING = frozenset({"tensor", "as_tensor", "from_numpy", "new_tensor", "asarray", "FloatTensor"})
_DETACHING = frozenset({"detach", "detach_", "data"})
_TO_INTEGERS = frozenset({"long", "int", "short", "char", "byte", "bool", "to", "type", "type_as"})
_WITH_INDICES = frozenset({"max", "min", "topk", "sort", "kthvalue", "median", "mode", "cummax", "cummin"})
"""Functions with values and indices as results; the values keep their graph."""


@rule("SF904", on=Backward)
def loss_without_gradient(event: Backward, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    loss = event.loss
    if not isinstance(loss, TensorValue) or loss.origin is None:
        return
    if not (event.leaf or event.requires is False):
        yield from _from_cut_values(event, loss, context, rule)
        return
    if event.leaf and not any(_shares_loop(event, step) for step in after(event, context, OptimizerStepped)):
        return
    named = abbreviate(receiver_code(event.place)) or abbreviate(event.place.code)
    made, cut = loss.origin.place, loss.cut
    if loss.origin.op in _CREATING and _is_assigned_between(named, made, event.place):
        return
    if not _is_explained(loss, context):
        return
    module = event.place.module
    reason = "none of its inputs requires a gradient" if cut is None else _reason(cut, module)
    hidden = "; `requires_grad` hides the error: no weight gets a gradient" if event.leaf else ""
    yield rule.diagnostic(
        event.place.span,
        f"`{named}` has no graph: {reason}{hidden}",
        error=None if event.leaf else _ERROR,
        evidence=[
            *call_trace(event),
            *_steps(cut, made),
            Evidence(event.place.span, f"backward of `{named}` reaches no weight", Role.FAILURE),
        ],
        fixes=() if cut is None else (_fix(cut),),
    )


def _from_cut_values(
    event: Backward, loss: TensorValue, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    """Report a loss of copied or detached values with a new gradient flag.

    Their gradients may be read: `features.backward(copy.grad)` goes on where the graph ends.
    """
    graph = list(lineage(loss))
    starts = [each for each in graph if not each.sources]
    cuts = [each.cut for each in starts if each.cut is not None and each.cut.is_known]
    if event.requires is not True or not cuts or len(starts) > _FEW:
        return
    is_computed = any(
        each.sources and each.origin is not None and each.origin.producer is not None for each in graph
    )
    if is_computed or not all(each.cut in cuts or each.graph is False for each in starts):
        return
    steps = [each for each in after(event, context, OptimizerStepped) if _shares_loop(event, each)]
    built = {id(each.optimizer): each.modules for each in of_kind(context, OptimizerCreated)}
    if not steps or not all(built.get(id(each.optimizer)) for each in steps):
        return
    module = event.place.module
    scope = enclosing_function(event.place) or module.tree
    if any(
        isinstance(node, cst.Attribute) and node.attr.value in ("grad", "retain_grad")
        for node in nodes(scope)
    ):
        return
    named = abbreviate(receiver_code(event.place)) or abbreviate(event.place.code)
    yield rule.diagnostic(
        event.place.span,
        f"`{named}` trains no weight: {_reason(cuts[0], module)}; `requires_grad` hides the error",
        evidence=[
            *call_trace(event),
            *_steps(cuts[0], cuts[0].place),
            Evidence(event.place.span, f"backward of `{named}` reaches no weight", Role.FAILURE),
        ],
        fixes=(_fix(cuts[0]),),
    )


@rule("SF904", on=BackwardOfNumber)
def number_without_gradient(
    event: BackwardOfNumber, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    """Report backward of a Python number."""
    named, code = abbreviate(receiver_code(event.place)), abbreviate(event.read.code)
    where = rewrites.line_of(event.read, event.place.module)
    yield rule.diagnostic(
        event.place.span,
        f"`{named}` is a number: `{code}` ({where}) leaves the graph",
        error=ExpectedError("AttributeError", "'float' object has no attribute 'backward'"),
        evidence=[
            *call_trace(event),
            Evidence(event.read.span, "reads a Python number, without the graph", Role.CAUSE),
            *(Evidence(each.span, "returns the number") for each in event.read_by if each not in event.calls),
            Evidence(event.place.span, "a number has no `backward`", Role.FAILURE),
        ],
        fixes=[Fix(Applicability.DISPLAY, "call `.item()` only for logging, after `backward()`", ())],
    )


def _is_explained(loss: TensorValue, context: CheckContext) -> bool:
    """Whether the end of the graph is known, or no layer computed the first operands of the loss.

    A copy of unknown values next to the output of a model explains nothing.
    """
    cut = loss.cut
    if cut is None:
        return not any(of_kind(context, ForwardCalled)) and not _is_refused_leaf(loss)
    step = loss.origin
    if cut.is_known or step is None or step.place.node is cut.place.node:
        return True
    for _ in range(_FARTHEST):
        step = step.source
        if step is None or step.place.node is cut.place.node:
            return True
        if step.producer is not None:
            return False
    return False


def _is_refused_leaf(loss: TensorValue) -> bool:
    """Check for a loss of integers created with `requires_grad=True`: torch raises there, not in backward."""
    step = loss.origin
    for _ in range(_FARTHEST):
        if step is None or step.source is None:
            break
        step = step.source
    node = step.place.node if step is not None else None
    return isinstance(node, cst.Call) and any(
        given.keyword is not None and given.keyword.value == "requires_grad" for given in node.args
    )


def _shares_loop(one: TrainingEvent, other: TrainingEvent) -> bool:
    """Whether two events are in the same innermost loop, or both in one function outside of any."""
    loops = [each.loop for each in one.loops], [each.loop for each in other.loops]
    return loops[0][-1:] == loops[1][-1:] and (bool(one.loops) or one.calls == other.calls)


def _is_assigned_between(name: str, first: Place, last: Place) -> bool:
    """Whether the lines between two places assign the name again, or add to it."""
    if first.module is not last.module:
        return True
    if enclosing_function(first) is not enclosing_function(last):
        return _is_added_to(name, last) or not _is_returned(first)
    rows = first.module.text.split("\n")[first.span.end_row : last.span.row - 1]
    assigns = re.compile(rf"\s*{re.escape(name)}\s*[-+*/]?=(?!=)")
    return any(assigns.match(row) for row in rows)


def _is_added_to(name: str, place: Place) -> bool:
    """Whether the function around a place adds to a variable."""
    scope = enclosing_function(place) or place.module.tree
    return any(
        isinstance(node, cst.AugAssign) and place.module.code(node.target) == name for node in nodes(scope)
    )


def _is_returned(place: Place) -> bool:
    """Whether the result at a place is returned, by the same statement or by the next one."""
    path = enclosing(place.module, place.node)
    line = enclosing_line(place)
    if line is None or len(line.body) != 1:
        return False
    small = line.body[0]
    if isinstance(small, cst.Return):
        return small.value is place.node
    block = path[path.index(line) - 1]
    if not isinstance(small, cst.Assign) or not isinstance(block, cst.IndentedBlock):
        return False
    after = block.body[list(block.body).index(line) + 1 :][:1]
    last = after[0].body[0] if after and isinstance(after[0], cst.SimpleStatementLine) else None
    names = [target.target.value for target in small.targets if isinstance(target.target, cst.Name)]
    return isinstance(last, cst.Return) and isinstance(last.value, cst.Name) and last.value.value in names


def _reason(cut: GraphCut, seen_from: Module) -> str:
    code, line = _code(cut), rewrites.line_of(cut.place, seen_from)
    last = cut.operation.rpartition(".")[2]
    if cut.kind is CutKind.FROZEN:
        return f"the parameters of `{code}` ({line}) are frozen"
    if cut.kind is CutKind.UNRECORDED:
        switch = "without recording gradients"
        stated = cut.switch if cut.switch is not None else _decorator(cut.place)
        if stated is not None:
            sign = "" if stated is cut.switch else "@"
            switch = f"under `{sign}{abbreviate(stated.code)}`"
        return f"`{code}` ({line}) runs {switch}"
    if last in _DETACHING:
        return f"`{code}` ({line}) detaches it"
    if last in _COPYING:
        return f"`{code}` ({line}) copies values without their graph"
    if last in _TO_INTEGERS:
        return f"`{code}` ({line}) converts to integers, which have no gradient"
    indices = "the indices of " if last in _WITH_INDICES else ""
    return f"{indices}`{code}` ({line}) {'have' if indices else 'has'} no gradient"


def _code(cut: GraphCut) -> str:
    """Return the code of the operation, without parentheses around it."""
    code, node = cut.place.code, cut.place.node
    is_wrapped = isinstance(node, (cst.Comparison, cst.BinaryOperation)) and len(node.lpar) == 1
    return abbreviate(code[1:-1] if is_wrapped and code.startswith("(") else code)


def _steps(cut: GraphCut | None, made: Place) -> Iterator[Evidence]:
    if cut is not None and cut.switch is not None:
        what = "frozen here" if cut.kind is CutKind.FROZEN else "torch records no gradients from here on"
        yield Evidence(cut.switch.span, what, Role.HISTORY)
    elif cut is not None and cut.kind is CutKind.UNRECORDED:
        stated = _decorator(cut.place)
        if stated is not None:
            yield Evidence(stated.span, "torch records no gradients in this function", Role.HISTORY)
    if cut is not None:
        yield Evidence(cut.place.span, "the result has no graph", Role.CAUSE, "no graph from here on")
    if cut is None or made.node is not cut.place.node:
        yield Evidence(made.span, "computed here")


def _fix(cut: GraphCut) -> Fix:
    last = cut.operation.rpartition(".")[2]
    if cut.kind is CutKind.FROZEN:
        return Fix(Applicability.DISPLAY, "leave the trained parameters unfrozen", ())
    if cut.kind is CutKind.UNRECORDED:
        return rewrites.unsafe_or_advice("compute it while torch records gradients", _recording(cut))
    if last in _DETACHING:
        return rewrites.unsafe_or_advice("keep the graph: do not detach", _without_detach(cut.place))
    if last in _COPYING:
        message = "keep the tensor instead of a copy of its values"
        return rewrites.unsafe_or_advice(message, without_copy(cut))
    return Fix(Applicability.DISPLAY, f"compute the loss from the values before `{_code(cut)}`", ())


def _recording(cut: GraphCut) -> Edit | None:
    """Return the edit to enter `torch.enable_grad()`, or to remove the decorator of the function around."""
    if cut.switch is None:
        return _without_decorator(cut.place)
    node, module = cut.switch.node, cut.switch.module
    if not isinstance(node, cst.Call) or node.args or dotted_name(node.func) not in _SWITCHES:
        return None
    is_entered = any(isinstance(each, cst.WithItem) for each in enclosing(module, node)[-3:])
    return Edit(module.span(node), "torch.enable_grad()") if is_entered else None


def _without_decorator(place: Place) -> Edit | None:
    """Return the edit to remove `@torch.no_grad()` from the function around a place."""
    stated = _decorator(place)
    if stated is None or not isinstance(stated.node, cst.Call) or stated.node.args:
        return None
    return Edit(Span(stated.span.path, stated.span.row, 1, stated.span.end_row + 1, 1), "")


def _decorator(place: Place) -> Place | None:
    """Return the decorator of the function around a place against the recording of gradients."""
    around = [each for each in enclosing(place.module, place.node) if isinstance(each, cst.FunctionDef)]
    for decorator in around[-1].decorators if around else ():
        made = decorator.decorator
        if dotted_name(made.func if isinstance(made, cst.Call) else made) in _SWITCHES:
            return Place(place.module, made)
    return None


def _without_detach(place: Place) -> Edit | None:
    """Return the edit to remove `.detach()` or `.data`."""
    node, module = place.node, place.module
    attribute = node.func if isinstance(node, cst.Call) else node
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value not in ("detach", "data"):
        return None
    return Edit(module.span(attribute.value).end().to(module.span(node).end()), "")
