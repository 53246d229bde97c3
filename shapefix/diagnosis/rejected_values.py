"""Find the expressions of a failing statement with the rejected value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set

from shapefix.diagnosis.explanations import MessageExplanation

_OF_CHECKPOINTS = frozenset({"checkpoint-keys", "checkpoint-sizes", "parameter-copy"})
OF_ARRAYS = frozenset({"object-array", "array-of-text", "negative-stride", "not-an-array", "unknown-dtype"})
"""The error pages about an array that makes no tensor."""
OF_ARGUMENTS = frozenset(
    {"array-reshape", "ambiguous-truth", "backward-of-many", "decoded-ids", "dataset-index", "empty-dataset"}
    | {"empty-stack", "float-as-size", "generation-arguments", "head-mismatch", "ids-or-embeddings"}
    | {"lists-by-name", "loader-not-iterator", "missing-column", "mixed-column", "not-iterable"}
    | {"optimizer-argument", "packed-lengths", "parameter-assignment", "split-lengths", "tensor-as-index"}
    | {"tensor-of-text", "tokenizer-input", "unlike-features", "weight-rank", "weight-type"}
    | {"write-into-expanded", "graph-indices", "group-count", "boolean-subtraction", "ctc-lengths"}
    | {"copied-graph", "generation-length", "batch-of-one", "leaf-in-place"}
)
"""The error pages about one of the arguments of the failing call."""
_CONVERSIONS = frozenset({"tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor", "LongTensor"})
_TENSOR_TYPES = frozenset({"Tensor", "Parameter"})
_TYPES = re.compile(r"'([^']*)' and '([^']*)'$")
_OPERATORS: dict[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "** or pow()",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def rejected_values(
    statement: ast.AST, explanation: MessageExplanation, tensors: Set[str]
) -> Iterator[ast.expr]:
    """Yield the candidates for the rejected value below a node; tensors are codes of the line."""
    for node in ast.walk(statement):
        yield from _of_node(node, explanation, tensors)


def _of_node(node: ast.AST, explanation: MessageExplanation, tensors: Set[str]) -> Iterator[ast.expr]:
    match explanation.name:
        case "missing-attribute":
            if isinstance(node, ast.Attribute) and node.attr == explanation.fields["name"]:
                yield node.value
        case "not-subscriptable":
            if isinstance(node, ast.Subscript):
                yield node.value
        case "list-index":
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
                yield node.value
        case "missing-key":
            if isinstance(node, ast.Subscript) and _may_be(node.slice, explanation.fields["key"]):
                yield node.value
        case "operand-types" | "none-operand" | "none-comparison":
            yield from _of_operator(node, explanation)
        case "zero-division":
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
                is_call = isinstance(node.right, ast.Call) and bool(node.right.args)
                yield node.right.args[0] if is_call and isinstance(node.right, ast.Call) else node.right
        case "length-of-none":
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
                yield from node.args
        case _ if isinstance(node, ast.Call):
            yield from _of_call(node, explanation, tensors)


def _may_be(key: ast.expr, stated: str) -> bool:
    """Whether a key may be the one of a message."""
    if isinstance(key, ast.Constant):
        return str(key.value) == stated
    return not isinstance(key, (ast.Slice, ast.Tuple))


def _of_operator(node: ast.AST, explanation: MessageExplanation) -> Iterator[ast.expr]:
    """Yield the side of an operator with the odd type: it is `None`, or is not a tensor as the other one."""
    types = _TYPES.search(explanation.message)
    if isinstance(node, ast.BinOp):
        operator: ast.operator | ast.cmpop = node.op
        sides = (node.left, node.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator, sides = node.ops[0], (node.left, node.comparators[0])
    else:
        return
    if types is None or _OPERATORS.get(type(operator)) != explanation.fields["operator"]:
        return
    for own, other, side in ((types[1], types[2], sides[0]), (types[2], types[1], sides[1])):
        if own == "NoneType" or (other in _TENSOR_TYPES and own not in _TENSOR_TYPES):
            yield side


def _of_call(node: ast.Call, explanation: MessageExplanation, tensors: Set[str]) -> Iterator[ast.expr]:
    method = node.func if isinstance(node.func, ast.Attribute) else None
    called = method.attr if method is not None else ""
    is_load = explanation.name in _OF_CHECKPOINTS and called == "load_state_dict"
    is_conversion = explanation.name in OF_ARRAYS and called in _CONVERSIONS
    is_tokenizer = explanation.name == "no-pad-token" and any(each.arg == "padding" for each in node.keywords)
    if explanation.name == "not-callable" or (is_tokenizer and method is None):
        yield node.func
    elif explanation.name == "second-backward" and method is not None and called == "backward":
        # Accelerate and DeepSpeed take the loss, `accelerator.backward(loss)`; a tensor takes its gradient.
        is_argument = node.args and ast.unparse(node.args[0]) in tensors
        yield node.args[0] if is_argument and ast.unparse(method.value) not in tensors else method.value
    elif is_load or is_conversion:
        yield from node.args[:1]
    elif explanation.name in OF_ARGUMENTS:
        yield from given_to(node)


def given_to(call: ast.Call) -> tuple[ast.expr, ...]:
    """Return the arguments of a call; without any, the object of a method."""
    given = (*call.args, *(each.value for each in call.keywords))
    return given or ((call.func.value,) if isinstance(call.func, ast.Attribute) else ())
