"""SF406: a list of tensors or an int in place of a tensor, or a tensor with several elements for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.counting_loops import counting_loop
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import argument
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.batches import ListGiven, Stacked
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.events import Event, TensorUsedAsIndex
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, LibraryObject, Value
from shapefix.tensors.ops import NORMALIZATIONS, PRODUCTS, SOFTMAXES, Op
from shapefix.tensors.polynomials import ONE, Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Symbol, UnknownSize

_OF_NUMBERS = frozenset(
    f"torch.{name}"
    for name in (
        "tensor",
        "as_tensor",
        "asarray",
        "LongTensor",
        "IntTensor",
        "BoolTensor",
        "FloatTensor",
        "Tensor",
    )
)
_FLOATING = (
    frozenset({Op.RECURRENT_CELL, Op.CONVOLUTION, Op.ATTENTION, Op.NORMALIZE})
    | PRODUCTS
    | NORMALIZATIONS
    | SOFTMAXES
)
"""Operations whose result is always floating-point, of unknown precision."""
_INDEX_ERROR = ExpectedError(
    "TypeError", "only integer tensors of a single element can be converted to an index"
)
_SCALAR_ERROR = ExpectedError("ValueError", "only one element tensors can be converted to Python scalars")
_FLOATS = frozenset({"float", "float16", "float32", "float64", "half", "double", "bfloat16"})


@rule("SF406", on=(Stacked, ListGiven, TensorUsedAsIndex))
def list_of_tensors(
    event: Stacked | ListGiven | TensorUsedAsIndex, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, Stacked):
        yield from _stacked(event, context, rule)
    elif isinstance(event, ListGiven):
        yield from _given(event, rule)
    else:
        yield from _asked_for_integer(event, context, rule)


def _stacked(event: Stacked, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = _several(event)
    node = event.place.node
    if found is None or not isinstance(node, cst.Call):
        return
    if any(
        _is_same(other, event) and _several(other) for other in context.events[: context.events.index(event)]
    ):
        # A loop over the keys of a batch reaches this line once per key.
        return
    tensor, count = found
    module = event.place.module
    function, given = module.code(node.func), node.args[0].value
    named = f"`{abbreviate(module.code(given))}`, " if isinstance(given, (cst.Name, cst.Attribute)) else ""
    collated = _collated(tensor, given)
    if collated:
        message = f"`{function}` gets a list of tensors: {collated}"
    else:
        message = f"`{function}` gets {named}a list of tensors of {context.text(count)} elements each"
    yield rule.diagnostic(
        event.place.span,
        message,
        evidence=[*call_trace(event), *_made(tensor)],
        error=_error(event, tensor),
        condition=context.condition([count]),
    )


def _several(event: Stacked) -> tuple[TensorValue, Size] | None:
    """Return a tensor in the list, and its number of elements; None if the number is unknown or one."""
    tensor = _tensor_in(event.rows)
    node = event.place.node
    if event.function not in _OF_NUMBERS or not isinstance(node, cst.Call) or not node.args:
        return None
    if tensor is None or tensor.layout is None:
        return None
    count = _elements(tensor.layout.sizes)
    return None if _may_be_one(count) else (tensor, count)


def _is_same(other: Event, event: Stacked) -> TypeGuard[Stacked]:
    return isinstance(other, Stacked) and other.place.node is event.place.node


def _given(event: ListGiven, rule: Rule) -> Iterator[Diagnostic]:
    if isinstance(event.given, LibraryObject):
        yield _of_output(event, event.given, rule)
        return
    if isinstance(event.given, TupleValue):
        yield from _of_tuple(event, rule)
        return
    if isinstance(event.given, Integer):
        yield _of_number(event, rule)
        return
    node = event.place.node
    tensor = _tensor_in(event.given)
    if not isinstance(node, cst.Call) or not node.args or tensor is None:
        return
    collated = _collated(tensor, node.args[0].value)
    reason = f": {collated}" if collated else ""
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` gets a list of tensors{reason}",
        evidence=[*call_trace(event), *_made(tensor)],
        error=ExpectedError("TypeError", "" if collated else "must be Tensor, not list"),
    )


def _of_tuple(event: ListGiven, rule: Rule) -> Iterator[Diagnostic]:
    """Yield the finding for a tuple of tensors: the result of a recurrent layer."""
    tensor = _tensor_in(event.given)
    if tensor is None or not isinstance(event.given, TupleValue):
        return
    layer = _layer_before(event, tensor)
    if layer is not None and layer.place is not None:
        made = abbreviate(layer.place.code)
        yield rule.diagnostic(
            layer.place.span,
            f"`{made}` returns a tuple of {len(event.given.items)} values, and the next layer of the "
            "Sequential takes a tensor; take its first value in a module of your own",
            evidence=[
                *call_trace(event),
                Evidence(layer.place.span, "returns the output and the states", Role.CAUSE),
                Evidence(event.place.span, f"`{abbreviate(event.place.code)}` passes the tuple on"),
            ],
            error=_no_tensor(event.method, "tuple"),
        )
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` gets a tuple of {len(event.given.items)} values, not a tensor; "
        "unpack it first",
        evidence=[*call_trace(event), *_made(tensor)],
        error=_no_tensor(event.method, "tuple"),
    )


def _layer_before(event: ListGiven, tensor: TensorValue) -> LibraryObject | None:
    """Return the layer of the same Sequential with the tuple as its result."""
    step = tensor.origin
    if step is None or step.place.node is not event.place.node:
        return None
    return step.producer if isinstance(step.producer, LibraryObject) else None


def _of_number(event: ListGiven, rule: Rule) -> Diagnostic:
    """Return the finding for an int, mostly the counter of `enumerate` instead of the batch."""
    loop = counting_loop(event)
    found = [] if loop is None else [Evidence(loop.target, "`enumerate` gives a counter and the batch")]
    counter = "" if loop is None else f", the counter `{loop.counter}` of `enumerate`"
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` gets an int{counter}, not a tensor",
        evidence=[*call_trace(event), *found],
        error=ExpectedError("TypeError or AttributeError"),
        fixes=() if loop is None else (loop.fix,),
    )


def _of_output(event: ListGiven, output: LibraryObject, rule: Rule) -> Diagnostic:
    """Return the finding for the output object of a model of transformers."""
    has_scores = "logits" in output.fields
    made = [] if output.place is None else [Evidence(output.place.span, "the model returns an object here")]
    wanted = "its tensor `logits`" if has_scores else "one of its tensors"
    return rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` gets the model's output object; use {wanted}",
        evidence=[*call_trace(event), *made],
        error=_no_tensor(event.method, ""),
        fixes=_scores_instead(event) if has_scores else (),
    )


def _no_tensor(method: str, kind: str) -> ExpectedError:
    if method:
        return ExpectedError("AttributeError", f"object has no attribute '{method}'")
    return ExpectedError("TypeError", f"must be Tensor, not {kind}" if kind else "must be Tensor")


def _scores_instead(event: ListGiven) -> Iterator[Fix]:
    """Yield the fix to pass the logits of an output in a variable."""
    node, module = event.place.node, event.place.module
    first = argument(node, 0, "input") if isinstance(node, cst.Call) else None
    given = None if first is None else first.value
    if event.method:
        read = node.func if isinstance(node, cst.Call) else node
        given = read.value if isinstance(read, cst.Attribute) else None
    if isinstance(given, cst.Name):
        edit = Edit(module.span(given), f"{given.value}.logits")
        yield Fix(Applicability.UNSAFE, f"use `{given.value}.logits`", (edit,))


def _asked_for_integer(event: TensorUsedAsIndex, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    count = _elements(event.layout.sizes)
    if _may_be_one(count):
        return
    module = event.place.module
    tensor = f"a tensor of {context.text(count)} elements"
    code, subject = abbreviate(event.place.code), abbreviate(module.code(event.subject))
    match event.role:
        case "index":
            message = f"`{code}` indexes a list with {tensor}"
        case "bound":
            message = f"`{subject}` is {tensor}, but a slice needs an int"
        case _:
            message = f"`{code}` gets {tensor}, not an int"
    yield rule.diagnostic(
        event.place.span,
        message,
        evidence=[*call_trace(event), *_made(event.tensor)],
        error=_INDEX_ERROR,
        condition=context.condition([count]),
    )


def _tensor_in(rows: Value) -> TensorValue | None:
    """Return a tensor in a list, or in a list of lists."""
    inner: Value | None = rows
    while isinstance(inner, (ListValue, TupleValue)):
        items = inner.items
        inner = items[0] if items else (inner.element if isinstance(inner, ListValue) else None)
    return inner if isinstance(inner, TensorValue) and inner.certain else None


def _elements(sizes: tuple[Size, ...]) -> Size:
    count = ONE
    for size in sizes:
        count = count * size
    return count


def _may_be_one(count: Size) -> bool:
    """Whether one element at most is possible: the unknown sizes are taken to be 1."""
    ones: dict[Symbol, int | Size] = {
        symbol: 1 for symbol in count.symbols if isinstance(symbol, UnknownSize)
    }
    least = substitute(count, ones).value
    return least is not None and least <= 1


def _collated(tensor: TensorValue, given: cst.BaseExpression) -> str:
    """Return the effect of the default collation, if it created the list."""
    if tensor.origin is None or tensor.origin.op is not Op.COLLATE:
        return ""
    name = given.value if isinstance(given, cst.Name) else ""
    if isinstance(given, cst.Subscript) and len(given.slice) == 1:
        index = given.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            name = str(index.value.evaluated_value)
    return f"the DataLoader's default collation turns {f'`{name}`' if name else 'rows'} into one"


def _made(tensor: TensorValue) -> Iterator[Evidence]:
    if tensor.origin is not None:
        op, text = tensor.origin.op, tensor.origin.text
        by = f"computed by `{text}`" if text == op.value else text
        yield Evidence(tensor.origin.place.span, f"tensor {by} here")


def _error(event: Stacked, tensor: TensorValue) -> ExpectedError:
    """Return the exception of torch: it depends on the dtype of the result."""
    node = event.place.node
    given = argument(node, 99, "dtype") if isinstance(node, cst.Call) else None
    if given is not None:
        dtype = event.place.module.code(given.value).rpartition(".")[2]
    elif event.function.endswith("Tensor"):
        dtype = event.function.rpartition(".")[2].removesuffix("Tensor").lower() or "float"
    elif tensor.dtype is None and tensor.origin is not None and tensor.origin.op in _FLOATING:
        dtype = "float"
    else:
        dtype = tensor.dtype or ""
    if not dtype:
        return ExpectedError("TypeError or ValueError")
    return _SCALAR_ERROR if dtype in _FLOATS else _INDEX_ERROR
