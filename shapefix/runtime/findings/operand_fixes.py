"""Fixes for the dtypes and sizes of operands, from the values measured in the run."""

from __future__ import annotations

import ast
import re

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.failing_code import code_at, expression, part_of
from shapefix.runtime.observations import RaisedException
from shapefix.runtime.protocol import CallArguments, DescribedValue

_NAMES = ("input", "target")
"""The first two parameters of each loss of torch."""
_PRECISE = ("float16", "bfloat16", "float32", "float64")
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_CLASSES = re.compile(
    r"expected target dtype to be Long|expected scalar type Long|nll_loss\w*\" not implemented for"
)
_PROBABILITIES = re.compile(r"result type Float can't be cast|Found dtype (?:Long|Int|Bool|Byte|Short)")
_DTYPES = re.compile(
    r"must have the same dtype|expected m1 and m2 to have the same dtype|expected scalar type"
    r"|Input type \(.*\) and (?:weight|bias) type|not implemented for '(?:Long|Int|Byte)'"
)
_SIZES = re.compile(r"[Tt]arget size \(.*(?:input size|different to the input)", re.DOTALL)


def operand_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to convert the target of a loss, or to remove a dimension of size 1."""
    if failure.origin == "module":
        return _module_fixes(failure, read)
    given = failure.details.get("given") if failure.origin == "loss" else None
    if given is None or not failure.stack:
        return ()
    prediction, target = (_operand(given, number) for number in (0, 1))
    if prediction is None or target is None:
        return ()
    place = failure.stack[0]
    if _CLASSES.search(failure.message) and target["dtype"] != "int64":
        return converted(place, read, 1, "long()", "class ids are int64")
    if _PROBABILITIES.search(failure.message) and target["dtype"] not in _PRECISE:
        return converted(place, read, 1, "float()", "targets are floats, as the predictions are")
    if _SIZES.search(failure.message):
        return squeezed(place, read, prediction, target)
    return ()


def _module_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to convert the input of a module in float32 from float64 or integers."""
    module = failure.details.get("module")
    if module is None or not failure.stack or _DTYPES.search(failure.message) is None:
        return ()
    value, weights = _operand(module["input"], 0), module["parameters"].values()
    own = {each["dtype"] for each in weights if each["kind"] == "tensor"}
    if value is None or own != {"float32"} or value["dtype"] in ("float32", "float16", "bfloat16"):
        return ()
    return converted(failure.stack[0], read, 0, "float()", "the weights are float32")


def squeezed(
    place: Span, read: ReadText, prediction: DescribedValue, target: DescribedValue
) -> tuple[Fix, ...]:
    """The fix for operands with and without a last dimension of size 1."""
    for number, longer, shorter in ((0, prediction, target), (1, target, prediction)):
        if longer["size"] == [*shorter["size"], 1]:
            return converted(place, read, number, "squeeze(-1)", "remove the last dimension of size 1")
    return ()


def converted(place: Span, read: ReadText, number: int, call: str, why: str) -> tuple[Fix, ...]:
    """The fix to call a method of an operand of the loss at a place, given by its number."""
    code = code_at(place, read)
    node = None if code is None else expression(code)
    if (
        code is None
        or not isinstance(node, ast.Call)
        or any(isinstance(each, ast.Starred) for each in node.args)
    ):
        return ()
    named = next((each.value for each in node.keywords if each.arg == _NAMES[number]), None)
    operand = node.args[number] if number < len(node.args) else named
    return () if operand is None else _called(place, code, operand, call, why)


def converted_side(place: Span, read: ReadText, number: int, call: str, why: str) -> tuple[Fix, ...]:
    """The fix to call a method of a side of the arithmetic at a place: 0 is the left one, 1 the right one."""
    code = code_at(place, read)
    node = None if code is None else expression(code)
    if code is None or not isinstance(node, ast.BinOp):
        return ()
    return _called(place, code, (node.left, node.right)[number], call, why)


def _called(place: Span, code: str, operand: ast.expr, call: str, why: str) -> tuple[Fix, ...]:
    written = ast.get_source_segment(code, operand)
    if written is None:
        return ()
    new = f"{written}.{call}" if isinstance(operand, _SIMPLE) else f"({written}).{call}"
    edit = Edit(part_of(place, code, operand), new)
    return (Fix(Applicability.UNSAFE, f"{why}: `.{call}`", (edit,)),)


def _operand(given: CallArguments, number: int) -> DescribedValue | None:
    args = given["args"]
    value = args[number] if number < len(args) else given["kwargs"].get(_NAMES[number])
    return value if value is not None and value["kind"] == "tensor" else None
