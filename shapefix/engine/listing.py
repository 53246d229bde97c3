"""From one watched run of a function to its listing: rows of source, and the values in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from shapefix.checks.describe import describe
from shapefix.checks.rules import findings
from shapefix.checks.run import Run
from shapefix.diagnostics import Severity
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.events import Event, Refused
from shapefix.interpreter.modules import Module
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    Number,
    Reference,
    Text,
    Value,
)
from shapefix.interpreter.watching import Pass, known_now, parameters_of, statements_of
from shapefix.listings import Held, Listing, Remark, Row, Shown
from shapefix.tensors.layout import has_unknown_strides, is_contiguous
from shapefix.tensors.sizes import Size

MOST_PARTS = 8
"""So many items of a tuple, list or dictionary are shown."""
_LONGEST_CONSTANT = 40
_NEWLINE = re.compile(r"\r\n|\r|\n")


def listing(name: str, module: Module, seen: Pass, run: Run, rules: frozenset[str], basis: str) -> Listing:
    """The listing of one run of the function called name, which stands in module."""
    function = seen.function
    first, last = module.span(function.name).row, module.span(function).end_row
    held: dict[int, list[Held]] = {}
    remarks: dict[int, list[Remark]] = {}
    for param in parameters_of(function):
        value = seen.parameters.get(param.name.value)
        if value is not None and value is not seen.receiver:
            row = module.span(param.name).row
            held.setdefault(row, []).extend(_held([((param.name.value, known_now(value)),)], run))
    unrun: set[int] = set()
    for statement in statements_of(function):
        span = module.span(statement)
        if statement not in seen.held:
            unrun.update(range(span.row, span.end_row + 1))
            continue
        # The `else` of a branch that was not taken may end where the branch does.
        held.setdefault(span.row, []).extend(_held(seen.held[statement], run))
        if statement in seen.carried:
            remarks.setdefault(span.row, []).append(Remark("note", "first pass; later ones may differ"))
        said = _remarks(seen.events.get(statement, ()), run, rules)
        if said:
            remarks.setdefault(span.row, []).extend(said)
    return Listing(
        name, module.path, tuple(_rows(module, function, first, last, held, remarks, unrun)), basis
    )


def _rows(
    module: Module,
    function: cst.FunctionDef,
    first: int,
    last: int,
    held: dict[int, list[Held]],
    remarks: dict[int, list[Remark]],
    unrun: set[int],
) -> Iterator[Row]:
    source = _NEWLINE.split(module.text)[first - 1 : last]
    while source and not source[-1].strip():
        source.pop()
    documented = _docstring_rows(module, function)
    if len(documented) > 1:
        at = documented[0] - first
        source[at] = source[at].rstrip() + (
            '..."""' if source[at].strip().lstrip("rRuU") == '"""' else " ..."
        )
    for number, line in enumerate(_dedented(source), first):
        if number in documented[1:]:
            continue
        yield Row(
            number,
            line,
            tuple(held.get(number, ())),
            tuple(dict.fromkeys(remarks.get(number, ()))),
            number not in unrun,
        )


def _dedented(source: list[str]) -> list[str]:
    """The rows without the indentation of the first one."""
    indent = source[0][: len(source[0]) - len(source[0].lstrip())]
    return [line.removeprefix(indent).rstrip() for line in source]


def _docstring_rows(module: Module, function: cst.FunctionDef) -> Sequence[int]:
    block = function.body
    if not isinstance(block, cst.IndentedBlock) or not isinstance(block.body[0], cst.SimpleStatementLine):
        return ()
    first = block.body[0].body[0]
    if not isinstance(first, cst.Expr) or not isinstance(
        first.value, (cst.SimpleString, cst.ConcatenatedString)
    ):
        return ()
    span = module.span(first)
    return range(span.row, span.end_row + 1)


def _held(times: Iterable[Iterable[tuple[str, Value]]], run: Run) -> list[Held]:
    """Each name with its values, one for each time that differs from the ones before."""
    found: dict[str, dict[Shown, None]] = {}
    for names in times:
        for name, value in names:
            if set(name) == {"_"}:
                continue
            several = list(parts(name, value, run))
            for part, shown in several[:MOST_PARTS]:
                found.setdefault(part, {})[shown] = None
            if len(several) > MOST_PARTS:
                found.setdefault(name, {})[Shown(f"... and {len(several) - MOST_PARTS} more")] = None
    return [Held(name, tuple(values)) for name, values in found.items()]


def parts(name: str, value: Value, run: Run) -> Iterator[tuple[str, Shown]]:
    """What is shown of a value: one line, or one for each item where there are tensors in it."""
    items = _items(name, value)
    if items is None or not _holds_tensor(value):
        yield name, shown(value, run)
        return
    texts = {shown(item, run) for _, item in items}
    if len(texts) == 1 and len(items) > 2 and not isinstance(value, DictValue):
        (same,) = texts
        yield name, Shown(f"{len(items)} x {same.text}")
        return
    for part, item in items:
        yield from parts(part, item, run)


def in_words(value: Value, run: Run) -> Iterator[str]:
    """The value as `reveal` reports it; where tensors are in it, each of them with its place in it."""
    if isinstance(value, (ListValue, DictValue)):
        yield from (f"{name} {shown.text}".strip() for name, shown in parts("", value, run))
    else:
        text = describe(value, run)
        yield shown(value, run).text if text == "unknown" else text


def _items(name: str, value: Value) -> list[tuple[str, Value]] | None:
    if isinstance(value, TupleValue):
        if len(value.names) == len(value.items):
            return [(f"{name}.{key}", item) for key, item in zip(value.names, value.items, strict=True)]
        return [(f"{name}[{position}]", item) for position, item in enumerate(value.items)]
    if isinstance(value, ListValue) and value.items is not None:
        return [(f"{name}[{position}]", item) for position, item in enumerate(value.items)]
    if isinstance(value, DictValue):
        return [(f"{name}[{key!r}]", item) for key, item in value.fields.items()]
    return None


def _holds_tensor(value: Value) -> bool:
    if isinstance(value, TensorValue):
        return True
    return any(_holds_tensor(item) for _, item in _items("", value) or ())


def shown(value: Value, run: Run) -> Shown:
    """A value in one line."""
    if isinstance(value, TensorValue):
        return _tensor(value, run)
    is_number = isinstance(value, Integer) or (isinstance(value, Constant) and type(value.value) is int)
    return Shown(_words(value, run), is_number=is_number)


def _tensor(tensor: TensorValue, run: Run) -> Shown:
    # Whether the strides are known is no question that sizes answer.
    text = describe(tensor, run).removesuffix(" strides unknown")
    device = None if tensor.device is None else tensor.device.name or None
    if device is not None and device != "cpu":
        text += f" on {device}"
    layout = tensor.layout
    if layout is None:
        return Shown(text, tensor.dtype, device=device)
    strides = None
    if not is_contiguous(layout) and not has_unknown_strides(layout):
        strides = _numbers(layout.strides, run)
    return Shown(text, tensor.dtype, _numbers(layout.sizes, run), strides, device)


def _numbers(sizes: Iterable[Size], run: Run) -> tuple[int | str, ...]:
    return tuple(run.text(size) if size.value is None else size.value for size in sizes)


def _words(value: Value, run: Run) -> str:
    if isinstance(value, Constant):
        text = repr(value.value)
        return text if len(text) <= _LONGEST_CONSTANT else text[: _LONGEST_CONSTANT - 3] + "..."
    if isinstance(value, InstanceValue):
        return value.cls.name
    if isinstance(value, LibraryObject):
        return _short(value.kind)
    if isinstance(value, ClassValue):
        return f"class {value.name}"
    if isinstance(value, (FunctionValue, BoundMethod)):
        return "function"
    if isinstance(value, Reference):
        return _short(value.name)
    if isinstance(value, Number):
        return "number"
    if isinstance(value, Text):
        return "str"
    if isinstance(value, TupleValue):
        inner = ", ".join(_words(item, run) for item in value.items[:MOST_PARTS])
        more = ", ..." if len(value.items) > MOST_PARTS else "," if len(value.items) == 1 else ""
        return f"({inner}{more})"
    if isinstance(value, ListValue):
        return _list(value, run)
    if isinstance(value, DictValue):
        return "dict"
    return describe(value, run)


def _list(value: ListValue, run: Run) -> str:
    if value.items is not None:
        texts = [_words(item, run) for item in value.items]
        if len(texts) > 2 and len(set(texts)) == 1:
            return f"list of {len(texts)} {texts[0]}"
        return f"[{', '.join(texts[:MOST_PARTS])}{', ...' if len(texts) > MOST_PARTS else ''}]"
    element = "" if value.element is None else shown(value.element, run).text
    number = "" if value.length is None else f" of {run.text(value.length)}"
    return f"list{number}" + (f" of {element}" if element and element != "unknown" else "")


def _short(name: str) -> str:
    return f"nn.{name.removeprefix('torch.nn.')}" if name.startswith("torch.nn.") else name.rpartition(".")[2]


def _remarks(events: Iterable[Event], run: Run, rules: frozenset[str]) -> list[Remark]:
    """What the rules say of what happened in a statement; and what torch refuses, whatever they say."""
    said: list[Remark] = []
    for event in events:
        found = list(findings(run, rules, [event]))
        said += [
            Remark(each.severity.value, each.message, each.code)
            for each in found
            if each.severity is not Severity.INFO
        ]
        if isinstance(event, Refused) and not found:
            said.append(Remark("error", f"torch raises: {event.error}"))
    return said
