"""SF507: views, permutations, indices and splits impossible for a tensor's sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.conditions import comparison, in_backticks
from shapefix.checks.support.evidence import call_trace, layer_code, shape_trace
from shapefix.checks.support.hidden_states import RECURRENT, hidden_state
from shapefix.checks.support.operands import code_of, is_unlikely, made_inside, named, shown
from shapefix.checks.support.syntax import enclosing, enclosing_line, is_iterated, number_index
from shapefix.checks.support.torch_errors import UNPACKING, torch_error
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Edit, Evidence, Fix, Moment
from shapefix.domains.batches import OpRejectedForLastBatch
from shapefix.domains.operations import Viewed
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place, nodes
from shapefix.interpreter.targets import PARTS, ROWS
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import (
    IndexOutOfRange,
    NoSuchDimension,
    OneValuePerChannel,
    ShapeError,
    SizeMismatch,
    TooManyIndices,
    WrongNumberOfElements,
    WrongParts,
    WrongRank,
)
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size, product
from shapefix.tensors.symbols import BatchSize
from shapefix.tensors.verdicts import Undecided

_NOT_OURS = ("expand", "expand_as", "broadcast_to", "one_hot")
"""Operations of other rules: those of two tensors, and of class ids."""
_ARRAYS = (Op.NUMPY_CREATION, Op.NUMPY_CONVERSION)


@rule("SF507", on=(OpRejected, OpRejectedForLastBatch, Viewed))
def impossible_shape_operation(
    event: OpRejected | OpRejectedForLastBatch | Viewed, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, OpRejected):
        yield from _refused(event, context, rule)
    elif isinstance(event, OpRejectedForLastBatch):
        yield from _last_batch(event, context, rule)
    else:
        yield from _regrouped(event, context, rule)


def _refused(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not event.operands or is_unlikely(event):
        return
    if event.function in RECURRENT:
        yield from hidden_state(event, context, rule)
    if not _is_of_one_tensor(event):
        return
    operand = event.operands[0]
    reason = _reason(event, event.error, context)
    if reason is None:
        return
    subject, code = _subject(event), abbreviate(_code(event.place))
    rank = operand.layout.rank if operand.layout is not None else None
    kind = "tensor" if operand.tensor.origin is None or operand.tensor.origin.op not in _ARRAYS else "array"
    shape = f"{subject} is a 0-dim {kind}" if rank == 0 else f"{subject} is {shown(operand, context)}"
    message = f"`{code}`: {shape}, {reason}"
    if isinstance(event.error, WrongRank) and event.function.rpartition(".")[2] == "permute":
        message = f"`{code}`: {_sentence(reason)}"
    came = shape_trace(operand.tensor, context)
    number = list(_single_number(event))
    yield rule.diagnostic(
        event.place.span,
        message,
        error=torch_error(event, context),
        evidence=[
            *call_trace(event),
            *(came[-1:] if rank == 0 else came),
            Evidence(event.place.span, _sentence(reason)),
        ],
        fixes=[*number, *_rows_of_samples(event)],
        habit="number by index" if number else "",
    )


def _code(place: Place) -> str:
    """Return the code at a place; for unpacked names, the whole assignment."""
    assigned = _assignment(place)
    return place.code if assigned is None else place.module.code(assigned)


def _assignment(place: Place) -> cst.Assign | None:
    """Return the assignment around the unpacked names at a place."""
    if not isinstance(place.node, (cst.Tuple, cst.List)):
        return None
    around = enclosing(place.module, place.node)
    return next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)


def _subject(event: OpRejected) -> str:
    """Return the tensor's code; `x` if `x.shape` or `x.size()` is unpacked."""
    if event.operands[0].name == PARTS:
        return "each part"
    assigned = _assignment(event.place)
    if event.operands[0].name == ROWS and (assigned is None or _is_inner(assigned, event.place)):
        return f"the value of `{abbreviate(event.place.code)}`"
    if event.layer is not None and made_inside(event, 0):
        return f"the input of `{layer_code(event.layer)}`"
    value = event.place.node.value if isinstance(event.place.node, cst.Subscript) else None
    if assigned is not None:
        value = assigned.value
    if value is None:
        return named(event, 0)
    sized = value.func if isinstance(value, cst.Call) and not value.args else value
    if isinstance(sized, cst.Attribute) and sized.attr.value in ("shape", "size"):
        value = sized.value
    return f"`{abbreviate(event.place.module.code(value))}`"


