"""Descriptions of values for `reveal(x)`, hovers and inlay hints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shapefix.checks.context import CheckContext
from shapefix.displayed_values import DisplayedValue
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Constant,
    Flag,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    Number,
    PerhapsNone,
    Reference,
    Text,
    Unknown,
    Value,
)
from shapefix.tensors.layout import has_unknown_strides, is_contiguous
from shapefix.tensors.polynomials import Size

SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
}


MOST_PARTS = 8
"""The number of items shown of a tuple, list or dictionary."""
_LONGEST_CONSTANT = 40


def describe(value: Value, context: CheckContext) -> str:
    """Return a value in one line: `f32[B, T - 1, V] strides (T*V, V, 1)`; no strides if contiguous."""
    if isinstance(value, TensorValue):
        return _tensor(value, context)
    if isinstance(value, PerhapsNone):
        known = describe(value.value, context)
        return known if known == "unknown" else f"{known} or None"
    if isinstance(value, Unknown) and value.tensor is not None and value.tensor.layout is not None:
        return _tensor(value.tensor, context)
    if isinstance(value, Integer):
        return context.text(value.size)
    if isinstance(value, Constant):
        return repr(value.value)
    if isinstance(value, TupleValue):
        inner = ", ".join(describe(item, context) for item in value.items)
        return f"({inner},)" if len(value.items) == 1 else f"({inner})"
    return "unknown"


def _tensor(tensor: TensorValue, context: CheckContext) -> str:
    dtype = SHORT.get(tensor.dtype, tensor.dtype) if tensor.dtype else "?"
    if tensor.layout is None:
        return f"{dtype}[...]" + (" contiguous" if tensor.contiguous else "")
    text = f"{dtype}[{', '.join(context.text(size) for size in tensor.layout.sizes)}]"
    if has_unknown_strides(tensor.layout):
        return f"{text} strides unknown"
    if is_contiguous(tensor.layout):
        return text
    return f"{text} strides {context.shape(tensor.layout.strides)}"


def parts(name: str, value: Value, context: CheckContext) -> Iterator[tuple[str, DisplayedValue]]:
    """Yield the lines of a value: one, or one per item if it contains tensors."""
    items = _items(name, value)
    if items is None or not _holds_tensor(value):
        yield name, shown(value, context)
        return
    texts = {shown(item, context) for _, item in items}
    if len(texts) == 1 and len(items) > 2 and not isinstance(value, DictValue):
        (same,) = texts
        yield name, DisplayedValue(f"{len(items)} x {same.text}")
        return
    for part, item in items:
        yield from parts(part, item, context)


def in_words(value: Value, context: CheckContext) -> Iterator[str]:
    """Yield the lines of a `reveal` report; tensors in a container with their key or index."""
    if isinstance(value, (ListValue, DictValue)):
        yield from (f"{name} {shown.text}".strip() for name, shown in parts("", value, context))
    else:
        text = describe(value, context)
        yield shown(value, context).text if text == "unknown" else text


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


def shown(value: Value, context: CheckContext) -> DisplayedValue:
    """Return a value in one line."""
    if isinstance(value, TensorValue):
        return _displayed_tensor(value, context)
    is_number = isinstance(value, Integer) or (isinstance(value, Constant) and type(value.value) is int)
    return DisplayedValue(_words(value, context), is_number=is_number)


def _displayed_tensor(tensor: TensorValue, context: CheckContext) -> DisplayedValue:
    # The display shows sizes; unknown strides add nothing.
    text = describe(tensor, context).removesuffix(" strides unknown")
    device = None if tensor.device is None else tensor.device.name or None
    if device is not None and device != "cpu":
        text += f" on {device}"
    layout = tensor.layout
    if layout is None:
        return DisplayedValue(text, tensor.dtype, device=device)
    strides = None
    if not is_contiguous(layout) and not has_unknown_strides(layout):
        strides = _numbers(layout.strides, context)
    return DisplayedValue(text, tensor.dtype, _numbers(layout.sizes, context), strides, device)


def _numbers(sizes: Iterable[Size], context: CheckContext) -> tuple[int | str, ...]:
    return tuple(context.text(size) if size.value is None else size.value for size in sizes)


def _words(value: Value, context: CheckContext) -> str:
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
        return "bool" if isinstance(value, Flag) else "number"
    if isinstance(value, Text):
        return "str"
    if isinstance(value, TupleValue):
        inner = ", ".join(_words(item, context) for item in value.items[:MOST_PARTS])
        more = ", ..." if len(value.items) > MOST_PARTS else "," if len(value.items) == 1 else ""
        return f"({inner}{more})"
    if isinstance(value, ListValue):
        return _list(value, context)
    if isinstance(value, DictValue):
        return "dict"
    return describe(value, context)


def _list(value: ListValue, context: CheckContext) -> str:
    if value.items is not None:
        texts = [_words(item, context) for item in value.items]
        if len(texts) > 2 and len(set(texts)) == 1:
            return f"list of {len(texts)} {texts[0]}"
        return f"[{', '.join(texts[:MOST_PARTS])}{', ...' if len(texts) > MOST_PARTS else ''}]"
    element = "" if value.element is None else shown(value.element, context).text
    number = "" if value.length is None else f" of {context.text(value.length)}"
    return f"list{number}" + (f" of {element}" if element and element != "unknown" else "")


def _short(name: str) -> str:
    return f"nn.{name.removeprefix('torch.nn.')}" if name.startswith("torch.nn.") else name.rpartition(".")[2]
