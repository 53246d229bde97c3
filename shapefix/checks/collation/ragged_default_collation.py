"""SF302: default collation of rows of different lengths."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import padding_code, rewrites
from shapefix.checks.support.evidence import call_trace, own_lengths
from shapefix.checks.support.ragged_columns import LABELS, ragged_condition, ragged_origin
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Import, Role
from shapefix.domains.batches import Collated
from shapefix.domains.raggedness import Origin
from shapefix.domains.windows import ShortWindow
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.modules import Module, Place, nodes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Reference, Text, Value


@rule("SF302", on=Collated)
def ragged_default_collation(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    default = _default_text(event)
    if default is None or event.single:
        return
    for key, row in _columns(event.sample):
        made = ragged_origin(row)
        if made is None:
            continue
        place = _collation_place(event)
        error = collation_error(event, row)
        named = f"`{key}` rows" if key is not None else "rows"
        yield rule.diagnostic(
            place.span,
            f"{default} stacks {named} of different lengths ({made.what}, "
            f"{rewrites.line_of(made.place, place.module)})",
            evidence=[
                *call_trace(event),
                own_lengths(made),
                Evidence(event.place.span, "collated here", Role.FAILURE),
            ],
            condition=ragged_condition(made),
            error=error,
            fixes=_pad_inputs(event, made, context),
        )
        return


@rule("SF302", on=ShortWindow)
def short_window(event: ShortWindow, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report shorter windows at the end of a series."""
    window, module = event.window, event.place.module
    width, code = context.text(window.width), abbreviate(window.place.code)
    where = rewrites.line_of(window.place, module)
    number = _counted(event)
    counted = () if number is None else (Evidence(number.span, "the samples are counted here"),)
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` ({where}) is shorter than {width} for the last samples: `__len__` counts each start",
        evidence=[
            *call_trace(event),
            Evidence(window.place.span, f"a window of {width} from the index of the sample on", Role.CAUSE),
            *counted,
            Evidence(event.place.span, "collated here", Role.FAILURE),
        ],
        error=ExpectedError("RuntimeError", "stack expects each tensor to be equal size"),
        fixes=[rewrites.unsafe_or_advice("leave out the samples without a whole window", _fewer(event))],
    )


def _fewer(event: ShortWindow) -> Edit | None:
    """Return the edit to `len(self.data) - self.window` of the number of samples."""
    counted, node = _counted(event), event.window.place.node
    part = node.slice[0].slice if isinstance(node, cst.Subscript) else None
    stop = part.upper if isinstance(part, cst.Slice) else None
    if counted is None or not isinstance(counted.node, cst.Call):
        return None
    if not isinstance(stop, cst.BinaryOperation) or not isinstance(stop.operator, cst.Add):
        return None
    width, code = stop.right, event.window.place.module.code(stop.right)
    # `__len__` has no local names of `__getitem__`.
    is_shared = isinstance(width, (cst.Attribute, cst.Integer)) or code.isupper()
    return Edit(counted.span.end(), f" - {code}") if is_shared else None


def _counted(event: ShortWindow) -> Place | None:
    """Return the number of samples in the code, the result of `__len__`."""
    if event.counted is None:
        return None
    returned = [each.value for each in nodes(event.counted.node) if isinstance(each, cst.Return)]
    value = returned[0] if len(returned) == 1 else None
    return None if value is None else Place(event.counted.module, value)


def collation_error(event: Collated, row: Value) -> ExpectedError:
    """Return the exception of torch or transformers on rows of different lengths."""
    if isinstance(row, TensorValue):
        return ExpectedError("RuntimeError", "stack expects each tensor to be equal size")
    if event.consumer.startswith("torch.") and event.collator is None:
        return ExpectedError("RuntimeError", "each element in list of batch should be of equal size")
    return ExpectedError("ValueError", "expected sequence of length ... (got ...)")


def _columns(sample: Value) -> Iterator[tuple[object, Value]]:
    """Yield the columns of a sample with their names, or the parts of a tuple without."""
    if isinstance(sample, DictValue):
        yield from sample.fields.items()
    else:
        yield None, sample
        for part in getattr(sample, "items", None) or ():
            if isinstance(part, DictValue):
                yield from part.fields.items()
            else:
                yield None, part


def _default_text(event: Collated) -> str | None:
    """Return the name of a collator without padding; None for any other."""
    collator = event.collator
    if isinstance(collator, Reference) and collator.name.endswith("default_data_collator"):
        return "`default_data_collator`"
    if isinstance(collator, LibraryObject) and collator.kind.endswith(".DefaultDataCollator"):
        return "`DefaultDataCollator`"
    if collator is not None:
        return None
    if event.consumer.startswith("torch."):
        return "`DataLoader` without a collate_fn"
    if event.consumer.startswith("transformers.") and event.tokenizer is None:
        return f"`{event.consumer.rpartition('.')[2]}` without a tokenizer or data_collator"
    return None


def _collation_place(event: Collated) -> Place:
    """Return the argument naming the collator, or else the call creating the batches."""
    node = event.place.node
    if isinstance(node, cst.Call) and event.collator is not None:
        for name in ("data_collator", "collate_fn"):
            given = rewrites.argument(node, 99, name)
            if given is not None:
                return Place(event.place.module, given)
    return event.place


def _pad_inputs(event: Collated, made: Origin, context: CheckContext) -> list[Fix]:
    call, module = event.place.node, event.place.module
    if not event.consumer or not isinstance(call, cst.Call) or any(given.star for given in call.args):
        return []
    keyword = "collate_fn" if event.consumer.startswith("torch.") else "data_collator"
    if not isinstance(event.sample, DictValue):
        return _pad_sequence(event, module, call, keyword)
    tokenizer = padding_code.tokenizer_at(event.place, made, context)
    if tokenizer is None or not padding_code.has_pad_token(made, context):
        return []
    if keyword == "collate_fn" and any(isinstance(value, Text) for value in event.sample.fields.values()):
        return []
    labels = any(ragged_origin(event.sample.fields.get(key)) is not None for key in LABELS)
    name = "DataCollatorForSeq2Seq" if labels else "DataCollatorWithPadding"
    arguments = f"{tokenizer}, label_pad_token_id=-100" if labels else tokenizer
    code = f"{keyword}={name}({arguments})"
    given = rewrites.argument(call, 99, keyword)
    edit = rewrites.appended(module, call, code) if given is None else rewrites.replaced(module, given, code)
    old = rewrites.argument_name(given)
    return [
        Fix(
            Applicability.SAFE,
            f"collate with `{name}`, which pads the rows",
            (edit,),
            (Import("transformers", name),),
            (Import("transformers", old),) if old else (),
        )
    ]


def _pad_sequence(event: Collated, module: Module, call: cst.Call, keyword: str) -> list[Fix]:
    """Return the fix to add a collate function for samples of one row each."""
    row = event.sample
    if not (isinstance(row, TensorValue) and row.layout is not None and row.layout.rank == 1):
        return []
    code = f"{keyword}=lambda rows: pad_sequence(rows, batch_first=True, padding_value=0)"
    return [
        Fix(
            Applicability.UNSAFE,
            "pad the rows with 0, if 0 is not a valid token",
            (rewrites.appended(module, call, code),),
            (Import("torch.nn.utils.rnn", "pad_sequence"),),
            remark="if 0 is not a valid token",
        )
    ]