def _is_inner(assigned: cst.Assign, place: Place) -> bool:
    """Whether the unpacked names are a part of a target: `(h, c)` in `out, (h, c) = lstm(x)`."""
    return all(target.target is not place.node for target in assigned.targets)


def _is_of_one_tensor(event: OpRejected) -> bool:
    name = event.function.rpartition(".")[2]
    if isinstance(event.error, NoSuchDimension):
        return True
    is_operation = event.function.startswith(("torch.Tensor.", "einops.")) or event.layer is None
    return (is_operation or name == "Unflatten") and len(event.operands) == 1 and name not in _NOT_OURS


def _reason(event: OpRejected, error: ShapeError, context: CheckContext) -> str | None:
    """Return why the tensor does not allow the operation."""
    if isinstance(error, WrongNumberOfElements):
        return _elements(event, error, context)
    if isinstance(error, WrongParts):
        parts = " + ".join(map(context.text, error.parts))
        return f"but its size {context.text(error.whole)} in dimension {error.dim} is not {parts}"
    if isinstance(error, TooManyIndices):
        if not error.rank:
            return f"and cannot be {'iterated over' if is_iterated(event.place) else 'indexed'}"
        return f"but {error.given} indices are too many for {_dimensions(error.rank)}"
    if isinstance(error, IndexOutOfRange):
        index, size = context.text(error.index), context.text(error.size)
        return f"but dimension {error.dim} of size {size} has no index {index}"
    if isinstance(error, NoSuchDimension):
        return f"but it has no dimension {error.dim}"
    if isinstance(error, WrongRank) and event.operands[0].name == PARTS:
        parts = "1 part is" if error.have == 1 else f"{error.have} parts are"
        return f"but {parts} unpacked into {error.want[0]} names"
    if isinstance(error, WrongRank) and event.operands[0].name == ROWS:
        return f"one tensor, but its dimension 0 is unpacked into {error.want[0]} names"
    if isinstance(error, WrongRank) and event.function == UNPACKING:
        sizes = "its only size is" if error.have == 1 else f"its {error.have} sizes are"
        return f"but {sizes} unpacked into {error.want[0]} names"
    if isinstance(error, WrongRank) and event.function.rpartition(".")[2] == "permute":
        return f"`permute()` lists {_dimensions(error.want[0])}, but {_subject(event)} has {error.have}"
    if isinstance(error, SizeMismatch) and event.function.startswith("einops."):
        return str(error)
    return None


def _sentence(reason: str) -> str:
    """Return the reason without its conjunction."""
    return reason.removeprefix("but ").removeprefix("and ").removeprefix("so ")


def _dimensions(rank: int) -> str:
    return "1 dimension" if rank == 1 else f"{rank} dimensions"


def _elements(event: OpRejected, error: WrongNumberOfElements, context: CheckContext) -> str:
    rows = _sample_and_row(event)
    if rows is not None:
        samples, wanted = rows
        layout = event.operands[0].layout
        each = " * ".join(context.text(size) for size in layout.sizes[1:]) if layout is not None else ""
        return f"so each sample has {each} = {samples} elements, not {wanted}"
    target = [size for size in error.target if size.value != -1]
    wanted_text = " * ".join(context.text(size) for size in target) or "1"
    whole = product(target).value
    if whole is not None and len(target) > 1:
        wanted_text = f"{wanted_text} = {whole}"
    if event.function.rpartition(".")[2].lower() == "unflatten":
        return f"but a size of {context.text(error.have)} is not {wanted_text}"
    if len(target) == len(error.target):
        return f"but it has {context.text(error.have)} elements, not {wanted_text}"
    return f"but its {context.text(error.have)} elements are not divisible by {wanted_text}"


def _sample_and_row(event: OpRejected) -> tuple[int, int] | None:
    """Return how many elements a sample has, and how many `x.view(-1, 400)` expects."""
    error, layout = event.error, event.operands[0].layout
    if not isinstance(error, WrongNumberOfElements) or layout is None or layout.rank < 3:
        return None
    if len(error.target) != 2 or event.function.rpartition(".")[2] not in ("view", "reshape"):
        return None
    first, wanted = error.target[0], error.target[1].value
    samples = product(layout.sizes[1:]).value
    if first.value != -1 and same(first, layout.sizes[0]) is not True:
        return None
    return (samples, wanted) if samples and wanted and wanted > 1 else None


