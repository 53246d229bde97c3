"""SF601: the unused result of an out-of-place operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.idle_results import is_idle
from shapefix.checks.support.syntax import enclosing, is_after
from shapefix.checks.support.unmoved_models import unmoved_model
from shapefix.checks.support.unused_results import assigned, is_unused, may_be_rebound, scope, unused_result
from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.domains.operations import Discarded
from shapefix.interpreter.modules import dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject

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


_MOVES = frozenset({"to", "cuda", "xpu"})


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


_OF_A_NETWORK = frozenset(
    {
        "__call__",
        "relu6",
        "leaky_relu",
        "elu",
        "gelu",
        "silu",
        "softplus",
        "softmax",
        "log_softmax",
        "dropout",
        "normalize",
        "layer_norm",
        "max_pool2d",
        "avg_pool2d",
        "pad",
        "interpolate",
        "cat",
        "stack",
    }
)
"""Functions of a forward, and calls of layers, without an effect of their own."""


@rule("SF601", on=Discarded)
def discarded_result(event: Discarded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not is_unused(event, _CONVERSIONS | _WITH_TWIN_IN_PLACE | _OF_A_NETWORK) or is_idle(event, context):
        return
    if not event.name and _is_made_here(event):
        # `torch.zeros(1).cuda()` wakes the GPU up, and is meant to.
        return
    fixes = _repairs(event, context)
    if not fixes and not event.function.startswith("torch.Tensor."):
        # `torch.add(x, y)` alone is there to be measured.
        return
    leaf = event.function.rpartition(".")[2]
    if leaf == "__call__":
        leaf = event.receiver.kind.rpartition(".")[2] if isinstance(event.receiver, LibraryObject) else leaf
    habit = "conversions are in-place" if leaf in _CONVERSIONS else f"{leaf}() is in-place"
    repairs: Sequence[Fix] = fixes if may_be_rebound(event, context) else ()
    model = unmoved_model(event.place.module) if leaf in _MOVES else ""
    if model and repairs:
        # With the tensor alone on a GPU, a program that runs on the CPU would raise.
        advice = f"assign the result, and move `{model}` to the same device, too"
        repairs = (Fix(Applicability.DISPLAY, advice, ()),)
    elif leaf in _MOVES and repairs and _is_one_of_several(event, context):
        advice = (
            "assign the results of all moves of the batch, and check that the model is on the same device"
        )
        repairs = (Fix(Applicability.DISPLAY, advice, ()),)
    yield unused_result(event, rule, repairs, habit)


def _is_one_of_several(event: Discarded, context: CheckContext) -> bool:
    """Whether the move of something unknown is discarded beside this one; modules move themselves.

    With one of them alone on a GPU, a program that runs on the CPU would raise.
    """
    around = enclosing(event.place.module, event.place.node)
    block = next(
        (node for node in reversed(around) if isinstance(node, (cst.IndentedBlock, cst.Module))), None
    )
    found = {each.call for each in context.events if isinstance(each, Discarded) and is_unused(each, _MOVES)}
    moved = set()
    for statement in block.body if block is not None else ():
        match statement:
            case cst.SimpleStatementLine(
                body=[cst.Expr(cst.Call(cst.Attribute(cst.Name(name), cst.Name(method))) as call)]
            ) if method in _MOVES and call not in found:
                moved.add(name)
    if not moved:
        return False
    modules: set[str] = set()
    for node in nodes(scope(around)):
        if isinstance(node, cst.Call):
            modules.add(dotted_name(node.func))
        elif isinstance(node, cst.Attribute) and node.attr.value in ("parameters", "train", "eval"):
            modules.add(dotted_name(node.value))
    return not moved <= modules


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


def _repairs(event: Discarded, context: CheckContext) -> list[Fix]:
    """Assign the result to the name, or to the entry of the iterated dictionary.

    There is no fix if the name is not read after the line: then something else was intended.
    """
    if not event.name:
        return []
    around = enclosing(event.place.module, event.place.node)
    loop = _loop_of(around, event.name)
    if _is_read_after(event, loop or scope(around)):
        return assigned(event, event.name, context)
    entry = _entry(loop, event.name) if loop is not None else ""
    return assigned(event, entry, context) if entry else []


def _loop_of(around: list[cst.CSTNode], name: str) -> cst.For | None:
    """Return the innermost loop over the name."""
    loops = [node for node in around if isinstance(node, cst.For) and name in target_names(node.target)]
    return loops[-1] if loops else None


def _is_read_after(event: Discarded, body: cst.CSTNode) -> bool:
    """Check whether the code of body mentions the name after the line."""
    return any(dotted_name(node) == event.name and is_after(event.place, node) for node in nodes(body))


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
