"""SF105, SF601: an operation that makes another tensor, which nobody takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.layout.view_across_stride_gap import short
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.rewrites import enclosing, nodes
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Severity, Span
from shapefix.interpreter.containers import DictValue, elements
from shapefix.interpreter.events import Discarded
from shapefix.interpreter.gradients import lineage, requires_grad
from shapefix.interpreter.modules import dotted_name, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.training_events import Backward, OptimizerCreated
from shapefix.interpreter.values import Unknown, Value

_SHAPE_OPERATIONS = frozenset(
    {
        "view",
        "view_as",
        "reshape",
        "reshape_as",
        "flatten",
        "ravel",
        "unflatten",
        "transpose",
        "swapaxes",
        "swapdims",
        "t",
        "permute",
        "movedim",
        "moveaxis",
        "squeeze",
        "unsqueeze",
        "expand",
        "expand_as",
        "broadcast_to",
        "narrow",
        "contiguous",
        "repeat",
        "tile",
        "unfold",
        "flip",
        "roll",
        "adjoint",
    }
)
_CONVERSIONS = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "xpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "long",
        "int",
        "short",
        "char",
        "byte",
        "bool",
        "type",
        "type_as",
        "detach",
        "pin_memory",
    }
)
_WITH_TWIN_IN_PLACE = frozenset(
    {
        "masked_fill",
        "masked_scatter",
        "clamp",
        "clip",
        "clamp_min",
        "clamp_max",
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "sqrt",
        "exp",
        "log",
        "abs",
        "neg",
        "sigmoid",
        "tanh",
        "relu",
        "round",
        "floor",
        "ceil",
        "nan_to_num",
        "scatter",
        "scatter_add",
        "index_fill",
        "index_add",
        "index_copy",
        "fill_diagonal",
        "tril",
        "triu",
    }
)
"""What people write without the underscore, and then think that it was done in place."""


@rule(
    "SF105",
    "discarded-shape-operation",
    Severity.WARNING,
    "the result of `.reshape`, `.unsqueeze`, `.transpose` … is thrown away: the tensor stays as it was",
    Applicability.SAFE,
    on=Discarded,
)
def discarded_shape_operation(event: Discarded, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    if _is_lost(event, _SHAPE_OPERATIONS):
        is_safe = event.name is not None and _may_be_bound(event, run)
        yield _thrown_away(event, this, _assign(event, event.name) if is_safe and event.name else ())


@rule(
    "SF601",
    "discarded-result",
    Severity.WARNING,
    "the result of `.to(device)`, `.cuda()`, `.half()`, `.detach()`, `.clamp()` … of a tensor is thrown away",
    Applicability.SAFE,
    on=Discarded,
)
def discarded_result(event: Discarded, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    if not _is_lost(event, _CONVERSIONS | _WITH_TWIN_IN_PLACE):
        return
    if not event.name and _is_made_here(event):
        # `torch.zeros(1).cuda()` wakes the GPU up, and is meant to.
        return
    fixes = _repairs(event)
    if not fixes and not event.function.startswith("torch.Tensor."):
        # `torch.add(x, y)` alone is there to be measured.
        return
    yield _thrown_away(event, this, fixes if _may_be_bound(event, run) else ())


def _is_lost(event: Discarded, operations: frozenset[str]) -> bool:
    """Whether a tensor that one of these operations made is certainly not wanted by anybody."""
    kind, _, name = event.function.rpartition(".")
    if kind not in ("torch.Tensor", "torch") or name not in operations:
        return False
    if _is_display(event) or any(each.keyword and each.keyword.value == "out" for each in event.call.args):
        return False
    receiver = event.receiver.tensor if isinstance(event.receiver, Unknown) else event.receiver
    return isinstance(receiver, TensorValue) and receiver.certain


def _thrown_away(event: Discarded, this: Rule, fixes: Sequence[Fix]) -> Diagnostic:
    if _writes_in_place(event.call):
        method = event.function.rpartition(".")[2]
        own = _without_receiver(event)
        return this.diagnostic(
            event.place.span, f"the result of `{own}` is unused: `.{method}()` is not in-place", fixes=fixes
        )
    outcome = f"`{event.name}` itself does not change" if event.name else "the line does nothing"
    return this.diagnostic(
        event.place.span,
        f"the result of `{short(event.place.code)}` is thrown away: {outcome}",
        fixes=fixes,
    )


def _writes_in_place(call: cst.Call) -> bool:
    """Whether an earlier part of a chain changes the tensor: `squeeze_` of `x.squeeze_(-1).to(device)`."""
    return any(
        isinstance(node, cst.Call)
        and node is not call
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value.endswith("_")
        and not node.func.attr.value.endswith("__")
        for node in nodes(call)
    )


def _without_receiver(event: Discarded) -> str:
    """`.to(device)` of `x.squeeze_(-1).to(device)`."""
    code, function = event.place.module.code, event.call.func
    is_method = event.function.startswith("torch.Tensor.") and isinstance(function, cst.Attribute)
    before = code(function.value) if is_method else ""  # type: ignore[attr-defined]
    return short(code(event.call).removeprefix(before).strip())


_OF_GRADIENTS = frozenset(
    [
        "grad",
        "grad_fn",
        "is_leaf",
        "requires_grad",
        "requires_grad_",
        "retain_grad",
        "retains_grad",
        "register_hook",
        "register_post_accumulate_grad_hook",
    ]
)
_WHOLE_NUMBERS = frozenset(["long", "int", "short", "char", "byte", "bool"])


def _may_be_bound(event: Discarded, run: CheckContext) -> bool:
    """Whether the variable may be given another tensor, and gradients still go where they are looked for.

    They go to the leaf that was there before, which an optimizer may hold, and whose `grad` may be read.
    """
    held = event.held
    if not event.name or "." in event.name:
        # An attribute may be a parameter, and would change from call to call.
        return False
    if held is None:
        return True
    graph = requires_grad(held)
    if event.leaf or (graph is True and not held.sources):
        return False
    around = _function(enclosing(event.place.module, event.place.node))
    if any(_asks_for_gradient(node, event.name) for node in nodes(around)):
        return False
    if any(isinstance(each, OptimizerCreated) and _contains(each.given, held) for each in run.training):
        return False
    method = event.function.rpartition(".")[2]
    cuts = (method == "detach" and graph is not False) or (method in _WHOLE_NUMBERS and graph is True)
    return not cuts or not any(
        isinstance(each, Backward) and (not isinstance(each.loss, TensorValue) or _flows(each.loss, held))
        for each in run.training
    )


def _asks_for_gradient(node: cst.CSTNode, name: str) -> bool:
    """Whether a node reads a gradient of a variable: `x.grad`, `torch.autograd.grad(loss, x)`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in _OF_GRADIENTS and dotted_name(node.value) == name
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value == "grad" and any(
        dotted_name(part) == name for given in node.args for part in nodes(given)
    )


