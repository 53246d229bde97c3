"""Discarded results of tensor operations."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix
from shapefix.domains.gradients import depends_on
from shapefix.domains.operations import Discarded
from shapefix.domains.training import Backward, OptimizerCreated
from shapefix.interpreter.containers import DictValue, elements
from shapefix.interpreter.modules import dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import FALSE, Constant, LibraryObject, Unknown, Value, as_tensor
from shapefix.light_dataclasses import dataclass

_SHOWN = (cst.Name, cst.Attribute, cst.Subscript, cst.BinaryOperation, cst.Comparison)
_FUNCTIONAL = "torch.nn.functional"
_SHORT = {_FUNCTIONAL: "F"}
_CELL = re.compile(r"^# (?:%%|In\[)", re.MULTILINE)
"""Marks of cells in the scripts that Jupyter, Spyder and VS Code write."""


def is_unused(event: Discarded, operations: frozenset[str]) -> bool:
    """Whether the code certainly discards a tensor returned by one of these operations."""
    kind, _, name = event.function.rpartition(".")
    if name == "__call__":
        return name in operations and _is_of_a_pure_layer(event) and not _is_display(event)
    if kind not in ("torch.Tensor", "torch", _FUNCTIONAL) or name not in operations:
        return False
    if any(each.keyword and each.keyword.value in ("out", "inplace") for each in event.call.args):
        return False
    if (
        _is_display(event)
        or _loses_nothing(event)
        or _has_other_name(event, name)
        or _is_of_a_temporary(event)
    ):
        return False
    receiver = event.receiver.tensor if isinstance(event.receiver, Unknown) else event.receiver
    return isinstance(receiver, TensorValue) and receiver.certain


_PURE_LAYERS = frozenset(
    {
        "torch.nn.ReLU",
        "torch.nn.ReLU6",
        "torch.nn.LeakyReLU",
        "torch.nn.ELU",
        "torch.nn.GELU",
        "torch.nn.SiLU",
        "torch.nn.Sigmoid",
        "torch.nn.Tanh",
        "torch.nn.Softplus",
        "torch.nn.Softmax",
        "torch.nn.LogSoftmax",
        "torch.nn.Dropout",
        "torch.nn.Dropout1d",
        "torch.nn.Dropout2d",
        "torch.nn.Dropout3d",
        "torch.nn.MaxPool1d",
        "torch.nn.MaxPool2d",
        "torch.nn.AvgPool1d",
        "torch.nn.AvgPool2d",
        "torch.nn.AdaptiveAvgPool1d",
        "torch.nn.AdaptiveAvgPool2d",
        "torch.nn.Flatten",
    }
)
"""Layers without weights and statistics: a call has no effect but its result."""


def _is_of_a_pure_layer(event: Discarded) -> bool:
    """Whether a layer without side effects got a tensor with a name."""
    layer = event.receiver
    if not isinstance(layer, LibraryObject) or layer.kind not in _PURE_LAYERS:
        return False
    if not isinstance(event.place.node, cst.Expr) or event.held is None or not event.held.certain:
        return False
    in_place = layer.fields.get("inplace", FALSE)
    return isinstance(in_place, Constant) and in_place.value is False


def _has_other_name(event: Discarded, name: str) -> bool:
    """Whether the operation is called by another name: `fn(x)` in a benchmark calls any function."""
    called = event.call.func
    return isinstance(called, cst.Name) and called.value != name


def _is_of_a_temporary(event: Discarded) -> bool:
    """Whether only the line has the tensor, as in `torch.rand(6).reshape(2, 3)`."""
    start = event.call.func
    while isinstance(start, cst.Attribute):
        start = start.value
    return event.name is None and event.function.startswith("torch.Tensor.") and isinstance(start, cst.Call)


def _loses_nothing(event: Discarded) -> bool:
    """Whether the result is the value of the variable: `x.float()` of a float32 tensor.

    After a write in place, a conversion to a dtype that the tensor may have already is not worth a finding.
    """
    before, after = event.held or as_tensor(event.receiver), event.result
    if before is None or not isinstance(after, TensorValue):
        return False
    name = event.function.rpartition(".")[2]
    if after is before:
        return True
    if before.storage is after.storage and before.layout is not None and before.layout == after.layout:
        return name != "detach" or requires_grad(before) is False
    return before.dtype is None and name in _CASTS and written_in_place(event.call) is not None


def unused_result(event: Discarded, rule: Rule, fixes: Sequence[Fix], habit: str = "") -> Diagnostic:
    """Return the finding for an unused result; habit is as for a diagnostic."""
    code, owner = abbreviate(event.place.code), event.function.rpartition(".")
    if owner[2] == "__call__":
        layer = abbreviate(event.place.module.code(event.call.func))
        message = f"result of `{code}` is unused; `{layer}` does not change `{event.name}`"
        return rule.diagnostic(event.place.span, message, fixes=fixes, habit=habit)
    called = (
        f".{owner[2]}()" if owner[0] == "torch.Tensor" else f"{_SHORT.get(owner[0], owner[0])}.{owner[2]}()"
    )
    written = written_in_place(event.call)
    if written is not None:
        before, code = abbreviate(event.place.module.code(written)), _without_receiver(event)
        return rule.diagnostic(
            event.place.span, f"`{before}` is in-place, but the result of `{code}` is unused", fixes=fixes
        )
    return rule.diagnostic(
        event.place.span,
        f"result of `{code}` is unused; `{called}` is not in-place",
        fixes=fixes,
        habit=habit,
    )


def written_in_place(call: cst.Call) -> cst.Call | None:
    """Return the changing part of a chain: `x.squeeze_(-1)` of `x.squeeze_(-1).to(device)`."""
    node: cst.BaseExpression = call.func
    while isinstance(node, (cst.Call, cst.Attribute)):
        if isinstance(node, cst.Call):
            name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
            if name.endswith("_") and not name.endswith("__"):
                return node
            node = node.func
        else:
            node = node.value
    return None


def _without_receiver(event: Discarded) -> str:
    """`.to(device)` of `x.squeeze_(-1).to(device)`."""
    code, function = event.place.module.code, event.call.func
    is_method = event.function.startswith("torch.Tensor.") and isinstance(function, cst.Attribute)
    before = code(function.value) if is_method else ""  # type: ignore[attr-defined]
    return abbreviate(code(event.call).removeprefix(before).strip())


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
_CASTS = _WHOLE_NUMBERS | {"half", "float", "double", "bfloat16", "type", "type_as"}


def may_be_rebound(event: Discarded, context: CheckContext) -> bool:
    """Whether assigning the result to the variable keeps gradients at their expected place.

    Gradients flow to the original leaf: an optimizer may hold it, and the code may read its `grad`.
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
    around = scope(enclosing(event.place.module, event.place.node))
    if event.name in event.place.module.once(around, _asked_for_gradient):
        return False
    if any(isinstance(each, OptimizerCreated) and _contains(each.given, held) for each in context.training):
        return False
    method = event.function.rpartition(".")[2]
    cuts = (method == "detach" and graph is not False) or (method in _WHOLE_NUMBERS and graph is True)
    return not cuts or not any(
        isinstance(each, Backward) and (not isinstance(each.loss, TensorValue) or _flows(each.loss, held))
        for each in context.training
    )


