"""SF303: a tensor created from rows of different lengths."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import padding_code
from shapefix.checks.support.evidence import call_trace, own_lengths
from shapefix.checks.support.ragged_columns import ragged_condition
from shapefix.checks.support.rewrites import line_of
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Import
from shapefix.domains.batches import Stacked
from shapefix.domains.raggedness import PADDED_IN_MAP, Origin, origins, ragged
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue

_COLUMNS = frozenset({"input_ids", "attention_mask", "token_type_ids", "labels", "label"})


@rule("SF303", on=Stacked)
def tensor_of_ragged_rows(event: Stacked, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call = event.place.node
    found = ragged(event.rows)
    if found is None or not isinstance(call, cst.Call) or not call.args:
        return
    one, other = found
    made = next(origins(one), None)
    if one == other and (made is None or made.what == PADDED_IN_MAP):
        return
    module = event.place.module
    function = module.code(call.func)
    rows = "tensors" if _are_tensors(event) else "rows"
    key = _column(call.args[0].value)
    if key is not None:
        subject = f"`{key}` rows"
    elif isinstance(call.args[0].value, (cst.Name, cst.Attribute)):
        subject = f"`{abbreviate(module.code(call.args[0].value))}`: {rows}"
    else:
        subject = rows
    error = stacking_error(event)
    if made is None:
        yield rule.diagnostic(
            event.place.span,
            f"`{function}` gets {subject} of different lengths, {context.text(one)} and "
            f"{context.text(other)}",
            evidence=call_trace(event),
            error=error,
        )
        return
    yield rule.diagnostic(
        event.place.span,
        f"`{function}` gets {subject} of different lengths ({made.what}, {line_of(made.place, module)})",
        evidence=[
            *call_trace(event),
            own_lengths(made),
            Evidence(event.place.span, "combined into one tensor here"),
        ],
        condition=ragged_condition(made),
        error=error,
        fixes=_pad(event, call, key, made, context),
    )


def stacking_error(event: Stacked) -> ExpectedError:
    """Return the exception of torch or numpy."""
    if "numpy" in event.function:
        return numpy_error(event.function)
    if event.function.endswith("stack"):
        return ExpectedError("RuntimeError", "stack expects each tensor to be equal size")
    return ExpectedError("ValueError", "expected sequence of length ... (got ...)")


def numpy_error(function: str) -> ExpectedError:
    """Return the exception of a numpy function on rows of different lengths."""
    if function.endswith("stack"):
        return ExpectedError("ValueError", "all input arrays must have the same shape")
    return ExpectedError("ValueError", "setting an array element with a sequence")


def _are_tensors(event: Stacked) -> bool:
    items = elements(event.rows)
    first = items[0] if items else event.rows.element if isinstance(event.rows, ListValue) else None
    return isinstance(first, TensorValue)


def _column(rows: cst.BaseExpression) -> str | None:
    """Return the column in the code: `encoded["labels"]`, `[f["labels"] for f in features]`, `labels`."""
    if isinstance(rows, (cst.ListComp, cst.GeneratorExp)):
        return _column(rows.elt)
    if isinstance(rows, cst.Subscript) and len(rows.slice) == 1:
        index = rows.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            return str(index.value.evaluated_value)
    if isinstance(rows, cst.Attribute) and rows.attr.value in _COLUMNS:
        return rows.attr.value
    return rows.value if isinstance(rows, cst.Name) and rows.value in _COLUMNS else None


def _pad(event: Stacked, call: cst.Call, key: str | None, made: Origin, context: CheckContext) -> list[Fix]:
    if not event.function.startswith("torch.") or _rank(event) != 1:
        return []
    module = event.place.module
    rows = call.args[0].value
    function = module.code(call.func)
    if event.function == "torch.stack":
        if len(call.args) > 1:
            return []
        sequences = module.code(rows)
    elif event.function in ("torch.tensor", "torch.as_tensor"):
        namespace = function.rpartition(".")[0] or "torch"
        made_of = f"{namespace}.tensor({{}}, dtype={namespace}.long)"
        if isinstance(rows, (cst.ListComp, cst.GeneratorExp)):
            sequences = f"[{made_of.format(module.code(rows.elt))} {module.code(rows.for_in)}]"
        else:
            sequences = f"[{made_of.format('row')} for row in {module.code(rows)}]"
    else:
        return []
    value, certain = padding_code.padding_value(key, event.place, made, context)
    content = f"pad_sequence({sequences}, batch_first=True, padding_value={value})"
    return [
        Fix(
            Applicability.SAFE if certain else Applicability.UNSAFE,
            f"pad the rows with {value}" if certain else "pad the rows with 0, if 0 is not a valid token",
            (Edit(event.place.span, content),),
            (Import("torch.nn.utils.rnn", "pad_sequence"),),
            remark="" if certain else "if 0 is not a valid token",
        )
    ]


def _rank(event: Stacked) -> int:
    """Return the rank of one of the rows."""
    rows = event.rows
    if not isinstance(rows, (ListValue, TupleValue)):
        return 0
    items = elements(rows)
    row = items[0] if items else rows.element if isinstance(rows, ListValue) else None
    if isinstance(row, TensorValue):
        return row.layout.rank if row.layout is not None else 0
    inner = row.element if isinstance(row, ListValue) else None
    return 0 if isinstance(inner, (ListValue, TensorValue)) else 1