def _rows_of_samples(event: OpRejected) -> Iterator[Fix]:
    """Suggest `x.flatten(1)` for `x.view(-1, 400)`, if a sample does not have 400 elements."""
    rows, subject = _sample_and_row(event), code_of(event, 0)
    if rows is not None and subject is not None:
        yield _flattened(event.place, subject, *rows)


def _single_number(event: OpRejected) -> Iterator[Fix]:
    """Suggest `.item()` for `loss.data[0]`, the way to read a number before torch 0.4.

    The result of `.item()` has no methods of a tensor: `best[0].item()` only loses its index.
    """
    node = event.place.node
    if not isinstance(event.error, TooManyIndices) or event.error.rank or not isinstance(node, cst.Subscript):
        return
    subject = _unwrapped(node.value)
    if not isinstance(subject, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or number_index(node) != 0:
        return
    module = event.place.module
    *_, around, _ = (None, *enclosing(module, node))
    if isinstance(around, cst.Del) or (
        isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)) and around.target is node
    ):
        return
    whole = _read_on(event.place) if isinstance(around, cst.Attribute) else node
    if whole is None:
        edit = Edit(event.place.span, module.code(node.value))
        yield Fix(Applicability.SAFE, "drop the index", (edit,))
        return
    code = f"{module.code(subject)}.item()"
    yield Fix(Applicability.SAFE, "use `.item()`", tuple(_replaced_in_line(event.place, whole, code)))


def _replaced_in_line(place: Place, node: cst.Subscript, code: str) -> Iterator[Edit]:
    """Replace an expression wherever its line has it: `x.data[0] if first else mean + x.data[0]`."""
    module, line = place.module, enclosing_line(place)
    for each in (node,) if line is None else nodes(line):
        if isinstance(each, cst.Subscript) and module.code(each) == module.code(node):
            yield Edit(module.span(each), code)


_ON_THE_WAY = ("data", "cpu", "detach", "numpy")
"""Attributes and methods before the index in code for torch 0.3: `loss.data.cpu().numpy()[0]`."""


def _unwrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the tensor without conversions made needless by `.item()`."""
    while True:
        inner = node.func if isinstance(node, cst.Call) and not node.args else node
        if not isinstance(inner, cst.Attribute) or inner.attr.value not in _ON_THE_WAY:
            return node
        node = inner.value


def _read_on(place: Place) -> cst.Subscript | None:
    """Return the second index around an index with conversions between: `loss[0].data.numpy()[0]`."""
    for outer in reversed(enclosing(place.module, place.node)[:-1]):
        if isinstance(outer, cst.Subscript) and number_index(outer) == 0:
            return outer if _unwrapped(outer.value) is place.node else None
        if not isinstance(outer, (cst.Attribute, cst.Call)):
            return None
    return None


def _last_batch(event: OpRejectedForLastBatch, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    refused, batch = event.refused, event.batch
    if is_unlikely(refused) or isinstance(refused.error, OneValuePerChannel):
        return
    full = context.text(batch.full)
    loader = batch.loader if isinstance(batch.loader, Place) else None
    made = (
        [] if loader is None else [Evidence(loader.span, f"batches of {full}, the last one may be smaller")]
    )
    length = batch.length.value if batch.length is not None else None
    left = "fewer"
    condition: Condition | None = Condition(
        f"the number of samples is not a multiple of {in_backticks(full)}"
    )
    if length is not None and batch.full.value is not None:
        left, condition = str(length % batch.full.value), None
    error = torch_error(refused, context, sizes=condition is None)
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` expects a full batch of {full} samples, but the last batch has "
        f"{left}",
        error=replace(error, moment=Moment.LAST_BATCH) if error is not None else None,
        evidence=[*call_trace(event), *made, *_frozen(refused, batch, context)],
        condition=condition,
        fixes=_for_all_batches(event, loader),
    )


def _frozen(refused: OpRejected, batch: BatchSize, context: CheckContext) -> Iterator[Evidence]:
    """Yield the steps fixing the number of samples."""
    seen: set[tuple[int, str]] = set()
    for operand in refused.operands:
        sizes = operand.layout.sizes if operand.layout is not None else ()
        if any(same(size, batch.full) for size in sizes):
            for each in shape_trace(operand.tensor, context)[-2:]:
                if (each.span.row, each.message) not in seen:
                    seen.add((each.span.row, each.message))
                    yield each
    yield Evidence(refused.place.span, f"{context.text(batch.full)} samples are assumed here")


def _for_all_batches(event: OpRejectedForLastBatch, loader: Place | None) -> Iterator[Fix]:
    yield from _batch_size_of_tensor(event)
    yield from rewrites.without_short_batch(loader)


def _batch_size_of_tensor(event: OpRejectedForLastBatch) -> Iterator[Fix]:
    """Replace `x.view(32, -1)` with `x.view(x.size(0), -1)`."""
    refused, batch = event.refused, event.batch
    node, module = event.place.node, event.place.module
    subject = code_of(refused, 0) if refused.operands else None
    layout = refused.operands[0].layout if refused.operands else None
    if not isinstance(node, cst.Call) or not isinstance(subject, (cst.Name, cst.Attribute)) or layout is None:
        return
    if not layout.rank or layout.sizes[0].only_symbol is not batch:
        return
    if refused.function.rpartition(".")[2] not in ("view", "reshape", "expand"):
        return
    for given in _sizes_given(node)[:1]:
        is_number = isinstance(given, cst.Integer) and int(given.value) == batch.full.value
        if is_number or (isinstance(given, (cst.Name, cst.Attribute)) and _is_full(refused.error, batch)):
            edit = Edit(module.span(given), f"{module.code(subject)}.size(0)")
            yield Fix(Applicability.SAFE, "take the number of samples from the tensor", (edit,))


def _is_full(error: ShapeError, batch: BatchSize) -> bool:
    """Whether the first size of a view is a full batch's."""
    return isinstance(error, WrongNumberOfElements) and same(error.target[0], batch.full) is True