def _asked_for_gradient(around: cst.CSTNode) -> frozenset[str]:
    """Return variables with a gradient read in a scope: `x.grad`, `torch.autograd.grad(loss, x)`."""
    found: set[str] = set()
    for node in nodes(around):
        if isinstance(node, cst.Attribute):
            if node.attr.value in _OF_GRADIENTS:
                found.add(dotted_name(node.value))
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value == "grad":
                found.update(dotted_name(part) for given in node.args for part in nodes(given))
    return frozenset(found)


def _contains(value: Value | None, tensor: TensorValue, depth: int = 0) -> bool:
    """Whether a tensor is the argument of an optimizer, or in a list or parameter group of it."""
    own = value.tensor if isinstance(value, Unknown) else value
    if own is tensor or value is None or depth > 3:
        return own is tensor
    parts = value.fields.values() if isinstance(value, DictValue) else elements(value) or ()
    return any(isinstance(part, Value) and _contains(part, tensor, depth + 1) for part in parts)


def _flows(loss: TensorValue, tensor: TensorValue) -> bool:
    """Whether gradients of a loss flow back to a tensor."""
    return depends_on(loss, tensor)


def _is_display(event: Discarded) -> bool:
    """Whether the file is the transcript of an interactive session: a top-level line shows its value.

    A line at the top level that computes nothing else, a bare name or `x + 1`, is the sign of one, and so is
    a mark of a notebook's cell. A line after which no code reads the variable can only show its value, too.
    """
    module = event.place.module
    shown = module.once(module.tree, _expressions)
    if event.place.node not in shown:
        return False
    if module.once(module.tree, _is_transcript):
        return True
    return event.name is not None and not _is_read_later(event, event.name.partition(".")[0])