def _contains(value: Value | None, tensor: TensorValue, depth: int = 0) -> bool:
    """Whether a tensor is what an optimizer is given, or is in a list or a group of it."""
    own = value.tensor if isinstance(value, Unknown) else value
    if own is tensor or value is None or depth > 3:
        return own is tensor
    parts = value.fields.values() if isinstance(value, DictValue) else elements(value) or ()
    return any(isinstance(part, Value) and _contains(part, tensor, depth + 1) for part in parts)


def _flows(loss: TensorValue, tensor: TensorValue) -> bool:
    """Whether gradients of a loss flow back to a tensor."""
    return any(each is tensor for each in lineage(loss))


def _is_display(event: Discarded) -> bool:
    """Whether the file is the transcript of a session, where a line at the top level shows its value.

    Nobody else writes a bare name or attribute there.
    """
    lines = [line for line in event.place.module.tree.body if isinstance(line, cst.SimpleStatementLine)]
    shown = [part for line in lines for part in line.body if isinstance(part, cst.Expr)]
    return event.place.node in shown and any(
        isinstance(part.value, (cst.Name, cst.Attribute)) for part in shown
    )


def _is_made_here(event: Discarded) -> bool:
    """Whether the tensor is made in the statement itself."""
    node: cst.BaseExpression = event.call
    while isinstance(node, (cst.Call, cst.Attribute)):
        if isinstance(node, cst.Call) and not isinstance(node.func, cst.Attribute):
            return True
        node = node.func if isinstance(node, cst.Call) else node.value
    receiver = event.receiver
    step = receiver.origin if isinstance(receiver, TensorValue) else None
    inside = nodes(event.place.node)
    return step is not None and any(node is step.place.node for node in inside)


def _assign(event: Discarded, target: str) -> list[Fix]:
    span = event.place.span
    start = Span(span.path, span.row, span.column, span.row, span.column)
    return [Fix(Applicability.SAFE, f"assign it: `{target} = …`", (Edit(start, f"{target} = "),))]


def _repairs(event: Discarded) -> list[Fix]:
    """Assign the result to the name, or to the entry of the dictionary that is gone through.

    There is none where nobody reads the name behind the line: then something else was meant.
    """
    if not event.name:
        return []
    around = enclosing(event.place.module, event.place.node)
    loop = _loop_of(around, event.name)
    if _is_read_behind(event, loop or _function(around)):
        return _assign(event, event.name)
    entry = _entry(loop, event.name) if loop is not None else ""
    return _assign(event, entry) if entry else []


def _loop_of(around: list[cst.CSTNode], name: str) -> cst.For | None:
    """The loop that gives the name its values."""
    loops = [node for node in around if isinstance(node, cst.For) and name in target_names(node.target)]
    return loops[-1] if loops else None


def _function(around: list[cst.CSTNode]) -> cst.CSTNode:
    scopes = [node for node in around if isinstance(node, (cst.Module, cst.FunctionDef))]
    return scopes[-1] if scopes else around[0]


def _is_read_behind(event: Discarded, body: cst.CSTNode) -> bool:
    """Whether the code of body mentions the name behind the line."""
    module, here = event.place.module, event.place.span
    for node in nodes(body):
        if dotted_name(node) == event.name:
            span = module.span(node)
            if (span.row, span.column) >= (here.end_row, here.end_column):
                return True
    return False


def _entry(loop: cst.For, name: str) -> str:
    """`batch[k]` for the `v` of `for k, v in batch.items()`; empty for anything else."""
    if not isinstance(loop.target, cst.Tuple) or len(loop.target.elements) != 2:
        return ""
    key, value = (element.value for element in loop.target.elements)
    if not isinstance(key, cst.Name) or not isinstance(value, cst.Name) or value.value != name:
        return ""
    match loop.iter:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=batch), attr=cst.Name(value="items")), args=[]):
            return f"{batch}[{key.value}]"
        case _:
            return ""