def _sizes_given(node: cst.Call) -> list[cst.BaseExpression]:
    values = [given.value for given in node.args if given.keyword is None]
    if len(values) == 1 and isinstance(values[0], (cst.Tuple, cst.List)):
        return [element.value for element in values[0].elements]
    return values


def _regrouped(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report `x.view(-1, 400)` of samples with another number of elements."""
    verdict, layout, target = event.verdict, event.layout, event.target
    if not isinstance(verdict, Undecided) or not verdict.numel or len(target) != 2 or layout.rank < 3:
        return
    samples, wanted = product(layout.sizes[1:]).value, target[1].value
    batch = layout.sizes[0].only_symbol
    if batch is None or samples is None or wanted is None or not samples or not wanted:
        return
    if samples % wanted == 0 or wanted % samples == 0:
        return
    if event.undecided and _is_passed_in(event.tensor, event):
        return
    each = " * ".join(context.text(size) for size in layout.sizes[1:])
    multiple = wanted // gcd(samples, wanted)
    condition = Condition(
        f"{in_backticks(context.qualified(layout.sizes[0]))} is not a multiple of {multiple}",
        comparison(context.expression(layout.sizes[0]), "is not a multiple of", multiple),
    )
    code, node = abbreviate(event.place.code), event.call
    if not isinstance(node, cst.Call) or not node.args:
        return
    subject = node.args[0].value
    if isinstance(node.func, cst.Attribute) and not event.free:
        subject = node.func.value
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` mixes samples: rows of {wanted} elements, but each sample has {each} = {samples}",
        evidence=[
            *call_trace(event),
            *shape_trace(event.tensor, context),
            Evidence(event.place.span, f"rows of {wanted} elements do not match samples of {samples}"),
        ],
        condition=None if _never(layout.sizes[0], multiple) else condition,
        fixes=[_flattened(event.place, subject, samples, wanted)],
    )


def _is_passed_in(tensor: TensorValue, event: Viewed) -> bool:
    return tensor.origin is None or tensor.origin.function is not event.function


def _never(batch: Size, multiple: int) -> bool:
    """Whether a batch is known to be too small for its elements to fill whole rows."""
    symbol = batch.only_symbol
    full = symbol.full.value if isinstance(symbol, BatchSize) else None
    return full is not None and full < multiple


def _flattened(place: Place, subject: cst.BaseExpression, samples: int, wanted: int) -> Fix:
    remark = f"the next layer then gets {samples}, not {wanted}"
    code = place.module.code(subject)
    is_primary = isinstance(subject, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or subject.lpar
    return Fix(
        Applicability.UNSAFE,
        f"keep samples apart with `.flatten(1)`: {remark}",
        (Edit(place.span, f"{code}.flatten(1)" if is_primary else f"({code}).flatten(1)"),),
        remark=remark,
    )