def _is_read_later(event: Discarded, name: str) -> bool:
    """Whether code below a line at the top level, or in a function, reads the variable."""
    module = event.place.module
    around = module.path_to(event.place.node)[1]
    reads = module.once(module.tree, _reads)
    here = reads.numbers[around]
    return reads.last.get(name, -1) > here or reads.first_in_function.get(name, here + 1) <= here


@dataclass(frozen=True)
class _Reads:
    """Top-level statements by number: all, the last with a name, the first with it in a function."""

    numbers: dict[cst.CSTNode, int]
    last: dict[str, int]
    first_in_function: dict[str, int]


def _reads(tree: cst.Module) -> _Reads:
    numbers: dict[cst.CSTNode, int] = {}
    last: dict[str, int] = {}
    first: dict[str, int] = {}
    for number, statement in enumerate(tree.body):
        numbers[statement] = number
        for node in nodes(statement):
            if isinstance(node, cst.Name):
                last[node.value] = number
            elif isinstance(node, (cst.FunctionDef, cst.Lambda)):
                for inner in nodes(node):
                    if isinstance(inner, cst.Name):
                        first.setdefault(inner.value, number)
    return _Reads(numbers, last, first)


def _expressions(tree: cst.Module) -> frozenset[cst.Expr]:
    """The expression statements at the top level of a file."""
    lines = [line for line in tree.body if isinstance(line, cst.SimpleStatementLine)]
    return frozenset(part for line in lines for part in line.body if isinstance(part, cst.Expr))


def _is_transcript(tree: cst.Module) -> bool:
    return any(isinstance(part.value, _SHOWN) for part in _expressions(tree)) or bool(_CELL.search(tree.code))


def assigned(event: Discarded, target: str, context: CheckContext) -> list[Fix]:
    """Assign the result; unsafe unless the program raises without it, or its type is that of the tensor."""
    if not _is_bound_in_scope(event):
        return []
    # Without its graph, a result of the same type may still be no use; a network computes something else.
    kind, _, name = event.function.rpartition(".")
    keeps = event.alike and name not in ("detach", "__call__") and kind != _FUNCTIONAL
    safe = (keeps or _fails_without(event, context)) and not _is_written_later(event, context)
    safety = Applicability.SAFE if safe else Applicability.UNSAFE
    edit = Edit(event.place.span.start(), f"{target} = ")
    return [Fix(safety, f"assign the result: `{target} = …`", (edit,))]


def _is_bound_in_scope(event: Discarded) -> bool:
    """Whether the function around the line gives the variable its value before.

    An assignment makes the name local to the function: a variable of an outer function, or of the file, could
    not be read there any more.
    """
    name = (event.name or "").partition(".")[0]
    module = event.place.module
    around = scope(enclosing(module, event.place.node))
    if not isinstance(around, cst.FunctionDef):
        return True
    parameters = around.params
    named = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    if any(param.name.value == name for param in named):
        return True
    row = module.span(event.place.node).row
    return any(module.span(node).row <= row for node in module.once(around, _bindings).get(name, ()))


def _bindings(around: cst.CSTNode) -> dict[str, list[cst.CSTNode]]:
    """Return the bindings of each name in a scope, in their order."""
    found: dict[str, list[cst.CSTNode]] = {}
    for node in nodes(around):
        if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.For, cst.NamedExpr)):
            for name in target_names(node.target):
                found.setdefault(name, []).append(node)
    return found


def _fails_without(event: Discarded, context: CheckContext) -> bool:
    """Whether torch later rejects the tensor because it has another dtype, shape or device."""
    return event.held in context.rejected


def _is_written_later(event: Discarded, context: CheckContext) -> bool:
    """Whether the code writes into the memory of the tensor after the line, under any name.

    The write reaches all names of the tensor now, and would reach only some of them.
    """
    held = event.held
    if held is None:
        return True
    return context.last_writes.get(held.storage, -1) > context.moments[event]


def scope(around: list[cst.CSTNode]) -> cst.CSTNode:
    scopes = [node for node in around if isinstance(node, (cst.Module, cst.FunctionDef))]
    return scopes[-1] if scopes else around[0]
